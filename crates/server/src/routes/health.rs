use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http_error::{HttpError, json_response};
use crate::openapi::{ApiContent, ApiOperation};
use crate::shared::{Shared, blocking};

/// What the server says about itself.
#[derive(Serialize, JsonSchema)]
struct HealthStatus {
    /// `ok` if the process runs, `ready` if it can do its work.
    status: &'static str,
}

pub(super) fn operations() -> Vec<ApiOperation> {
    let metrics_example = "# HELP deloop_steps_total Steps that got a decision.\n# TYPE deloop_steps_total counter\ndeloop_steps_total 12\n";
    vec![
        ApiOperation::get("/healthz", "check_health", alive)
            .summary("Check that the process runs")
            .answers("The process runs.", ApiContent::json(&HealthStatus { status: "ok" })),
        ApiOperation::get("/readyz", "check_readiness", ready)
            .summary("Check that the server can do its work")
            .answers(
                "The database and the audit log can be written, and Redis answers.",
                ApiContent::json(&HealthStatus { status: "ready" }),
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
async fn ready(State(shared): State<Arc<Shared>>) -> Result<Response, HttpError> {
    blocking(&shared, |access| {
        access.with(|broker, now| {
            broker.check(now)?;
            broker.audit_log().map_or(Ok(()), |log| log.check(now)).map_err(HttpError::audit_failed)
        })?
    })
    .await?;
    Ok(json_response(&HealthStatus { status: "ready" }))
}

/// `GET /metrics`: counters in the text format of Prometheus.
async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, HttpError> {
    let (sessions, more) = blocking(&shared, |access| {
        access.with(|broker, _| Ok((broker.session_count()?, broker.metrics())))?
    })
    .await?;
    let text = shared.metrics.text(sessions) + &more;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
