use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use deloop_types::SessionId;
use serde::Deserialize;
use serde_json::json;

use super::unread_body;
use crate::http_error::{HttpError, json_response, safe_error};
use crate::money::{GrantError, OverrideRequest};
use crate::requester::Requester;
use crate::shared::{Shared, blocking};

/// Which budgets to show.
#[derive(Deserialize)]
pub(super) struct BudgetsQuery {
    project: Option<String>,
    session: Option<String>,
}

/// `GET /v1/budgets?project=&session=`: limits, spend and overrides.
pub(super) async fn show(
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
pub(super) async fn grant(
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
    Ok(json_response(&json!({"override": granted.shown()})))
}

/// `DELETE /v1/budgets/override/{id}`: ends an override.
pub(super) async fn revoke(
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
    Ok(json_response(&json!({"id": name, "revoked": true})))
}
