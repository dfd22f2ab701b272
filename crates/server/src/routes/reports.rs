use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use crate::http_error::{HttpError, json_response};
use crate::money::UtcDay;
use crate::openapi::{ApiContent, ApiOperation, ApiParameter};
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
struct ReportQuery {
    project: Option<String>,
    date: Option<String>,
    weeks: Option<usize>,
}

pub(super) fn operations() -> Vec<ApiOperation> {
    let day = json!({"type": "string", "pattern": "^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$"});
    let figures = json!({
        "requests": 7, "tokens": 89_600, "cost_usd": 0.336, "unpriced_requests": 0, "loop_waste_usd": 0.24,
        "loops": 1, "terminated": 1,
    });
    let daily_example =
        json!({"date": "2026-11-15", "total": figures, "day_before": figures, "projects": []});
    let weekly_example = json!({"weeks": ["2026-11-09"], "groups": []});
    vec![
        ApiOperation::get("/v1/reports/daily", "get_daily_report", daily)
            .summary("Get what was spent on a day")
            .parameter(ApiParameter::query(
                "date",
                "The day (UTC); today if absent.",
                day,
                json!("2026-11-15"),
            ))
            .answers(
                "Spend by project, model and agent.",
                ApiContent::json_like::<reports::DailyReport>(daily_example),
            )
            .refuses(StatusCode::BAD_REQUEST, "A parameter is wrong."),
        ApiOperation::get("/v1/reports/weekly", "get_weekly_report", weekly)
            .summary("Get how often agents loop")
            .parameter(ApiParameter::query(
                "weeks",
                "How many weeks, 8 if absent.",
                json!({"type": "integer", "minimum": 1, "maximum": MOST_WEEKS}),
                json!(8),
            ))
            .answers(
                "Loops per week, by project, agent and model.",
                ApiContent::json_like::<reports::WeeklyReport>(weekly_example),
            )
            .refuses(StatusCode::BAD_REQUEST, "A parameter is wrong."),
    ]
}

/// `GET /v1/reports/daily?date=&project=`: what was spent on a day, today if absent.
async fn daily(
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
async fn weekly(
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
