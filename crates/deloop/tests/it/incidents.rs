//! Public reports of runaways, rebuilt as streams: at which share of the loss deloop ends each.

mod expansion;
mod measure;
mod report;
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use measure::{MeasuredIncident, measure_all};
use report::IncidentReport;

/// A corpus of one kind would show little.
#[test]
fn the_reports_are_many_and_varied() {
    let reports = IncidentReport::all();
    assert!(reports.len() >= 50, "{} incidents", reports.len());
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for report in &reports {
        *kinds.entry(&report.kind).or_default() += 1;
        assert_eq!(
            report.is_stall(),
            report.kind == "stall",
            "{}: only hangs are left to `run`",
            report.slug
        );
    }
    assert!(
        kinds.values().all(|count| count * 5 <= reports.len()),
        "no kind is more than a fifth: {kinds:?}"
    );
    assert!(kinds.get("stall").is_none_or(|count| *count <= 4), "{kinds:?}");
}

/// One test, because each test is a process of its own and the replay takes a while.
#[test]
fn the_page_on_incidents_is_current() {
    let measured = measure_all();
    the_streams_add_up_to_the_reported_loss(&measured);
    most_incidents_are_ended(&measured);
    the_page_is_current(&measured);
}

fn the_streams_add_up_to_the_reported_loss(measured: &[MeasuredIncident]) {
    let wrong: Vec<String> = measured
        .iter()
        .filter(|one| (one.total / one.report.loss.amount - 1.0).abs() > 0.03)
        .map(|one| format!("{}: {} instead of {}", one.report.slug, one.total, one.report.loss.amount))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The page pins what happens in each incident, so a change of behaviour shows as a change of the page.
fn the_page_is_current(measured: &[MeasuredIncident]) {
    let page = table::page(measured);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/incidents.md");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let different = page.lines().filter(|line| !kept.lines().any(|old| old == *line));
    let different: Vec<&str> = different.collect();
    assert!(
        kept == page,
        "docs/incidents.md is old: run this test once with UPDATE_SCHEMAS=1\n{}",
        different.join("\n")
    );
}

/// The page has the figures; these must not get worse.
fn most_incidents_are_ended(measured: &[MeasuredIncident]) {
    let ended = measured.iter().filter(|one| one.spent < 0.995).count();
    let early = measured.iter().filter(|one| one.is_ended_early()).count();
    assert!(ended >= 70 && early >= 43, "{ended} of {} end, {early} early", measured.len());
}
