//! One file per resource. A handler reads the request, asks the broker on a thread that may block, and answers in JSON.

mod budgets;
mod events;
mod health;
mod key;
mod openapi;
mod reports;
mod session_answers;
mod sessions;
mod step_bodies;
mod steps;
mod swarms;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::BytesRejection;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde::de::DeserializeOwned;

use crate::admission::{BODY, REQUEST};
use crate::http_error::HttpError;
use crate::openapi::ApiOperation;
use crate::requester::Requester;
use crate::shared::Shared;
use crate::step_queue::StepQueue;

/// Returns all operations: the table that both the router and the OpenAPI document are made from.
pub(crate) fn operations() -> Vec<ApiOperation> {
    let groups = [
        ("Steps", steps::operations()),
        ("Sessions", sessions::operations()),
        ("Swarms", swarms::operations()),
        ("Events", events::operations()),
        ("Money", budgets::operations()),
        ("Money", reports::operations()),
        ("Server", health::operations()),
        ("Server", key::operations()),
        ("Server", openapi::operations()),
    ];
    groups.into_iter().flat_map(|(tag, group)| group.into_iter().map(|one| one.tagged(tag))).collect()
}

/// Returns the router. It has no routes but those of [`operations`].
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    let routes = operations().into_iter().map(ApiOperation::into_route);
    routes
        .fold(Router::new(), |router, (path, handler)| router.route(path, handler))
        .fallback(async || HttpError::not_found("path; docs/serve.md lists them"))
        .method_not_allowed_fallback(async || {
            HttpError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this path doesn't have this method; docs/serve.md lists them",
            )
        })
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(Arc::clone(shared))
}

/// Answers a request that was let in. A handler finds the [`Requester`] in the request.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    queue: &Arc<StepQueue>,
    router: &Router,
    requester: Option<Arc<Requester>>,
    mut request: Request<Incoming>,
) -> Response {
    // Nearly all requests are these, and going through the router would cost as much as deciding about a step.
    if request.uri().path() == steps::PATH && request.method() == Method::POST {
        return steps::observe_with(shared, Some(queue), requester, request).await.into_response();
    }
    if let Some(requester) = requester {
        request.extensions_mut().insert(requester);
    }
    let answered = TowerToHyperService::new(router.clone()).call(request.map(Body::new));
    in_time(shared, answered)
        .await
        .map_or_else(HttpError::into_response, |Ok(response)| response.map(Body::new))
}

/// Waits for what a client must not wait for too long.
async fn in_time<R>(shared: &Shared, work: impl Future<Output = R>) -> Result<R, HttpError> {
    let mut work = pin!(work);
    // What is ready needs no timer.
    match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => shared.clock.within(REQUEST, work).await.ok_or_else(HttpError::timeout),
    }
}

/// Returns the error for a body that couldn't be read.
fn unread_body(rejection: &BytesRejection) -> HttpError {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => HttpError::too_large(),
        status => HttpError::new(status, "the body couldn't be read to its end"),
    }
}

/// Reads a JSON object. A list would be read as a struct's fields in their order.
pub(crate) fn read_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    match body.trim_ascii().first() {
        Some(b'{') => serde_json::from_slice(body).map_err(|error| error.to_string()),
        _ => Err("the body isn't a JSON object".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    /// A route beside the table would be missing in the OpenAPI document.
    #[test]
    fn every_route_comes_from_the_table() {
        let calls = include_str!("mod.rs").matches(concat!(".rou", "te(")).count();
        assert_eq!(calls, 1, "add a route to `operations()` of its file, with its description");
    }
}
