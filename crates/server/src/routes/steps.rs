use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use deloop_types::Decision;
use hyper::body::Body as HttpBody;
use serde_json::json;

use super::in_time;
use super::step_bodies::{StepsAnswer, StepsBody};
use crate::admission::BODY;
use crate::caller_options::CallerOptions;
use crate::http_error::HttpError;
use crate::openapi::{ApiContent, ApiOperation, ApiParameter};
use crate::requester::Requester;
use crate::shared::{BrokerAccess, Shared, blocking, panicked};
use crate::step_batch::BatchForm;
use crate::step_queue::StepQueue;
use crate::steps_request::{StepsReply, StepsRequest};

/// The path that steps are sent to.
pub(super) const PATH: &str = "/v1/steps";
/// A body of at most this many bytes is decided about together with others, and without Redis on the worker's thread, which
/// takes less time than handing it to another.
const SMALL: usize = 8 << 10;
/// Says that steps weren't stored: the store was away, or their session can't be read.
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
                 answered. `limit` in a Decision names a limit of the key that its step was beyond.",
            )
            .parameter(ApiParameter::query(
                "mode",
                "The sender's mode. The stricter one of this and the server's mode applies; the answer names the \
                 server's.",
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
            .header(VERSION, "The version of the server, if the request has `mode`.")
            .header(MODE, "The mode of the server, if the request has `mode`.")
            .header(
                FAILED_OPEN,
                "`true` if steps weren't stored: Redis was away, or this release can't read their session. Those \
                 answers are `continue`, or the stop that stood.",
            )
            .refuses(
                StatusCode::BAD_REQUEST,
                "The body isn't a Step, an array or lines, or `mode` or `attended` has another value.",
            ),
    ]
}

/// `POST /v1/steps`: one Decision per Step, in the same order and form.
pub(super) async fn observe(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    request: Request<Body>,
) -> Result<Response, HttpError> {
    observe_with(&shared, None, Some(Arc::new(requester)), request).await
}

/// Small requests are decided about in the queue of their worker, if there is one.
pub(super) async fn observe_with<B: HttpBody<Data = Bytes> + Unpin>(
    shared: &Arc<Shared>,
    queue: Option<&Arc<StepQueue>>,
    requester: Option<Arc<Requester>>,
    request: Request<B>,
) -> Result<Response, HttpError> {
    let (parts, body) = request.into_parts();
    let requester = requester.ok_or_else(HttpError::unauthorized)?;
    let caller = CallerOptions::read(&parts.uri)?;
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let lines = kind.is_some_and(is_lines);
    let body = in_time(shared, read(body)).await??;
    let queue = queue.filter(|_| body.len() <= SMALL);
    // Head and body are pieces of the connection's buffer. While one of them is held, the connection needs another buffer.
    drop(parts);
    let body = if queue.is_some() { copied(body) } else { body };
    let request = StepsRequest { requester, caller, body, lines };
    let StepsReply { form, text, failed_open } = match queue {
        Some(queue) if shared.broker.is_remote() => in_time(shared, queue.decide(shared, request)).await??,
        Some(queue) => queue.decide(shared, request).await?,
        None => {
            let at = Arc::clone(shared);
            let decide = move |access: &BrokerAccess<'_>| {
                StepsRequest::decide(&[request], &at, access).pop().unwrap_or_else(|| Err(panicked()))
            };
            in_time(shared, blocking(shared, decide)).await??
        }
    };
    let kind = if form == BatchForm::Lines { LINES } else { "application/json" };
    let mut response = Response::new(Body::from(text));
    let mut add = |name, value| response.headers_mut().insert(name, HeaderValue::from_static(value));
    add(header::CONTENT_TYPE, kind);
    if caller.has_mode() {
        add(const { HeaderName::from_static(MODE) }, shared.broker.mode().as_str());
        add(const { HeaderName::from_static(VERSION) }, env!("CARGO_PKG_VERSION"));
    }
    if failed_open {
        add(const { HeaderName::from_static(FAILED_OPEN) }, "true");
    }
    Ok(response)
}

/// Reads a body. The body of a small request is one piece, and isn't copied. It isn't asked for more than its length says:
/// the connection would prepare to read on, in a new buffer, while it waits.
async fn read<B: HttpBody<Data = Bytes> + Unpin>(mut body: B) -> Result<Bytes, HttpError> {
    let Some(first) = next_piece(&mut body).await? else { return Ok(Bytes::new()) };
    if body.is_end_stream() {
        return Ok(first);
    }
    let Some(second) = next_piece(&mut body).await? else { return Ok(first) };
    let mut all = Vec::with_capacity(2 * (first.len() + second.len()));
    let mut next = Some(second);
    all.extend_from_slice(&first);
    while let Some(piece) = next {
        if all.len() + piece.len() > BODY {
            return Err(HttpError::too_large());
        }
        all.extend_from_slice(&piece);
        next = next_piece(&mut body).await?;
    }
    Ok(all.into())
}

/// Returns the next piece of a body; `None` at its end.
async fn next_piece<B: HttpBody<Data = Bytes> + Unpin>(body: &mut B) -> Result<Option<Bytes>, HttpError> {
    while let Some(frame) = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
        let frame = frame.map_err(|_| HttpError::bad_request("the body couldn't be read to its end"))?;
        // Fields after the body mean nothing here.
        if let Ok(piece) = frame.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

/// Returns the same bytes in memory of their own.
#[expect(clippy::needless_pass_by_value, reason = "the piece of the connection's buffer must not be kept")]
fn copied(piece: Bytes) -> Bytes {
    Bytes::copy_from_slice(&piece)
}

fn is_lines(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(LINES)
}
