//! `deloop status`: which agents are installed, which have hooks, when each hook last ran, and what projects used today.

use std::io::Write;

use comfy_table::{ContentArrangement, Table, presets};
use deloop_formats::hooks::{HookLine, Installable, installables};
use deloop_live::{DecisionFilter, HookCalls, RecordedDecision};
use deloop_types::Millis;
use serde::Serialize;

use crate::args::RuleArgs;
use crate::ceilings;
use crate::config;
use crate::exit::{self, Failure};
use crate::install::args::{Scope, StatusArgs};
use crate::install::here;
use crate::scan::table::Screen;
use crate::server_link;
use crate::state::{State, now};

/// The period of the counts.
const LATELY: u64 = 7 * 24 * 3_600_000;
/// More decisions than the database keeps.
const ALL: usize = 1 << 20;

/// The status of one agent.
#[derive(Debug, Serialize)]
struct AgentStatus {
    agent: &'static str,
    title: &'static str,
    /// Whether it has been tested with the real program.
    verified: bool,
    /// Whether its program or its settings are on this machine.
    found: bool,
    /// Its program, if it is on PATH.
    program: Option<String>,
    version: Option<String>,
    /// Where deloop is installed.
    installed: Vec<Installation>,
    /// When it last called deloop, in milliseconds since 1970.
    last_called_ms: Option<i64>,
    calls: u64,
    /// Number of decisions in the last seven days.
    decisions: usize,
    /// Number of sessions with a decision in the last seven days.
    sessions: usize,
    /// What to do about it.
    note: Option<String>,
}

/// One installation.
#[derive(Debug, Serialize)]
struct Installation {
    scope: &'static str,
    file: String,
    mode: Option<String>,
    program: Option<String>,
    /// Why the file can't be read.
    error: Option<String>,
}

pub(crate) fn run(args: &StatusArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let store = State::here()?.existing()?;
    let (calls, decisions) = match &store {
        Some(store) => {
            let told = |e: deloop_store::StoreError| Failure::new(e.to_string());
            (store.calls().map_err(told)?, store.decisions(&DecisionFilter::default(), ALL).map_err(told)?)
        }
        None => Default::default(),
    };
    let rows: Vec<AgentStatus> = installables().map(|agent| row(&agent, &calls, &decisions)).collect();
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &rows)?;
        writeln!(out)?;
        for notice in config::load_checked(&RuleArgs::default()).notices {
            crate::print::tell(format_args!("deloop: {notice}"));
        }
        return Ok(exit::OK);
    }
    print(&rows, out)?;
    print_server(&calls, out)?;
    ceilings::print_today(store.as_ref(), out)?;
    for damage in State::here()?.damage() {
        writeln!(out, "Database: {damage}")?;
    }
    Ok(exit::OK)
}

/// Prints how often a server that should have decided didn't.
fn print_server(calls: &[HookCalls], out: &mut dyn Write) -> Result<(), Failure> {
    let Some((count, last)) = server_link::fallbacks(calls) else { return Ok(()) };
    let events = if count == 1 { "event was" } else { "events were" };
    let last = ago(now().since(last));
    writeln!(
        out,
        "Server: {count} {events} decided on this machine because it didn't answer, the last {last}"
    )?;
    Ok(())
}

fn row(agent: &Installable, calls: &[HookCalls], decisions: &[RecordedDecision]) -> AgentStatus {
    let program = here::program(agent);
    let mut installed: Vec<Installation> =
        [Scope::User, Scope::Project].into_iter().filter_map(|s| place(agent, s)).collect();
    // In the home folder, both are the same file.
    installed.dedup_by(|a, b| a.file == b.file);
    let called = calls.iter().find(|c| c.agent == agent.name);
    let late = |d: &&RecordedDecision| d.agent == agent.name && now().since(d.ts) <= LATELY;
    let mut sessions: Vec<&str> = decisions.iter().filter(late).map(|d| d.session.as_str()).collect();
    let decisions = sessions.len();
    sessions.sort_unstable();
    sessions.dedup();
    let mut row = AgentStatus {
        agent: agent.name,
        title: agent.title,
        verified: agent.verified,
        found: here::is_here(agent),
        version: program.as_deref().and_then(here::version),
        program: program.map(|p| p.display().to_string()),
        installed,
        last_called_ms: called.map(|c| c.last.0),
        calls: called.map_or(0, |c| c.calls),
        decisions,
        sessions: sessions.len(),
        note: None,
    };
    row.note = note(agent, &row);
    row
}

/// Returns how deloop is installed in this scope, if it is, or why that is unknown.
fn place(agent: &Installable, scope: Scope) -> Option<Installation> {
    let (path, text) = here::read_settings(agent, scope)?;
    let file = path.display().to_string();
    let found = text.and_then(|text| agent.installed(&text).map_err(|e| e.to_string()));
    let place = Installation { scope: scope.name(), file, mode: None, program: None, error: None };
    match found {
        Ok(found) => {
            let HookLine { program, mode, profile, .. } = found?.line;
            let mode = mode.unwrap_or_else(|| configured(profile));
            Some(Installation { mode: Some(mode), program: Some(program), ..place })
        }
        Err(error) => Some(Installation { error: Some(error), ..place }),
    }
}

/// Returns the mode of the configuration, for a hook that sets none.
fn configured(profile: Option<String>) -> String {
    let config = config::load_for_hook(&RuleArgs { profile, ..RuleArgs::default() });
    config.options.mode.as_str().to_owned()
}

fn note(agent: &Installable, row: &AgentStatus) -> Option<String> {
    if let Some(place) = row.installed.iter().find(|p| p.error.is_some()) {
        return Some(format!("{}: {}", place.file, place.error.as_deref().unwrap_or_default()));
    }
    let lost = row.installed.iter().filter_map(|p| p.program.as_deref()).find(|p| here::find(p).is_none());
    if let Some(program) = lost {
        return Some(format!(
            "its hook calls `{program}`, which doesn't exist; run `deloop install {}` to fix it",
            agent.name
        ));
    }
    match (row.installed.is_empty(), row.last_called_ms) {
        (true, Some(at)) if now().since(Millis(at)) <= LATELY => Some(
            "no hooks in its settings here, but called in the last 7 days by a plugin or from another folder"
                .to_owned(),
        ),
        (true, _) if row.found => Some(format!("no hooks; run `deloop install {}`", agent.name)),
        (true, _) => None,
        (false, None) if agent.wiring.then.is_empty() => {
            Some("installed, never called; hooks start with its next session".to_owned())
        }
        (false, None) => Some(format!("installed, never called; {}", agent.wiring.then)),
        (false, Some(_)) if !agent.verified => Some("unverified".to_owned()),
        (false, Some(_)) => None,
    }
}

fn print(rows: &[AgentStatus], out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(Screen::here().width);
    table.set_header(["AGENT", "FOUND", "INSTALLED", "LAST CALLED", "DECISIONS (7 DAYS)"]);
    for row in rows {
        let found = match (&row.program, &row.version) {
            (Some(program), None) => program.clone(),
            (Some(_), Some(version)) => version.clone(),
            (None, _) if row.found => "settings only".to_owned(),
            (None, _) => "-".to_owned(),
        };
        let installed: Vec<String> = row
            .installed
            .iter()
            .map(|p| format!("{}, {}", p.scope, p.mode.as_deref().unwrap_or("unreadable")))
            .collect();
        let decisions = match row.decisions {
            0 => "-".to_owned(),
            n => format!("{n} in {} session{}", row.sessions, if row.sessions == 1 { "" } else { "s" }),
        };
        let title = if row.verified { row.title.to_owned() } else { format!("{} (unverified)", row.title) };
        table.add_row([
            title,
            found,
            if installed.is_empty() { "-".to_owned() } else { installed.join("; ") },
            row.last_called_ms.map_or("never".to_owned(), |at| ago(now().since(Millis(at)))),
            decisions,
        ]);
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    let mut notes = rows.iter().filter_map(|row| Some((row.title, row.note.as_ref()?))).peekable();
    if notes.peek().is_some() {
        writeln!(out)?;
    }
    for (title, note) in notes {
        writeln!(out, "{title}: {note}")?;
    }
    for notice in config::load_checked(&RuleArgs::default()).notices {
        writeln!(out, "Configuration: {notice}")?;
    }
    if config::is_off() {
        writeln!(out, "DELOOP=off is set: deloop does nothing for agents started from this shell")?;
    }
    Ok(())
}

fn ago(milliseconds: u64) -> String {
    let minutes = milliseconds / 60_000;
    match minutes {
        0 => "just now".to_owned(),
        1..=119 => format!("{minutes} min ago"),
        120..=2879 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1440),
    }
}
