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

/// `GET /readyz`: the database can be written.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Result<Response, HttpError> {
    blocking(&shared, |access| Ok(access.with(|broker, now| broker.write_back(now))??)).await?;
    Ok(json_response(&json!({"status": "ready"})))
}

/// `GET /metrics`: counters in the text format of Prometheus.
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, HttpError> {
    let (sessions, money) = blocking(&shared, |access| {
        access.with(|broker, _| Ok((broker.session_count()?, broker.money_metrics())))?
    })
    .await?;
    let text = shared.metrics.text(sessions) + &money;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
