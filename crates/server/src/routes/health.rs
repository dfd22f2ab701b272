use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::http_error::{HttpError, json_response};
use crate::shared::{Shared, blocking};

/// `GET /healthz`: the process answers.
pub(super) async fn alive() -> Response {
    json_response(&json!({"status": "ok"}))
}

/// `GET /readyz`: the database or Redis, and the audit log, can be written.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Result<Response, HttpError> {
    blocking(&shared, |access| {
        access.with(|broker, now| {
            broker.check(now)?;
            broker.audit_log().map_or(Ok(()), |log| log.check(now)).map_err(HttpError::audit_failed)
        })?
    })
    .await?;
    Ok(json_response(&json!({"status": "ready"})))
}

/// `GET /metrics`: counters in the text format of Prometheus.
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, HttpError> {
    let (sessions, more) = blocking(&shared, |access| {
        access.with(|broker, _| Ok((broker.session_count()?, broker.metrics())))?
    })
    .await?;
    let text = shared.metrics.text(sessions) + &more;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
