//! `deloop log`: what was decided lately, and why.

use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

use deloop_live::{DecisionFilter, Journal, RecordedDecision, SqliteJournal};
use deloop_types::Millis;
use serde_json::{Value, json};

use super::args::LogArgs;
use super::named::told;
use super::summary::Summary;
use super::weekly::{self, Weekly};
use super::words::{line, short, time};
use crate::exit::{self, Failure};
use crate::redaction::Redaction;
use crate::sessions::since::since;
use crate::state::{State, now};

/// How often `--follow` looks.
const BEAT: Duration = Duration::from_millis(500);
/// All that is kept.
const ALL: usize = 1 << 20;

pub(crate) fn run(args: &LogArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let now = now();
    let since = args.since.as_deref().map(|text| since(text, now)).transpose().map_err(Failure::new)?;
    let state = State::here()?;
    let store = match state.existing()? {
        Some(store) => store,
        None if args.follow => state.open()?,
        None => {
            if !args.json {
                writeln!(
                    out,
                    "No decisions yet: no agent has called deloop. `deloop install AGENT` sets up its hooks."
                )?;
            }
            return Ok(exit::OK);
        }
    };
    let agent = args
        .agent
        .as_deref()
        .map(|name| deloop_formats::hooks::hook_agent(name).map_or(name, |agent| agent.name()));
    let since = if args.weekly { Some(weekly::first(now)) } else { since };
    let filter = DecisionFilter { session: args.session.as_deref(), agent, run: None, since };
    let most = if args.summary || args.weekly { ALL } else { args.n };
    let mut rows = store.decisions(&filter, most).map_err(told)?;
    rows.reverse();
    if args.summary {
        let summary = Summary::of(&rows);
        if args.json {
            serde_json::to_writer(&mut *out, &summary)?;
            writeln!(out)?;
        } else {
            summary.print(out)?;
        }
        return Ok(exit::OK);
    }
    if args.weekly {
        let mut sessions = store.watched_sessions(weekly::first(now)).map_err(told)?;
        sessions.retain(|session| agent.is_none_or(|agent| session.agent == agent));
        let weekly = Weekly::of(&sessions, &rows, now);
        if args.json {
            serde_json::to_writer(&mut *out, &weekly)?;
            writeln!(out)?;
        } else {
            weekly.print(out)?;
        }
        return Ok(exit::OK);
    }
    let redaction = Redaction::new(false);
    print(&store, &rows, args.json, &redaction, out)?;
    if !args.json {
        if rows.is_empty() && !args.follow {
            writeln!(out, "No decisions{}.", if since.is_some() { " since then" } else { "" })?;
        }
        standing(&store, now, out)?;
    }
    if args.follow {
        follow(&store, filter, &rows, args.json, &redaction, out)?;
    }
    Ok(exit::OK)
}

fn print(
    store: &SqliteJournal,
    rows: &[RecordedDecision],
    as_json: bool,
    redaction: &Redaction,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for row in rows {
        if as_json {
            let attempt = row.run.as_deref().and_then(|run| store.attempt(run).ok().flatten());
            serde_json::to_writer(&mut *out, &object(row, attempt.map(|run| run.attempt), redaction))?;
            writeln!(out)?;
        } else {
            writeln!(out, "{}", line(row, redaction))?;
        }
    }
    Ok(())
}

/// What holds now.
fn standing(store: &SqliteJournal, now: Millis, out: &mut dyn Write) -> Result<(), Failure> {
    for (session, until) in store.pauses(now).map_err(told)? {
        let who = session.map_or_else(|| "every session".to_owned(), |s| format!("session {}", short(&s)));
        writeln!(out, "Paused: {who}, until {}. `deloop resume` ends it.", time(until))?;
    }
    let allowed = store.allowed().map_err(told)?.len();
    if allowed > 0 {
        let patterns = if allowed == 1 { "pattern" } else { "patterns" };
        writeln!(out, "Ignored calls: {allowed} {patterns}. `deloop allow --list` lists them.")?;
    }
    Ok(())
}

fn follow(
    store: &SqliteJournal,
    mut filter: DecisionFilter<'_>,
    shown: &[RecordedDecision],
    as_json: bool,
    redaction: &Redaction,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut seen: HashSet<String> = shown.iter().map(|row| row.id.clone()).collect();
    filter.since = Some(shown.last().map_or_else(now, |row| row.ts));
    loop {
        out.flush()?;
        std::thread::sleep(BEAT);
        let mut rows = store.decisions(&filter, ALL).map_err(told)?;
        rows.reverse();
        rows.retain(|row| seen.insert(row.id.clone()));
        print(store, &rows, as_json, redaction, out)?;
        if let Some(row) = rows.last() {
            filter.since = Some(row.ts);
        }
    }
}

/// A decision as JSON.
fn object(row: &RecordedDecision, attempt: Option<u64>, redaction: &Redaction) -> Value {
    let parsed = |text: &Option<String>| -> Value {
        text.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
    };
    let masked = |text: &Option<String>| text.as_deref().map(|text| redaction.text(text, 4000));
    json!({
        "id": row.id, "ts": row.ts.to_string(), "agent": row.agent, "session": row.session,
        "subagent": row.subagent, "run": row.run, "attempt": attempt, "step": row.step, "action": row.action, "would": row.would,
        "level": row.level, "rung": row.rung, "detector": row.detector, "summary": masked(&row.summary),
        "message": masked(&row.message), "status": row.status, "delivered": row.delivered, "held": row.held,
        "outcome": row.outcome, "episode": row.episode, "side": row.side, "wrong": row.wrong, "findings": parsed(&row.findings), "recent_calls": parsed(&row.recent_calls),
    })
}
