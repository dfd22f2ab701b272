//! `deloop log --weekly`: how often each agent and project loops, week by week.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::path::Path;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use deloop_live::{RecordedDecision, WatchedSession};
use deloop_types::Millis;
use serde::Serialize;

use super::explain::{RecordedFinding, read};
use crate::exit::Failure;
use crate::redaction::harmless;
use crate::sessions::home_relative;

/// Number of weeks shown, the current one included.
const WEEKS: usize = 8;
const DAY: i64 = 24 * 3_600_000;
/// A change of the rate counts as a trend if it is at least this many standard deviations from no change.
const SIGMAS: f64 = 2.0;

/// Loops per week of each agent and project.
#[derive(Debug, Serialize)]
pub(super) struct Weekly {
    /// The Mondays that the weeks start with (UTC), oldest first.
    weeks: Vec<String>,
    groups: Vec<WeeklyGroup>,
}

/// The weeks of one agent in one project.
#[derive(Debug, Serialize)]
struct WeeklyGroup {
    agent: String,
    project: Option<String>,
    /// Sessions that started in each week.
    sessions: WeekCounts,
    /// Loops found in each week.
    loops: WeekCounts,
    trend: Trend,
}

/// One count per week, oldest first.
type WeekCounts = [u64; WEEKS];

/// How the loops per session of the last half of the weeks compare with the first half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Trend {
    Rising,
    Falling,
    Steady,
    /// One half has no sessions.
    Unknown,
}

/// Returns the first moment of the weeks shown at `now`.
pub(super) fn first(now: Millis) -> Millis {
    Millis(monday(now) - (WEEKS as i64 - 1) * 7 * DAY)
}

/// Returns the Monday of a week. Day 0 of the count was a Thursday.
fn monday(time: Millis) -> i64 {
    let day = time.0.div_euclid(DAY);
    (day - (day + 3).rem_euclid(7)) * DAY
}

impl Weekly {
    /// Counts the sessions and decisions of the weeks before `now`.
    pub(super) fn of(sessions: &[WatchedSession], decisions: &[RecordedDecision], now: Millis) -> Self {
        let first = first(now).0;
        let week =
            |time: Millis| usize::try_from((time.0 - first).div_euclid(7 * DAY)).ok().filter(|w| *w < WEEKS);
        let mut groups: BTreeMap<(String, Option<String>), (WeekCounts, WeekCounts)> = BTreeMap::new();
        let projects: HashMap<&str, &WatchedSession> =
            sessions.iter().map(|session| (session.session.as_str(), session)).collect();
        for session in sessions {
            let group = groups.entry((session.agent.clone(), session.project.clone())).or_default();
            week(session.since).into_iter().for_each(|week| group.0[week] += 1);
        }
        let mut known = HashSet::new();
        // The hand-off of a retried run is recorded without a detector, and neither a budget nor a stall is a loop.
        let is_loop = |decision: &RecordedDecision| {
            decision.detector.as_deref().is_some_and(|detector| !["over-budget", "stall"].contains(&detector))
        };
        for decision in decisions.iter().filter(|decision| !decision.wrong && is_loop(decision)) {
            if !known.insert(episode(decision)) {
                continue;
            }
            let project = projects.get(decision.session.as_str()).and_then(|session| session.project.clone());
            let group = groups.entry((decision.agent.clone(), project)).or_default();
            week(decision.ts).into_iter().for_each(|week| group.1[week] += 1);
        }
        let groups = groups.into_iter().map(|((agent, project), (sessions, loops))| WeeklyGroup {
            agent,
            project,
            trend: trend(&sessions, &loops),
            sessions,
            loops,
        });
        let mut groups: Vec<WeeklyGroup> = groups.collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.loops.iter().sum::<u64>()));
        let date = |week: usize| {
            let time = jiff::Timestamp::from_millisecond(first + week as i64 * 7 * DAY).unwrap_or_default();
            time.to_string().chars().take(10).collect()
        };
        Self { weeks: (0..WEEKS).map(date).collect(), groups }
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.groups.is_empty() {
            writeln!(out, "No sessions in the last {WEEKS} weeks.")?;
            return Ok(());
        }
        let [from, .., to] = self.weeks.as_slice() else { return Ok(()) };
        writeln!(out, "Loops per week, from the week of {from} to the week of {to} (so far)\n")?;
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        table.set_header(["agent", "project", "sessions", "loops", "per 100", "weeks", "trend"]);
        for group in &self.groups {
            let (sessions, loops) = (group.sessions.iter().sum::<u64>(), group.loops.iter().sum::<u64>());
            let project = group.project.as_deref().map(|path| harmless(&home_relative(Path::new(path))));
            let weeks: Vec<String> = group.loops.iter().map(u64::to_string).collect();
            table.add_row([
                Cell::new(harmless(&group.agent)),
                Cell::new(project.unwrap_or_else(|| "-".to_owned())),
                right(sessions.to_string()),
                right(loops.to_string()),
                #[expect(clippy::cast_precision_loss, reason = "counts of sessions")]
                right(if sessions == 0 {
                    "-".to_owned()
                } else {
                    format!("{:.1}", 100.0 * loops as f64 / sessions as f64)
                }),
                Cell::new(weeks.join(" ")),
                Cell::new(match group.trend {
                    Trend::Rising => "rising",
                    Trend::Falling => "falling",
                    Trend::Steady => "steady",
                    Trend::Unknown => "-",
                }),
            ]);
        }
        for line in table.lines() {
            // The table pads its cells on both sides.
            writeln!(out, "{}", line.strip_prefix(' ').unwrap_or(&line).trim_end())?;
        }
        Ok(())
    }
}

/// Identifies the loop that a decision is about. Its later decisions are about the same one.
fn episode(decision: &RecordedDecision) -> (&str, Option<&str>, Option<&str>, Option<u64>) {
    let findings: Vec<RecordedFinding> = read(decision.findings.as_deref());
    let since = RecordedFinding::main(&findings).map(|finding| finding.since);
    (&decision.session, decision.subagent.as_deref(), decision.detector.as_deref(), since)
}

/// Compares the loops per session of the last half of the weeks with the first half: a trend is a change that chance
/// rarely makes.
#[expect(clippy::cast_precision_loss, reason = "counts of sessions")]
fn trend(sessions: &WeekCounts, loops: &WeekCounts) -> Trend {
    let halves = |counts: &WeekCounts| {
        let (before, after) = counts.split_at(WEEKS / 2);
        (before.iter().sum::<u64>() as f64, after.iter().sum::<u64>() as f64)
    };
    let ((sessions_before, sessions_after), (before, after)) = (halves(sessions), halves(loops));
    if sessions_before == 0.0 || sessions_after == 0.0 {
        return Trend::Unknown;
    }
    let share = sessions_after / (sessions_before + sessions_after);
    let expected = (before + after) * share;
    let deviation = (expected * (1.0 - share)).sqrt();
    match after - expected {
        change if change >= SIGMAS * deviation && change > 0.0 => Trend::Rising,
        change if -change >= SIGMAS * deviation && change < 0.0 => Trend::Falling,
        _ => Trend::Steady,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_start_on_monday() {
        let sunday: jiff::Timestamp = "2026-11-15T23:59:59Z".parse().unwrap();
        let date = |millis: i64| jiff::Timestamp::from_millisecond(millis).unwrap().to_string();
        assert!(date(monday(Millis(sunday.as_millisecond()))).starts_with("2026-11-09T00:00:00"));
        assert!(date(monday(Millis(sunday.as_millisecond() + 1000))).starts_with("2026-11-16"));
        assert!(date(monday(Millis(0))).starts_with("1969-12-29"));
    }

    #[test]
    fn a_trend_is_more_than_chance() {
        let sessions = [10; WEEKS];
        assert_eq!(trend(&sessions, &[0, 0, 1, 0, 0, 1, 0, 1]), Trend::Steady);
        assert_eq!(trend(&sessions, &[0, 1, 0, 0, 3, 2, 4, 3]), Trend::Rising);
        assert_eq!(trend(&sessions, &[3, 2, 4, 3, 0, 1, 0, 0]), Trend::Falling);
        assert_eq!(trend(&[0, 0, 0, 0, 9, 9, 9, 9], &[0, 0, 0, 0, 3, 3, 3, 3]), Trend::Unknown);
        // Three times the loops in three times the sessions is no change.
        assert_eq!(trend(&[5, 5, 5, 5, 15, 15, 15, 15], &[1, 1, 1, 1, 3, 3, 3, 3]), Trend::Steady);
    }
}
