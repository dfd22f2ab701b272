use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use super::unread_body;
use crate::http_error::HttpError;
use crate::requester::Requester;
use crate::shared::{Shared, blocking};
use crate::step_batch::{BatchForm, StepBatch};

const LINES: &str = "application/x-ndjson";

/// `POST /v1/steps`: one Decision per Step, in the same order and form.
pub(super) async fn observe(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, HttpError> {
    let body = body.map_err(|rejection| unread_body(&rejection))?;
    let lines = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(is_lines);
    let metrics = Arc::clone(&shared);
    let (form, answer) = blocking(&shared, move |access| {
        let mut batch = StepBatch::read(&body, lines)?;
        drop(body);
        let steps = batch.take_steps();
        let decisions = access.with(|broker, now| broker.observe(steps, &requester, now))??;
        metrics.metrics.steps(&decisions, batch.malformed());
        let answer = batch.answer(&decisions).map_err(|error| HttpError::failed(error.to_string()))?;
        Ok((batch.form, answer))
    })
    .await?;
    let kind = if form == BatchForm::Lines { LINES } else { "application/json" };
    Ok(([(header::CONTENT_TYPE, kind)], answer).into_response())
}

fn is_lines(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(LINES)
}
