//! `deloop state`: what deloop currently knows of a running session.

use std::io::Write;
use std::path::Path;

use deloop_detect::{KnownFailure, SpawnTotals, clean};
use deloop_engine::{AgentReport, Engine, LoopDetectionState, Session};
use deloop_live::SqliteJournal;
use deloop_store::Store;
use deloop_types::{Millis, SessionId};
use serde_json::{Map, Value};

use super::args::StateArgs;
use super::named::{self, told};
use super::words::time;
use crate::config;
use crate::exit::{self, Failure};
use crate::project;
use crate::state::State;

pub(crate) fn run(args: &StateArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let config = config::load_for_hook(&args.rules);
    let none = || Failure::new(format!("no session `{}`; `deloop log` lists the sessions", args.session));
    let journal = State::here()?.existing()?.ok_or_else(none)?;
    let session = SessionId::from(named::session(&journal, &args.session)?);
    let engine = Engine::new(config.profile, config.options);
    let mut reports = engine.report(journal.store(), &session).map_err(told)?;
    if reports.is_empty() {
        return Err(Failure::new(format!("session `{session}` has ended, so there is no state to show")));
    }
    if let Some(agent) = &args.agent {
        reports.retain(|report| report.agent.as_ref() == Some(agent));
        if reports.is_empty() {
            return Err(Failure::new(format!("session `{session}` has no agent `{agent}`")));
        }
    }
    for report in &reports {
        if args.json {
            writeln!(out, "{}", json(&session, report)?)?;
        } else {
            print(&session, report, &engine.profile().name, out)?;
        }
    }
    if !args.json {
        print_failures(&journal, &session, out)?;
    }
    Ok(exit::OK)
}

/// Returns one object per agent. The fields of `LoopDetectionState` come first, under their own names.
fn json(session: &SessionId, report: &AgentReport) -> Result<Value, Failure> {
    let mut object = match serde_json::to_value(&report.loop_detection_state)? {
        Value::Object(state) => state,
        _ => Map::new(),
    };
    let more = [
        ("session", serde_json::to_value(session)?),
        ("agent", serde_json::to_value(&report.agent)?),
        ("ladders", serde_json::to_value(&report.reached)?),
        ("stop", serde_json::to_value(&report.stop)?),
        ("subagents", serde_json::to_value(report.subagents)?),
    ];
    object.extend(more.map(|(key, value)| (key.to_owned(), value)));
    Ok(Value::Object(object))
}

fn print(
    session: &SessionId,
    report: &AgentReport,
    profile: &str,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let session = clean(session.as_str(), 200);
    match &report.agent {
        Some(agent) => writeln!(out, "Session {session}, subagent {}:", clean(agent, 200))?,
        None => writeln!(out, "Session {session}:")?,
    }
    let tool = report.last_tool.as_deref().map_or_else(|| "none yet".to_owned(), |tool| clean(tool, 60));
    writeln!(out, "  Last tool: {tool}")?;
    match &report.loop_detection_state {
        Some(state) => print_streak(state, out)?,
        None => writeln!(
            out,
            "  Calls in a row: profile `{profile}` doesn't count them. If the session uses another profile, name it with --profile."
        )?,
    }
    for rung in &report.reached {
        let name = rung.rung.as_ref().map(|name| format!(", \"{name}\"")).unwrap_or_default();
        let (detector, level, rungs) = (&rung.detector, rung.level, rung.rungs);
        writeln!(out, "  Ladder: {detector} is at rung {level} of {rungs} ({}{name})", rung.action)?;
    }
    if report.reached.is_empty() {
        writeln!(out, "  Ladder: no rung reached")?;
    }
    match &report.stop {
        Some(stop) => {
            let why = stop.user_message.as_deref().or(stop.status.as_deref()).unwrap_or("no reason recorded");
            writeln!(out, "  Stopped: {}", clean(why, 400))?;
        }
        None => writeln!(out, "  Stopped: no")?,
    }
    if let Some(SpawnTotals { spawns, subagents, deepest, tokens, .. }) = report.subagents {
        writeln!(
            out,
            "  Subagents: {spawns} started, {subagents} seen at work, at most {deepest} levels deep, {tokens} tokens used"
        )?;
    }
    Ok(())
}

/// Prints how many failures the session's project remembers, if any.
fn print_failures(journal: &SqliteJournal, session: &SessionId, out: &mut dyn Write) -> Result<(), Failure> {
    let folder = journal.source(session.as_str()).map_err(told)?.and_then(|source| source.project);
    let Some(project) = folder.and_then(|folder| project::id_of(Path::new(&folder))) else { return Ok(()) };
    let known = Store::<Session>::failures(journal.store(), &project).map_err(told)?;
    let Some(most) = known.iter().max_by_key(|failure| (failure.sessions, failure.workers)) else {
        return Ok(());
    };
    let since = most.first.map(|first| format!(", since {}", time(first))).unwrap_or_default();
    let KnownFailure { sessions, workers, .. } = most;
    Ok(writeln!(
        out,
        "Known failures of the project: {} (the most frequent one: {sessions} sessions, {workers} agents{since})",
        known.iter().count()
    )?)
}

fn print_streak(state: &LoopDetectionState, out: &mut dyn Write) -> Result<(), Failure> {
    let LoopDetectionState { consecutive_count, threshold, fuzzy_threshold, last_warning_time, .. } = state;
    let verdict = if state.doom_loop_detected { "a loop" } else { "not a loop" };
    writeln!(
        out,
        "  Calls in a row: {consecutive_count}, {verdict} (thresholds: {threshold} identical calls, {fuzzy_threshold} calls with the same target)"
    )?;
    let warned = match last_warning_time {
        0 => "never".to_owned(),
        at => time(Millis(*at)),
    };
    Ok(writeln!(out, "  Last warning: {warned}")?)
}
