//! The errors that every operation can have.

use std::time::Duration;

use axum::http::StatusCode;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::ApiContent;
use super::operation::ApiOperation;
use crate::access::is_public;
use crate::http_error::HttpError;
use crate::project::Project;

/// The body of every error.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// The reason, and what to do about it.
    error: String,
}

/// An error that many operations have, under its name in the document.
struct SharedRefusal {
    name: &'static str,
    when: &'static str,
    example: HttpError,
    /// Whether an operation that needs no key can have it.
    without_key: bool,
}

fn shared() -> [SharedRefusal; 8] {
    let refusal = |name, when, example| SharedRefusal { name, when, example, without_key: false };
    let always = |name, when, example| SharedRefusal { without_key: true, ..refusal(name, when, example) };
    [
        refusal(
            "Unauthorized",
            "The key is missing, unknown, expired or revoked; the answer doesn't say which.",
            HttpError::unauthorized(),
        ),
        always(
            "Forbidden",
            "The key doesn't have the scope, `project` is another project, the request names another host, or it comes \
             from a web page.",
            HttpError::foreign_project(),
        ),
        always(
            "Timeout",
            "The body took longer than 30 seconds to arrive, or the answer took longer than that.",
            HttpError::timeout(),
        ),
        always(
            "TooLarge",
            "The body has more than 64 MiB, or more than 10,000 steps.",
            HttpError::too_large(),
        ),
        always("Compressed", "The body is compressed.", HttpError::compressed()),
        refusal(
            "RateReached",
            "The key sends too many requests or steps per second, or the address too many requests without a valid key.",
            HttpError::too_many_failures(Duration::from_secs(1)),
        ),
        refusal("Failed", "deloop failed; its log has the reason.", HttpError::failed("")),
        refusal(
            "Unavailable",
            "The server handles as many requests as it can, or the database, Redis, the audit log or the key file fails.",
            HttpError::too_busy(256, "requests"),
        ),
    ]
}

/// Returns the response objects that operations refer to.
pub(super) fn components(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let response = |refusal: SharedRefusal| {
        let response = describe(refusal.example.status(), refusal.when, refusal.example.message(), generator);
        (refusal.name.to_owned(), response)
    };
    shared().into_iter().map(response).collect()
}

/// Returns the error responses of an operation, by status.
pub(super) fn responses(operation: &ApiOperation, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let public = is_public(operation.path);
    let mut responses: Map<String, Value> = shared()
        .iter()
        .filter(|refusal| refusal.without_key || !public)
        .map(|refusal| {
            let reference = json!({"$ref": format!("#/components/responses/{}", refusal.name)});
            (refusal.example.status().as_str().to_owned(), reference)
        })
        .collect();
    let bad = if public { "" } else { "`project` isn't the name of a project. " };
    let own =
        |status| operation.refusals.iter().find(|(refused, _)| *refused == status).map(|(_, when)| *when);
    let bad = format!("{bad}{}", own(StatusCode::BAD_REQUEST).unwrap_or("The request isn't valid HTTP."));
    let example = Project::parse("").err().unwrap_or_default();
    responses.insert("400".to_owned(), describe(StatusCode::BAD_REQUEST, &bad, &example, generator));
    for (status, when) in operation.refusals.iter().filter(|(status, _)| *status != StatusCode::BAD_REQUEST) {
        responses.insert(status.as_str().to_owned(), describe(*status, when, when, generator));
    }
    responses
}

fn describe(status: StatusCode, when: &str, example: &str, generator: &mut SchemaGenerator) -> Value {
    let content = ApiContent::json(&ErrorBody { error: example.to_owned() });
    let mut response =
        json!({"description": when, "content": {content.media_type: content.describe(generator)}});
    match status {
        StatusCode::UNAUTHORIZED => {
            response["headers"] = json!({"www-authenticate": {
                "description": "Always `Bearer`.", "required": true, "schema": {"const": "Bearer"},
            }});
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            response["headers"] = json!({"retry-after": {
                "description": "How long to wait, in seconds.", "required": true,
                "schema": {"type": "integer", "minimum": 1},
            }});
        }
        _ => {}
    }
    response
}
