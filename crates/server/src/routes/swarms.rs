use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use deloop_detect::{SwarmFingerprint, SwarmState};
use deloop_types::limits;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http_error::{HttpError, json_response};
use crate::openapi::{ApiContent, ApiOperation, ApiParameter};
use crate::requester::Requester;
use crate::shared::{Shared, blocking};

type SwarmPath = Result<Path<String>, PathRejection>;

/// The swarms of a project.
#[derive(Serialize, JsonSchema)]
struct SwarmNames {
    /// All names, in order.
    swarms: Vec<String>,
}

/// A swarm that counts from zero.
#[derive(Serialize, JsonSchema)]
struct ClearedSwarm {
    swarm: String,
    /// Whether there was one.
    existed: bool,
}

pub(super) fn operations() -> Vec<ApiOperation> {
    let example = SwarmState {
        calls: 12,
        workers: 2,
        window: 100,
        fingerprints: vec![SwarmFingerprint {
            fingerprint: "5f0c".to_owned(),
            tool: "bash".to_owned(),
            call: "npm ci".to_owned(),
            total_calls: 12,
            worker_count: 2,
            workers: vec!["s1".to_owned(), "s2".to_owned()],
        }],
    };
    let name = || ApiParameter::path("swarm", "The name of the swarm, percent-encoded.", "nightly");
    vec![
        ApiOperation::get("/v1/swarms", "list_swarms", list)
            .summary("List swarms")
            .answers("All names.", ApiContent::json(&SwarmNames { swarms: vec!["nightly".to_owned()] })),
        ApiOperation::get("/v1/swarms/{swarm}", "get_swarm", show)
            .summary("Get the calls of a swarm")
            .parameter(name())
            .answers(
                "Its recent calls, most frequent first, and the workers that made them.",
                ApiContent::json(&example),
            )
            .refuses(StatusCode::BAD_REQUEST, "The name isn't UTF-8.")
            .refuses(StatusCode::NOT_FOUND, "there is no such swarm"),
        ApiOperation::delete("/v1/swarms/{swarm}", "clear_swarm", clear)
            .summary("Clear a swarm")
            .details("Starts counting from zero.")
            .parameter(name())
            .answers(
                "The swarm is cleared.",
                ApiContent::json(&ClearedSwarm { swarm: "nightly".to_owned(), existed: true }),
            )
            .refuses(StatusCode::BAD_REQUEST, "The name isn't UTF-8."),
    ]
}

/// `GET /v1/swarms`: all names, in order.
async fn list(State(shared): State<Arc<Shared>>, requester: Requester) -> Result<Response, HttpError> {
    let swarms = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| broker.swarms(&requester.project, now))??)
    })
    .await?;
    Ok(json_response(&SwarmNames { swarms }))
}

/// `GET /v1/swarms/{swarm}`: its calls, most frequent first, and the workers that made them.
async fn show(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SwarmPath,
) -> Result<Response, HttpError> {
    let swarm = swarm(path)?;
    let state = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| broker.swarm(&requester.project, &swarm, now))??)
    })
    .await?;
    state.map(|state| json_response(&state)).ok_or_else(|| HttpError::not_found("swarm"))
}

/// `DELETE /v1/swarms/{swarm}`: starts counting from zero.
async fn clear(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: SwarmPath,
) -> Result<Response, HttpError> {
    let swarm = swarm(path)?;
    let name = swarm.clone();
    let existed = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| broker.clear_swarm(&requester, &swarm, now))??)
    })
    .await?;
    Ok(json_response(&ClearedSwarm { swarm: name, existed }))
}

fn swarm(path: SwarmPath) -> Result<String, HttpError> {
    path.map(|Path(name)| limits::name(name))
        .map_err(|_| HttpError::bad_request("the swarm's name isn't UTF-8"))
}
