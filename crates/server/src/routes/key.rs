use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::access::KeyScope;
use crate::http_error::json_response;
use crate::openapi::{ApiContent, ApiOperation, all_required};
use crate::requester::Requester;

/// What the key of a request is.
#[derive(Serialize, JsonSchema)]
#[schemars(transform = all_required)]
struct OwnKey {
    /// Its name; `local` on a server without keys.
    name: String,
    /// The project whose sessions and swarms it can use; null for all projects.
    project: Option<String>,
    /// The keys that share their sessions with it, its own name by default; null on a server without keys.
    group: Option<String>,
    /// What it allows.
    scopes: Vec<String>,
    /// Whether human text, an `intervention` and an `end` that it sends lift a stop.
    lifts_stops: bool,
}

pub(super) fn operations() -> Vec<ApiOperation> {
    let example = OwnKey {
        name: "ci".to_owned(),
        project: Some("web".to_owned()),
        group: Some("ci".to_owned()),
        scopes: vec![KeyScope::Ingest.name().to_owned()],
        lifts_stops: false,
    };
    vec![
        ApiOperation::get("/v1/key", "get_key", show)
            .summary("Get what your own key allows")
            .answers("The key's name, project, group and scopes.", ApiContent::json(&example)),
    ]
}

/// `GET /v1/key`: what the key of the request is.
async fn show(requester: Requester) -> Response {
    json_response(&OwnKey {
        name: requester.actor.to_string(),
        project: (!requester.all_projects).then(|| requester.project.to_string()),
        group: requester.owner.as_deref().map(str::to_owned),
        scopes: requester.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
        lifts_stops: requester.speaks_for_people(),
    })
}
