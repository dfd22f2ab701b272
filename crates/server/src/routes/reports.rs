use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use crate::http_error::{HttpError, json_response};
use crate::money::UtcDay;
use crate::project::Project;
use crate::reports;
use crate::requester::Requester;
use crate::shared::{Shared, blocking};

/// How many weeks a report has, unless the request says.
const WEEKS: usize = 8;
/// Maximum number of weeks of a report.
const MOST_WEEKS: usize = 52;

/// Which report to return.
#[derive(Deserialize)]
pub(super) struct ReportQuery {
    project: Option<String>,
    date: Option<String>,
    weeks: Option<usize>,
}

/// `GET /v1/reports/daily?date=&project=`: what was spent on a day, today if absent.
pub(super) async fn daily(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    query: Result<Query<ReportQuery>, QueryRejection>,
) -> Result<Response, HttpError> {
    let wrong = "`date` is a day such as 2026-11-15";
    let Query(query) = query.map_err(|_| HttpError::bad_request(wrong))?;
    let day = query.date.as_deref().map(|date| UtcDay::parse(date).ok_or(wrong)).transpose();
    let day = day.map_err(HttpError::bad_request)?;
    let project = project(&query, &requester);
    let report = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| {
            let records = broker.money(now)?.records();
            reports::daily(records, project.as_ref(), day.unwrap_or(UtcDay::of(now)), now)
        })??)
    })
    .await?;
    Ok(json_response(&report))
}

/// `GET /v1/reports/weekly?weeks=&project=`: how often agents loop, week by week.
pub(super) async fn weekly(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    query: Result<Query<ReportQuery>, QueryRejection>,
) -> Result<Response, HttpError> {
    let wrong = || HttpError::bad_request(format!("`weeks` must be 1 to {MOST_WEEKS}"));
    let Query(query) = query.map_err(|_| wrong())?;
    let weeks = query.weeks.unwrap_or(WEEKS);
    if !(1..=MOST_WEEKS).contains(&weeks) {
        return Err(wrong());
    }
    let project = project(&query, &requester);
    let report = blocking(&shared, move |access| {
        Ok(access.with(|broker, now| {
            reports::weekly(broker.money(now)?.records(), project.as_ref(), weeks, now)
        })??)
    })
    .await?;
    Ok(json_response(&report))
}

/// Returns the project that a report is about; `None` for all.
fn project(query: &ReportQuery, requester: &Requester) -> Option<Project> {
    let is_all = query.project.is_none() && requester.sees_all();
    (!is_all).then(|| requester.project.clone())
}
