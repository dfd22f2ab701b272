use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use deloop_types::Decision;
use futures_util::StreamExt;
use hyper::body::Body as _;
use serde_json::json;

use super::step_bodies::{StepsAnswer, StepsBody};
use crate::admission::BODY;
use crate::caller_options::CallerOptions;
use crate::http_error::HttpError;
use crate::openapi::{ApiContent, ApiOperation, ApiParameter};
use crate::requester::Requester;
use crate::shared::{BrokerAccess, Shared, at_once, blocking};
use crate::step_batch::{BatchForm, StepBatch};

/// The path that steps are sent to.
pub(super) const PATH: &str = "/v1/steps";
/// A body of at most this many bytes is handled at once, which takes less time than handing it to another thread.
const SMALL: usize = 8 << 10;
/// Says that the store was away: the answers are all `continue`, and nothing was stored.
const FAILED_OPEN: &str = "deloop-failed-open";
/// Names the version of the server, for `deloop doctor`.
const VERSION: &str = "deloop-version";
/// Names the mode of the server, which applies to what a hook decides by itself while the server is away.
const MODE: &str = "deloop-mode";
const LINES: &str = "application/x-ndjson";

pub(super) fn operations() -> Vec<ApiOperation> {
    let step = json!({"type": "turn", "session": "s1", "text": "Let me look."});
    let lines = format!("{step}\n");
    let decision = json!(Decision::go_on("s1".into(), 0));
    vec![
        ApiOperation::post(PATH, "observe_steps", observe)
            .summary("Send steps and get decisions")
            .details(
                "One Step gets one Decision, an array an array, and lines get lines, in the same order. An item of a \
                 batch that isn't a Step gets `{\"error\":\"…\",\"index\":N}` in its place, and the others are \
                 answered.",
            )
            .parameter(ApiParameter::query(
                "mode",
                "The sender's mode. The stricter one of this and the server's mode applies.",
                json!({"type": "string", "enum": ["shadow", "nudge", "enforce"]}),
                json!("nudge"),
            ))
            .parameter(ApiParameter::query(
                "attended",
                "Whether a person watches the agent.",
                json!({"type": "boolean"}),
                json!(false),
            ))
            .takes(ApiContent::json_like::<StepsBody>(step.clone()).or("batch", json!([step])))
            .takes(ApiContent::lines(LINES, &lines))
            .answers(
                "The decisions.",
                ApiContent::json_like::<StepsAnswer>(decision.clone())
                    .or("batch", json!([decision, {"error": "missing field `type`", "index": 1}])),
            )
            .answers("The decisions.", ApiContent::text(LINES, &format!("{decision}\n")))
            .header(VERSION, "The version of the server.")
            .header(MODE, "The mode of the server.")
            .header(FAILED_OPEN, "`true` if Redis was away: every answer is `continue`, and nothing was stored.")
            .refuses(
                StatusCode::BAD_REQUEST,
                "The body isn't a Step, an array or lines, or `mode` or `attended` has another value.",
            ),
    ]
}

/// `POST /v1/steps`: one Decision per Step, in the same order and form.
pub(super) async fn observe(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, HttpError> {
    let (parts, body) = request.into_parts();
    let requester: Requester = parts.extensions.get().cloned().ok_or_else(HttpError::unauthorized)?;
    let caller = CallerOptions::read(&parts.uri)?;
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let lines = kind.is_some_and(is_lines);
    let body = read(body).await?;
    let small = body.len() <= SMALL;
    let observe = move |shared: &Shared, access: &BrokerAccess<'_>| {
        let mut batch = StepBatch::read(&body, lines)?;
        requester.spend_steps(batch.steps.len())?;
        let answers =
            access.with(|broker, now| broker.observe(&requester, caller, &mut batch.steps, now))??;
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
    let mut response = Response::new(Body::from(answer));
    let mut add = |name, value| response.headers_mut().insert(name, HeaderValue::from_static(value));
    add(header::CONTENT_TYPE, kind);
    add(HeaderName::from_static(MODE), shared.broker.mode().as_str());
    add(HeaderName::from_static(VERSION), env!("CARGO_PKG_VERSION"));
    if failed_open {
        add(HeaderName::from_static(FAILED_OPEN), "true");
    }
    Ok(response)
}

/// Reads a body. The body of a small request is one piece, and isn't copied. It isn't asked for more than its length says:
/// the connection would prepare to read on, in a new buffer, while it waits.
async fn read(body: Body) -> Result<Bytes, HttpError> {
    let unread = |_| HttpError::bad_request("the body couldn't be read to its end");
    let mut pieces = body.into_data_stream();
    let Some(first) = pieces.next().await.transpose().map_err(unread)? else { return Ok(Bytes::new()) };
    if pieces.is_end_stream() {
        return Ok(first);
    }
    let Some(second) = pieces.next().await.transpose().map_err(unread)? else { return Ok(first) };
    let mut all = Vec::with_capacity(2 * (first.len() + second.len()));
    let mut next = Some(second);
    all.extend_from_slice(&first);
    while let Some(piece) = next {
        if all.len() + piece.len() > BODY {
            return Err(HttpError::too_large());
        }
        all.extend_from_slice(&piece);
        next = pieces.next().await.transpose().map_err(unread)?;
    }
    Ok(all.into())
}

fn is_lines(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(LINES)
}
