use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use deloop_engine::Checkpoint;
use deloop_types::{SessionId, Step};
use serde::Deserialize;
use serde_json::json;

use super::unread_body;
use crate::broker::SentStep;
use crate::caller_options::CallerOptions;
use crate::http_error::{HttpError, json_response, safe_error};
use crate::requester::Requester;
use crate::shared::{Shared, blocking};

/// How many sessions a page has, unless the request says.
const PAGE: u64 = 100;
/// Maximum number of sessions on a page.
const LONGEST_PAGE: u64 = 1_000;
/// Maximum length of a message for an agent, in bytes.
const LONGEST_MESSAGE: usize = 8_000;

/// Which page of the sessions to list.
#[derive(Deserialize)]
pub(super) struct PageQuery {
    after: Option<String>,
    limit: Option<u64>,
}

type SessionPath = Result<Path<String>, PathRejection>;

/// `GET /v1/sessions?after=&limit=`: names in order, and the `after` of the next page.
pub(super) async fn list(
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
    let next = found.last().filter(|_| has_more);
    Ok(json_response(&json!({"sessions": found, "next": next})))
}

/// `GET /v1/sessions/{session}`: what is stored of it.
pub(super) async fn show(
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
pub(super) async fn reset(
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
    Ok(json_response(&json!({"session": name, "existed": existed})))
}

/// `DELETE /v1/sessions/{session}`: deletes it, and what the audit log says about it, for good.
pub(super) async fn purge(
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
    let answer = json!({"session": name, "existed": purged.existed, "purged_records": purged.records});
    Ok(json_response(&answer))
}

/// `POST /v1/sessions/{session}/end`: the same as an `end` step.
pub(super) async fn end(
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
        let steps = [SentStep { step, json: &json }];
        let caller = CallerOptions::default();
        let answers = access.with(|broker, now| broker.observe(&requester, caller, &steps, now))??;
        metrics.metrics.steps(&answers, 0);
        Ok(answers.decisions)
    })
    .await?;
    Ok(json_response(&decisions.first()))
}

/// A message for an agent.
#[derive(Deserialize)]
struct MessageBody {
    text: String,
}

/// `POST /v1/sessions/{session}/message`: the agent gets the text as a user message, with the decision about its next
/// step.
pub(super) async fn message(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SessionPath,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, HttpError> {
    let session = session(path)?;
    let name = session.clone();
    let body = body.map_err(|rejection| unread_body(&rejection))?;
    let MessageBody { text } = serde_json::from_slice(&body).map_err(|_| {
        HttpError::bad_request("the body must be {\"text\":\"…\"}, the message for the agent")
    })?;
    if text.trim().is_empty() || text.len() > LONGEST_MESSAGE {
        return Err(HttpError::bad_request(format!("`text` must have 1 to {LONGEST_MESSAGE} bytes")));
    }
    let known = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| broker.send(&requester, &session, &text, now))??)
    })
    .await?;
    match known {
        true => Ok(json_response(&json!({"session": name, "queued": true}))),
        false => Err(HttpError::not_found("session")),
    }
}

/// `GET /v1/sessions/{session}/checkpoint`: its state, for another server or a later time.
pub(super) async fn checkpoint(
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
pub(super) async fn restore(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SessionPath,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, HttpError> {
    let session = session(path)?;
    let name = session.clone();
    let body = body.map_err(|rejection| unread_body(&rejection))?;
    blocking(&shared, move |access| {
        let checkpoint: Checkpoint = serde_json::from_slice(&body).map_err(|error| {
            HttpError::bad_request(format!("not a checkpoint: {}", safe_error(&error.to_string())))
        })?;
        Ok(access.with(|broker, now| broker.restore(&requester, &session, &checkpoint, now))??)
    })
    .await?;
    Ok(json_response(&json!({"session": name, "restored": true})))
}

fn session(path: SessionPath) -> Result<SessionId, HttpError> {
    path.map(|Path(name)| name.into()).map_err(|_| HttpError::bad_request("the session's name isn't UTF-8"))
}
