use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::broker::Broker;
use crate::http_error::{HttpError, json_response};
use crate::shared::{Shared, blocking};

/// `GET /healthz`: the process answers.
pub(super) async fn alive() -> Response {
    json_response(&json!({"status": "ok"}))
}

/// `GET /readyz`: the database can be written.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Result<Response, HttpError> {
    blocking(&shared, |access| Ok(access.with(|broker, now| broker.check_writable(now))??)).await?;
    Ok(json_response(&json!({"status": "ready"})))
}

/// `GET /metrics`: counters in the text format of Prometheus.
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, HttpError> {
    let read = |broker: &Broker, _| Ok::<_, HttpError>((broker.session_count()?, broker.alert_metrics()));
    let (sessions, alerts) = blocking(&shared, move |access| access.with(read)?).await?;
    let text = shared.metrics.text(sessions) + &alerts;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
