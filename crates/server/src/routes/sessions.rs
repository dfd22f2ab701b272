use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use deloop_engine::Checkpoint;
use deloop_types::{Decision, SessionId, Step};
use serde::Deserialize;
use serde_json::json;

use super::session_answers::{
    MessageBody, PurgedSession, QueuedMessage, ResetSession, RestoredSession, SessionPage,
    checkpoint_example, session_example,
};
use super::{read_object, unread_body};
use crate::broker::{SentStep, SessionReport};
use crate::caller_options::CallerOptions;
use crate::http_error::{HttpError, json_response, safe_error};
use crate::openapi::{ApiContent, ApiOperation, ApiParameter};
use crate::requester::Requester;
use crate::shared::{Shared, blocking};

/// How many sessions a page has, unless the request says.
const PAGE: u64 = 100;
/// Maximum number of sessions on a page.
const LONGEST_PAGE: u64 = 1_000;
/// Maximum length of a message for an agent, in characters.
pub(super) const LONGEST_MESSAGE: usize = 8_000;

/// Which page of the sessions to list.
#[derive(Deserialize)]
struct PageQuery {
    after: Option<String>,
    limit: Option<u64>,
}

const NOT_UTF_8: &str = "The name isn't UTF-8.";
const UNKNOWN: &str = "there is no such session";

pub(super) fn operations() -> Vec<ApiOperation> {
    std::iter::once(list_operation()).chain(session_operations()).chain(checkpoint_operations()).collect()
}

fn name() -> ApiParameter {
    ApiParameter::path("session", "The name of the session, percent-encoded.", "s1")
}

fn list_operation() -> ApiOperation {
    ApiOperation::get("/v1/sessions", "list_sessions", list)
        .summary("List sessions")
        .parameter(ApiParameter::query(
            "after",
            "Only names behind this one, in the order of their bytes.",
            json!({"type": "string"}),
            json!("s1"),
        ))
        .parameter(ApiParameter::query(
            "limit",
            "How many names the page has; 100 if absent.",
            json!({"type": "integer", "minimum": 1, "maximum": LONGEST_PAGE}),
            json!(PAGE),
        ))
        .answers(
            "Names in order, and the `after` of the next page.",
            ApiContent::json(&SessionPage { sessions: vec!["s1".into()], next: None }),
        )
        .refuses(StatusCode::BAD_REQUEST, "`limit` isn't 1 to 1,000, or a parameter is there twice.")
}

fn session_operations() -> Vec<ApiOperation> {
    let session = || "s1".into();
    vec![
        ApiOperation::get("/v1/sessions/{session}", "get_session", show)
            .summary("Get a session")
            .parameter(name())
            .answers("What is stored of it.", ApiContent::json_like::<SessionReport>(session_example()))
            .refuses(StatusCode::BAD_REQUEST, NOT_UTF_8)
            .refuses(StatusCode::NOT_FOUND, UNKNOWN),
        ApiOperation::delete("/v1/sessions/{session}", "purge_session", purge)
            .summary("Delete a session for good")
            .details(
                "Deletes its state and what the audit log records about it. A tombstone stays in the log.",
            )
            .parameter(name())
            .answers(
                "The session is deleted.",
                ApiContent::json(&PurgedSession { session: session(), existed: true, purged_records: 2 }),
            )
            .refuses(StatusCode::BAD_REQUEST, NOT_UTF_8),
        ApiOperation::post("/v1/sessions/{session}/reset", "reset_session", reset)
            .summary("Reset a session")
            .details("Deletes its state, which lifts a stop.")
            .parameter(name())
            .answers(
                "The session starts afresh.",
                ApiContent::json(&ResetSession { session: session(), existed: true }),
            )
            .refuses(StatusCode::BAD_REQUEST, NOT_UTF_8),
        ApiOperation::post("/v1/sessions/{session}/end", "end_session", end)
            .summary("End a session")
            .details("The same as an `end` step.")
            .parameter(name())
            .answers("The decision about the step.", ApiContent::json(&Decision::go_on(session(), 8)))
            .refuses(StatusCode::BAD_REQUEST, NOT_UTF_8),
        ApiOperation::post("/v1/sessions/{session}/message", "send_message", message)
            .summary("Send the agent a message")
            .details("The agent gets it as a user message, with the decision about its next step.")
            .parameter(name())
            .takes(ApiContent::json_like::<MessageBody>(json!({"text": "Use the staging database."})))
            .answers(
                "The message waits for the agent's next step.",
                ApiContent::json(&QueuedMessage { session: session(), queued: true }),
            )
            .refuses(
                StatusCode::BAD_REQUEST,
                "The body isn't `{\"text\":\"…\"}`, or the text is empty or too long.",
            )
            .refuses(StatusCode::NOT_FOUND, UNKNOWN),
    ]
}

fn checkpoint_operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::get("/v1/sessions/{session}/checkpoint", "get_checkpoint", checkpoint)
            .summary("Get the state of a session")
            .details("For another server, or for a later time.")
            .parameter(name())
            .answers("Its state.", ApiContent::json_like::<Checkpoint>(checkpoint_example()))
            .refuses(StatusCode::BAD_REQUEST, NOT_UTF_8)
            .refuses(StatusCode::NOT_FOUND, UNKNOWN),
        ApiOperation::put("/v1/sessions/{session}/checkpoint", "restore_checkpoint", restore)
            .summary("Replace the state of a session")
            .parameter(name())
            .takes(ApiContent::json_like::<Checkpoint>(checkpoint_example()))
            .answers(
                "The state is replaced.",
                ApiContent::json(&RestoredSession { session: "s1".into(), restored: true }),
            )
            .refuses(
                StatusCode::BAD_REQUEST,
                "The body isn't a checkpoint, or not one that this release reads.",
            ),
    ]
}

type SessionPath = Result<Path<String>, PathRejection>;

/// `GET /v1/sessions?after=&limit=`: names in order, and the `after` of the next page.
async fn list(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Response, HttpError> {
    let wrong = |_| HttpError::bad_request("`limit` is a number and `after` the name of a session");
    let Query(PageQuery { after, limit }) = query.map_err(wrong)?;
    let limit = limit.unwrap_or(PAGE);
    if limit == 0 || limit > LONGEST_PAGE {
        return Err(HttpError::bad_request(format!("`limit` must be 1 to {LONGEST_PAGE}")));
    }
    let mut found = blocking(&shared, move |access| {
        Ok(access
            .with(|broker, now| broker.sessions(&requester.project, after.as_deref(), limit + 1, now))??)
    })
    .await?;
    let has_more = found.len() as u64 > limit;
    if has_more {
        found.pop();
    }
    let next = found.last().filter(|_| has_more).cloned();
    Ok(json_response(&SessionPage { sessions: found, next }))
}

/// `GET /v1/sessions/{session}`: what is stored of it.
async fn show(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SessionPath,
) -> Result<Response, HttpError> {
    let session = session(path)?;
    let report = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| broker.session(&requester.project, &session, now))??)
    })
    .await?;
    report.map(|report| json_response(&report)).ok_or_else(|| HttpError::not_found("session"))
}

/// `POST /v1/sessions/{session}/reset`: deletes its state, and so lifts a stop.
async fn reset(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SessionPath,
) -> Result<Response, HttpError> {
    let session = session(path)?;
    let name = session.clone();
    let existed = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| broker.reset(&requester, &session, now))??)
    })
    .await?;
    Ok(json_response(&ResetSession { session: name, existed }))
}

/// `DELETE /v1/sessions/{session}`: deletes it, and what the audit log says about it, for good.
async fn purge(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SessionPath,
) -> Result<Response, HttpError> {
    let session = session(path)?;
    let name = session.clone();
    let purged = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| broker.purge(&requester, &session, now))??)
    })
    .await?;
    let (existed, purged_records) = (purged.existed, purged.records);
    Ok(json_response(&PurgedSession { session: name, existed, purged_records }))
}

/// `POST /v1/sessions/{session}/end`: the same as an `end` step.
async fn end(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SessionPath,
) -> Result<Response, HttpError> {
    let session = session(path)?;
    let metrics = Arc::clone(&shared);
    let decisions = blocking(&shared, move |access| {
        access.with(|broker, now| broker.ends(&requester, &session, now))?;
        let step = Step::end(session);
        let json = serde_json::to_vec(&step).map_err(|error| HttpError::failed(error.to_string()))?;
        let mut steps = [SentStep::new(step, &json)];
        let (caller, operator) = (CallerOptions::default(), requester.as_operator());
        let answers = access.with(|broker, now| broker.observe(&operator, caller, &mut steps, now))??;
        metrics.metrics.steps(&answers, 0);
        Ok(answers.decisions)
    })
    .await?;
    Ok(json_response(&decisions.first().and_then(|decided| decided.as_ref().ok())))
}

/// `POST /v1/sessions/{session}/message`: the agent gets the text as a user message, with the decision about its next
/// step.
async fn message(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SessionPath,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, HttpError> {
    let session = session(path)?;
    let name = session.clone();
    let body = body.map_err(|rejection| unread_body(&rejection))?;
    let MessageBody { text } = read_object(&body).map_err(|_| {
        HttpError::bad_request("the body must be {\"text\":\"…\"}, the message for the agent")
    })?;
    if text.trim().is_empty() || text.chars().count() > LONGEST_MESSAGE {
        return Err(HttpError::bad_request(format!("`text` must have 1 to {LONGEST_MESSAGE} characters")));
    }
    let known = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| broker.send(&requester, &session, &text, now))??)
    })
    .await?;
    match known {
        true => Ok(json_response(&QueuedMessage { session: name, queued: true })),
        false => Err(HttpError::not_found("session")),
    }
}

/// `GET /v1/sessions/{session}/checkpoint`: its state, for another server or a later time.
async fn checkpoint(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SessionPath,
) -> Result<Response, HttpError> {
    let session = session(path)?;
    let checkpoint = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| broker.checkpoint(&requester.project, &session, now))??)
    })
    .await?;
    checkpoint.map(|checkpoint| json_response(&checkpoint)).ok_or_else(|| HttpError::not_found("session"))
}

/// `PUT /v1/sessions/{session}/checkpoint`: replaces its state.
async fn restore(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SessionPath,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, HttpError> {
    let session = session(path)?;
    let name = session.clone();
    let body = body.map_err(|rejection| unread_body(&rejection))?;
    blocking(&shared, move |access| {
        let checkpoint: Checkpoint = read_object(&body)
            .map_err(|error| HttpError::bad_request(format!("not a checkpoint: {}", safe_error(&error))))?;
        Ok(access.with(|broker, now| broker.restore(&requester, &session, &checkpoint, now))??)
    })
    .await?;
    Ok(json_response(&RestoredSession { session: name, restored: true }))
}

fn session(path: SessionPath) -> Result<SessionId, HttpError> {
    path.map(|Path(name)| name.into()).map_err(|_| HttpError::bad_request("the session's name isn't UTF-8"))
}
