use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::unread_body;
use crate::caller_options::CallerOptions;
use crate::http_error::HttpError;
use crate::requester::Requester;
use crate::shared::{BrokerAccess, Shared, at_once, blocking};
use crate::step_batch::{BatchForm, StepBatch};

/// A body of at most this many bytes is handled at once, which takes less time than handing it to another thread.
const SMALL: usize = 8 << 10;
/// Says that the store was away: the answers are all `continue`, and nothing was stored.
const FAILED_OPEN: &str = "deloop-failed-open";
/// Names the version of the server, for `deloop doctor`.
const VERSION: &str = "deloop-version";
/// Names the mode of the server, which applies to what a hook decides by itself while the server is away.
const MODE: &str = "deloop-mode";
const LINES: &str = "application/x-ndjson";

/// `POST /v1/steps`: one Decision per Step, in the same order and form.
pub(super) async fn observe(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    caller: CallerOptions,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, HttpError> {
    let body = body.map_err(|rejection| unread_body(&rejection))?;
    let small = body.len() <= SMALL;
    let lines = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(is_lines);
    let observe = move |shared: &Shared, access: &BrokerAccess<'_>| {
        let batch = StepBatch::read(&body, lines)?;
        requester.spend_steps(batch.steps.len())?;
        let answers = access.with(|broker, now| broker.observe(&requester, caller, &batch.steps, now))??;
        shared.metrics.steps(&answers, batch.malformed());
        let answer =
            batch.answer(&answers.decisions).map_err(|error| HttpError::failed(error.to_string()))?;
        Ok((batch.form, answer, answers.failed_open))
    };
    let (form, answer, failed_open) = if small && !shared.broker.is_remote() {
        at_once(&shared, |access| observe(&shared, access))?
    } else {
        let at = Arc::clone(&shared);
        blocking(&shared, move |access| observe(&at, access)).await?
    };
    let kind = if form == BatchForm::Lines { LINES } else { "application/json" };
    let mode = shared.broker.mode().as_str();
    let headers = [(header::CONTENT_TYPE.as_str(), kind), (MODE, mode), (VERSION, env!("CARGO_PKG_VERSION"))];
    let mut response = (headers, answer).into_response();
    if failed_open {
        response.headers_mut().insert(FAILED_OPEN, HeaderValue::from_static("true"));
    }
    Ok(response)
}

fn is_lines(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(LINES)
}
