use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use deloop_types::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::unread_body;
use crate::http_error::{HttpError, json_response, safe_error};
use crate::money::{GrantError, OverrideRequest};
use crate::openapi::{ApiContent, ApiOperation, ApiParameter};
use crate::reports::BudgetsReport;
use crate::requester::Requester;
use crate::shared::{Shared, blocking};

/// Which budgets to show.
#[derive(Deserialize)]
struct BudgetsQuery {
    project: Option<String>,
    session: Option<String>,
}

/// The body of an override.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes what is read")]
struct OverrideBody {
    /// The project; without it, the project of the request.
    project: Option<String>,
    /// The session; without it, all of the project.
    session: Option<String>,
    /// How many dollars more, at most 10,000.
    usd: f64,
    /// A length such as `90m` or `2h`, or a time such as `2026-11-15T18:00:00Z`; at most 7 days.
    until: String,
    /// Why, for the audit log.
    reason: String,
}

/// An override that was granted.
#[derive(Serialize, JsonSchema)]
struct GrantedOverride {
    /// The override.
    #[serde(rename = "override")]
    granted: Value,
}

/// An override that was ended.
#[derive(Serialize, JsonSchema)]
struct RevokedOverride {
    id: String,
    revoked: bool,
}

pub(super) fn operations() -> Vec<ApiOperation> {
    let session = || {
        let about = "A session whose budget is shown, too.";
        ApiParameter::query("session", about, json!({"type": "string"}), json!("s1"))
    };
    let example = json!({
        "id": "o1", "project": "web", "session": null, "usd": 5.0, "granted": "2026-11-15T16:00:00Z",
        "until": "2026-11-15T18:00:00Z", "actor": "alice", "reason": "release",
    });
    let report = json!({
        "date": "2026-11-15", "warn_at": 0.8, "day_limit_usd": 100.0, "day_spent_usd": null, "projects": [],
        "session": null, "overrides": [example],
    });
    let asked = json!({"project": "web", "usd": 5.0, "until": "2h", "reason": "release"});
    vec![
        ApiOperation::get("/v1/budgets", "get_budgets", show)
            .summary("Get budgets, spend and overrides")
            .parameter(session())
            .answers("Limits, today's spend and overrides.", ApiContent::json_like::<BudgetsReport>(report))
            .refuses(StatusCode::BAD_REQUEST, "A parameter is wrong."),
        ApiOperation::post("/v1/budgets/override", "override_budget", grant)
            .summary("Let a project or a session spend more for a while")
            .takes(ApiContent::json_like::<OverrideBody>(asked))
            .answers("The override.", ApiContent::json(&GrantedOverride { granted: example.clone() }))
            .refuses(StatusCode::BAD_REQUEST, "The body isn't an override, or a limit is exceeded."),
        ApiOperation::delete("/v1/budgets/override/{id}", "revoke_override", revoke)
            .summary("End an override")
            .parameter(ApiParameter::path("id", "The override's id.", "o1"))
            .answers(
                "The override has ended.",
                ApiContent::json(&RevokedOverride { id: "o1".to_owned(), revoked: true }),
            )
            .refuses(StatusCode::BAD_REQUEST, "The id isn't UTF-8.")
            .refuses(StatusCode::NOT_FOUND, "there is no such override in this project"),
    ]
}

/// `GET /v1/budgets?project=&session=`: limits, spend and overrides.
async fn show(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    query: Result<Query<BudgetsQuery>, QueryRejection>,
) -> Result<Response, HttpError> {
    let wrong = |_| HttpError::bad_request("`project` and `session` are names, each at most once");
    let Query(BudgetsQuery { project, session }) = query.map_err(wrong)?;
    let session = session.map(SessionId::from);
    let is_all = project.is_none() && session.is_none() && requester.sees_all();
    let report = blocking(&shared, move |access| {
        let of = (!is_all).then_some(&requester.project);
        Ok(access.with(|broker, now| broker.money(now)?.report(of, session.as_ref(), now))??)
    })
    .await?;
    Ok(json_response(&report))
}

/// `POST /v1/budgets/override`: lets a project or a session spend more for a while.
async fn grant(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, HttpError> {
    let body = body.map_err(|rejection| unread_body(&rejection))?;
    let request: OverrideRequest = serde_json::from_slice(&body).map_err(|error| {
        HttpError::bad_request(format!(
            "not an override such as {{\"project\":\"web\",\"usd\":5,\"until\":\"2h\",\"reason\":\"release\"}}: {}",
            safe_error(&error.to_string())
        ))
    })?;
    let project = requester.for_project(request.project.as_deref())?;
    let (granted, _) = blocking(&shared, move |access| {
        let done = access.with(|broker, now| {
            let done = broker.money(now)?.grant(&request, &project, &requester.actor, now);
            done.inspect(|(_, change)| broker.budget_changed(change, now))
        })?;
        done.map_err(|error| match error {
            GrantError::Wrong(message) => HttpError::bad_request(message),
            GrantError::Store(error) => error.into(),
        })
    })
    .await?;
    Ok(json_response(&GrantedOverride { granted: granted.shown() }))
}

/// `DELETE /v1/budgets/override/{id}`: ends an override.
async fn revoke(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpError> {
    let Path(id) = path.map_err(|_| HttpError::bad_request("the override's id isn't UTF-8"))?;
    let name = id.clone();
    let change = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| {
            let done = broker.money(now)?.revoke(&id, &requester.project, &requester.actor, now);
            done.inspect(|change| change.iter().for_each(|change| broker.budget_changed(change, now)))
        })??)
    })
    .await?;
    change.ok_or_else(|| HttpError::not_found("override in this project"))?;
    Ok(json_response(&RevokedOverride { id: name, revoked: true }))
}
