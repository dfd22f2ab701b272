use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use deloop_store::StoreError;

use super::unread_body;
use crate::caller_options::CallerOptions;
use crate::http_error::HttpError;
use crate::shared::{Shared, blocking};
use crate::step_batch::{BatchForm, StepBatch};

/// Names the version of the server, for `deloop doctor`.
const VERSION: &str = "deloop-version";
/// Names the mode of the server, which applies to what a hook decides by itself while the server is away.
const MODE: &str = "deloop-mode";
const LINES: &str = "application/x-ndjson";

/// `POST /v1/steps`: one Decision per Step, in the same order and form.
pub(super) async fn observe(
    State(shared): State<Arc<Shared>>,
    caller: CallerOptions,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, HttpError> {
    let body = body.map_err(|rejection| unread_body(&rejection))?;
    let lines = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(is_lines);
    let metrics = Arc::clone(&shared);
    let (form, answer, mode) = blocking(&shared, move |access| {
        let mut batch = StepBatch::read(&body, lines)?;
        drop(body);
        let steps = batch.take_steps();
        let (decisions, mode) = access.with(|broker, now| {
            let decisions = broker.observe(steps, caller, now)?;
            Ok::<_, StoreError>((decisions, broker.mode()))
        })??;
        metrics.metrics.steps(&decisions, batch.malformed());
        let answer = batch.answer(&decisions).map_err(|error| HttpError::failed(error.to_string()))?;
        Ok((batch.form, answer, mode))
    })
    .await?;
    let kind = if form == BatchForm::Lines { LINES } else { "application/json" };
    let headers =
        [(header::CONTENT_TYPE.as_str(), kind), (MODE, mode.as_str()), (VERSION, env!("CARGO_PKG_VERSION"))];
    Ok((headers, answer).into_response())
}

fn is_lines(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(LINES)
}
