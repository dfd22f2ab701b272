use std::sync::Arc;

use axum::extract::State;
use axum::http::{Extensions, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http_error::{HttpError, json_response};
use crate::openapi::{ApiContent, ApiOperation};
use crate::readiness::{ReadyCheck, ReadyReason};
use crate::requester::Requester;
use crate::shared::{Shared, blocking};

/// What the server says about itself.
#[derive(Serialize, JsonSchema)]
struct HealthStatus {
    /// `ok`: the process runs.
    status: &'static str,
}

/// Whether the server can do its work.
#[derive(Serialize, JsonSchema)]
struct ReadyStatus {
    /// `ready`; or `degraded` if it works, but somebody should look after it.
    status: &'static str,
    /// Why, in answers to a key that has the scope `read`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<ReadyReason>,
}

pub(super) fn operations() -> Vec<ApiOperation> {
    let metrics_example = "# HELP deloop_steps_total Steps that got a decision.\n# TYPE deloop_steps_total counter\ndeloop_steps_total 12\n";
    vec![
        ApiOperation::get("/healthz", "check_health", alive)
            .summary("Check that the process runs")
            .answers("The process runs.", ApiContent::json(&HealthStatus { status: "ok" })),
        ApiOperation::get("/readyz", "check_readiness", ready)
            .summary("Check that the server can do its work")
            .details(
                "With a key that has the scope `read`, the answer has the reasons why the server isn't as it should be.",
            )
            .answers(
                "The database or Redis, and the audit log, can be written.",
                ApiContent::json(&ReadyStatus { status: "ready", reasons: Vec::new() }),
            )
            .refuses(StatusCode::UNAUTHORIZED, "The request has a key, which is unknown, expired or revoked.")
            .refuses(
                StatusCode::TOO_MANY_REQUESTS,
                "The key sends too many requests, or the address too many without a valid key.",
            )
            .refuses(
                StatusCode::SERVICE_UNAVAILABLE,
                "The server can't do its work. With a key that has the scope `read`, `error` and `reasons` say why.",
            ),
        ApiOperation::get("/metrics", "get_metrics", metrics)
            .summary("Get counts for Prometheus")
            .details("The text format of Prometheus, version 0.0.4. The counts are about all projects.")
            .answers("The counts.", ApiContent::text("text/plain", metrics_example)),
    ]
}

/// `GET /healthz`: the process answers.
async fn alive() -> Response {
    json_response(&HealthStatus { status: "ok" })
}

/// `GET /readyz`: the database or Redis, and the audit log, can be written.
async fn ready(State(shared): State<Arc<Shared>>, extensions: Extensions) -> Result<Response, HttpError> {
    let has_key = extensions.get::<Arc<Requester>>().is_some();
    let reasons = ReadyCheck::reasons(&shared, has_key).await;
    if reasons.iter().any(|reason| !reason.is_degraded) {
        return Err(HttpError::unready(has_key.then_some(&*reasons)));
    }
    let status = if reasons.is_empty() { "ready" } else { "degraded" };
    let reasons = if has_key { reasons.to_vec() } else { Vec::new() };
    Ok(json_response(&ReadyStatus { status, reasons }))
}

/// `GET /metrics`: counters in the text format of Prometheus.
async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, HttpError> {
    let (sessions, more) = blocking(&shared, |access| {
        access.with(|broker, _| Ok((broker.session_count()?, broker.metrics())))?
    })
    .await?;
    let text = shared.metrics.text(sessions) + &shared.connections.text() + &more;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
