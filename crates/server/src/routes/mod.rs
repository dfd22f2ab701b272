//! One file per resource. A handler reads the request, asks the broker on a thread that may block, and answers in JSON.

mod budgets;
mod events;
mod health;
mod reports;
mod sessions;
mod steps;
mod swarms;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};

use crate::admission::{BODY, admit};
use crate::http_error::HttpError;
use crate::shared::Shared;

/// Returns all routes.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/steps", post(steps::observe))
        .route("/v1/sessions", get(sessions::list))
        .route("/v1/sessions/{session}", get(sessions::show).delete(sessions::purge))
        .route("/v1/sessions/{session}/reset", post(sessions::reset))
        .route("/v1/sessions/{session}/end", post(sessions::end))
        .route("/v1/sessions/{session}/checkpoint", get(sessions::checkpoint).put(sessions::restore))
        .route("/v1/sessions/{session}/message", post(sessions::message))
        .route("/v1/swarms", get(swarms::list))
        .route("/v1/swarms/{swarm}", get(swarms::show).delete(swarms::clear))
        .route("/v1/events", get(events::listen))
        .route("/v1/budgets", get(budgets::show))
        .route("/v1/budgets/override", post(budgets::grant))
        .route("/v1/budgets/override/{id}", delete(budgets::revoke))
        .route("/v1/reports/daily", get(reports::daily))
        .route("/v1/reports/weekly", get(reports::weekly))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .fallback(async || HttpError::not_found("path; docs/serve.md lists them"))
        .method_not_allowed_fallback(async || {
            HttpError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this path doesn't have this method; docs/serve.md lists them",
            )
        })
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn_with_state(Arc::clone(shared), admit))
        .with_state(Arc::clone(shared))
}

/// Returns the error for a body that couldn't be read.
fn unread_body(rejection: &BytesRejection) -> HttpError {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => HttpError::too_large(),
        status => HttpError::new(status, "the body couldn't be read to its end"),
    }
}
