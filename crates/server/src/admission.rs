//! Decides which requests are let in. Every refusal names its limit.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};

use crate::connections::OpenConnection;
use crate::http_error::HttpError;
use crate::requester::Requester;
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
/// Maximum number of clients that listen for events.
pub(crate) const LISTENERS: usize = 256;
/// The paths that are answered whatever the load is.
pub(crate) const HEALTH: [&str; 2] = ["/healthz", "/readyz"];
/// How long a client may take to send the headers of a request.
pub(crate) const HEADERS: Duration = Duration::from_secs(10);
/// How long the body of a request may take to arrive, and how long a request may take to be answered.
pub(crate) const REQUEST: Duration = Duration::from_secs(30);

/// Handles a request, if it is let in, and counts it.
pub(crate) async fn admit<B, F: Future<Output = Response>>(
    shared: &Arc<Shared>,
    (peer, connection): (IpAddr, &OpenConnection),
    request: Request<B>,
    handle: impl FnOnce(Option<Arc<Requester>>, Request<B>) -> F,
) -> Response {
    let begun = shared.clock.moment();
    connection.deadline().arrived();
    let has_length = !request.headers().contains_key(header::TRANSFER_ENCODING);
    let mut response = match let_in(shared, peer, connection, &request) {
        Err(error) => error.into_response(),
        Ok((requester, _place)) => handle(requester, request).await,
    };
    if !has_length {
        // A proxy may have taken another length from the same request; then what follows isn't the client's next one.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let ended = shared.clock.moment();
    shared.metrics.request(ended - begun, response.status());
    connection.deadline().answered(response, ended)
}

/// Returns whether a request asks how the server is. It is answered whatever the load is.
pub(crate) fn is_health(path: &str) -> bool {
    HEALTH.contains(&path)
}

/// A number of places. Whoever finds none is refused.
pub(crate) struct Places {
    taken: AtomicUsize,
    all: usize,
}

/// A place that is taken until this is dropped.
struct TakenPlace<'a>(&'a Places);

impl Places {
    pub(crate) fn new(all: usize) -> Self {
        Self { taken: AtomicUsize::new(0), all }
    }

    fn take(&self) -> Option<TakenPlace<'_>> {
        let place = TakenPlace(self);
        (self.taken.fetch_add(1, Ordering::Relaxed) < self.all).then_some(place)
    }
}

impl Drop for TakenPlace<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request's places among those that are handled at the same time.
#[derive(Default)]
struct Admission<'a> {
    _request: Option<TakenPlace<'a>>,
    _large: Option<TakenPlace<'a>>,
}

fn let_in<'a, B>(
    shared: &'a Shared,
    peer: IpAddr,
    connection: &OpenConnection,
    request: &Request<B>,
) -> Result<(Option<Arc<Requester>>, Admission<'a>), HttpError> {
    let requester = shared.access.check(peer, request)?;
    if let Some(requester) = &requester {
        connection.serve(requester).map_err(HttpError::too_many_connections)?;
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
    if is_health(request.uri().path()) {
        return Ok((requester, Admission::default()));
    }
    let place = shared.requests.take().ok_or_else(|| HttpError::too_busy(REQUESTS, "requests"))?;
    let is_large =
        headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length > LARGE);
    let large = if is_large {
        let too_busy =
            || HttpError::too_busy(LARGE_REQUESTS, "requests of more than 1 MiB or of unknown length");
        Some(shared.large_requests.take().ok_or_else(too_busy)?)
    } else {
        None
    };
    Ok((requester, Admission { _request: Some(place), _large: large }))
}

fn number(headers: &HeaderMap, name: header::HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_places_as_there_are() {
        let places = Places::new(2);
        let (first, second) = (places.take(), places.take());
        assert!(first.is_some() && second.is_some());
        assert!(places.take().is_none() && places.take().is_none(), "a refusal takes no place");
        drop(first);
        let third = places.take();
        assert!(third.is_some() && places.take().is_none());
    }
}
