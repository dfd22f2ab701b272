use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use deloop_types::limits;
use serde_json::json;

use crate::http_error::{HttpError, json_response};
use crate::requester::Requester;
use crate::shared::{Shared, blocking};

type SwarmPath = Result<Path<String>, PathRejection>;

/// `GET /v1/swarms`: all names, in order.
pub(super) async fn list(State(shared): State<Arc<Shared>>) -> Result<Response, HttpError> {
    let swarms = blocking(&shared, |access| Ok(access.with(|broker, now| broker.swarms(now))??)).await?;
    Ok(json_response(&json!({"swarms": swarms})))
}

/// `GET /v1/swarms/{swarm}`: its calls, most frequent first, and the workers that made them.
pub(super) async fn show(State(shared): State<Arc<Shared>>, path: SwarmPath) -> Result<Response, HttpError> {
    let swarm = swarm(path)?;
    let state =
        blocking(&shared, move |access| Ok(access.with(|broker, now| broker.swarm(&swarm, now))??)).await?;
    state.map(|state| json_response(&state)).ok_or_else(|| HttpError::not_found("swarm"))
}

/// `DELETE /v1/swarms/{swarm}`: starts counting from zero.
pub(super) async fn clear(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SwarmPath,
) -> Result<Response, HttpError> {
    let swarm = swarm(path)?;
    let name = swarm.clone();
    let existed = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| {
            broker.audit_swarm("swarm.clear", &swarm, &requester, now);
            broker.clear_swarm(&swarm, now)
        })??)
    })
    .await?;
    Ok(json_response(&json!({"swarm": name, "existed": existed})))
}

fn swarm(path: SwarmPath) -> Result<String, HttpError> {
    path.map(|Path(name)| limits::name(name))
        .map_err(|_| HttpError::bad_request("the swarm's name isn't UTF-8"))
}
