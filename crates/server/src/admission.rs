//! Decides which requests are let in. Every refusal names its limit.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::SemaphorePermit;

use crate::access::keep_keys_fresh;
use crate::http_error::HttpError;
use crate::shared::Shared;

/// Maximum size of a body, in bytes.
pub(crate) const BODY: usize = 64 << 20;
/// Maximum number of steps in one request.
pub(crate) const STEPS: usize = 10_000;
/// Maximum number of requests at the same time.
pub(crate) const REQUESTS: usize = 256;
/// A body of more bytes, or of unknown length, is a large one.
const LARGE: u64 = 1 << 20;
/// Maximum number of requests with a large body at the same time: bodies are in memory until they are answered.
pub(crate) const LARGE_REQUESTS: usize = 16;
/// Maximum number of connections. Further ones wait.
pub(crate) const CONNECTIONS: usize = 1_024;
/// Maximum number of clients that listen for events.
pub(crate) const LISTENERS: usize = 256;
/// How long a client may take to send the headers of a request.
pub(crate) const HEADERS: Duration = Duration::from_secs(10);
/// How long a request may take, its body included.
pub(crate) const REQUEST: Duration = Duration::from_secs(30);

/// Handles a request, if it is let in, and counts it. A handler finds the [`crate::requester::Requester`] in the request.
#[expect(clippy::disallowed_methods, reason = "measures how long a request takes")]
pub(crate) async fn admit<F: Future<Output = Response>>(
    shared: &Arc<Shared>,
    peer: IpAddr,
    mut request: Request,
    handle: impl FnOnce(Request) -> F,
) -> Response {
    let begun = Instant::now();
    keep_keys_fresh(shared).await;
    let has_length = !request.headers().contains_key(header::TRANSFER_ENCODING);
    let mut response = match let_in(shared, peer, &mut request) {
        Err(error) => error.into_response(),
        Ok(_place) => match tokio::time::timeout(REQUEST, handle(request)).await {
            Ok(response) => response,
            Err(_) => HttpError::timeout().into_response(),
        },
    };
    if !has_length {
        // A proxy may have taken another length from the same request; then what follows isn't the client's next one.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    shared.metrics.request(begun.elapsed(), response.status());
    response
}

/// A request's place among those that are handled at the same time.
#[derive(Default)]
struct Admission<'a> {
    _request: Option<SemaphorePermit<'a>>,
    _large: Option<SemaphorePermit<'a>>,
}

fn let_in<'a>(shared: &'a Shared, peer: IpAddr, request: &mut Request) -> Result<Admission<'a>, HttpError> {
    if let Some(requester) = shared.access.check(peer, request)? {
        request.extensions_mut().insert(requester);
    }
    let headers = request.headers();
    let length = number(headers, header::CONTENT_LENGTH);
    if length.is_some_and(|length| length > BODY as u64) {
        return Err(HttpError::too_large());
    }
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(HttpError::compressed());
    }
    // A busy server is a healthy one.
    if request.uri().path() == "/healthz" {
        return Ok(Admission::default());
    }
    let busy = |limit, what| move |_| HttpError::too_busy(limit, what);
    let place = shared.requests.try_acquire().map_err(busy(REQUESTS, "requests"))?;
    let is_large =
        headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length > LARGE);
    let large = is_large.then(|| shared.large_requests.try_acquire());
    let large = large
        .transpose()
        .map_err(busy(LARGE_REQUESTS, "requests of more than 1 MiB or of unknown length"))?;
    Ok(Admission { _request: Some(place), _large: large })
}

fn number(headers: &HeaderMap, name: header::HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}
