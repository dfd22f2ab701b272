//! `deloop purge`: deletes stored session data.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use deloop_live::{DecisionFilter, PurgeOutcome, SqliteJournal};
use deloop_store::{Store, StoreError};
use serde_json::Value;

use crate::args::PurgeArgs;
use crate::exit::{self, Failure};
use crate::state::State;

/// What is remembered of a project.
const FAILURES: &str = "project with known failures";

/// More decisions than the database keeps.
const ALL: usize = 1 << 20;

/// The files that contain session data: a description, the folder, and the prefix and suffix of the name.
const FILES: [(&str, &str, &str, &str); 7] = [
    ("labels file", "", "labels.jsonl", ""),
    ("labelled session", "sessions", "", ".jsonl"),
    ("task of `deloop hook behavioral`", "behavioral", "", ".json"),
    ("tool events file", "", "tool-events.jsonl", ""),
    ("hand-off", "", "handoff-", ".md"),
    ("damaged database", "", "deloop.db.corrupt-", ""),
    ("log file", "", "deloop.log", ""),
];

pub(crate) fn run(args: &PurgeArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let state = State::here()?;
    let store = state.existing()?;
    match &args.session {
        Some(session) => purge_session(&state, store.as_ref(), session, out),
        None => purge_all(&state, store.as_ref(), args.yes, out),
    }
}

fn purge_session(
    state: &State,
    store: Option<&SqliteJournal>,
    session: &str,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let unknown =
        || Failure::new(format!("no stored session is named `{session}`; `deloop log` lists sessions"));
    let store = store.ok_or_else(unknown)?;
    let filter = DecisionFilter { session: Some(session), ..DecisionFilter::default() };
    let mut decisions = store.decisions(&filter, ALL).map_err(failure)?;
    // The filter matches prefixes.
    decisions.retain(|decision| decision.session == session);
    let purged = store.purge(Some(session)).map_err(failure)?;
    if purged.sessions == 0 && decisions.is_empty() {
        return Err(unknown());
    }
    let ids: Vec<&str> = decisions.iter().map(|decision| decision.id.as_str()).collect();
    remove_labels(state, &ids)?;
    writeln!(out, "Deleted session {session}.")?;
    rewritten(state, purged)
}

/// Deletes the labels of these decisions, and the redacted sessions that they name.
fn remove_labels(state: &State, decisions: &[&str]) -> Result<(), Failure> {
    let name = |id: &&str| format!("{id}.jsonl");
    for file in decisions.iter().flat_map(|id| state.files("sessions", &name(id), "")) {
        remove(&file)?;
    }
    if state.read("labels.jsonl").is_none() {
        return Ok(());
    }
    let _lock = state.lock("labels.jsonl")?;
    let Some(labels) = state.read("labels.jsonl") else { return Ok(()) };
    let is_kept = |line: &&str| {
        let label: Option<Value> = serde_json::from_str(line).ok();
        !label.is_some_and(|label| label["decision"].as_str().is_some_and(|id| decisions.contains(&id)))
    };
    let kept: String = labels.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
    if kept != labels {
        state.write("labels.jsonl", kept.as_bytes())?;
    }
    Ok(())
}

fn purge_all(
    state: &State,
    store: Option<&SqliteJournal>,
    confirmed: bool,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let (sessions, decisions, swarms, projects) = match store {
        Some(store) => (
            Store::<()>::sessions(store.store()).map_err(failure)?.len(),
            store.decisions(&DecisionFilter::default(), ALL).map_err(failure)?.len(),
            Store::<()>::swarms(store.store()).map_err(failure)?.len(),
            Store::<()>::projects(store.store()).map_err(failure)?.len(),
        ),
        None => (0, 0, 0, 0),
    };
    let files = FILES.map(|(what, folder, prefix, suffix)| (what, state.files(folder, prefix, suffix)));
    let counts = [("session", sessions), ("decision", decisions), ("swarm", swarms), (FAILURES, projects)];
    let counts = counts.into_iter().chain(files.iter().map(|(what, files)| (*what, files.len())));
    let lines: Vec<String> = counts.filter(|(_, count)| *count > 0).map(line).collect();
    if lines.is_empty() {
        // What was deleted while another process read the file may still be in it.
        if let Some(store) = store {
            rewritten(state, store.purge(None).map_err(failure)?)?;
        }
        writeln!(out, "There is no session data in {}.", state.folder().display())?;
        return Ok(exit::OK);
    }
    let verb = if confirmed { "Deleting" } else { "This deletes" };
    writeln!(out, "{verb} from {}:", state.folder().display())?;
    for line in lines {
        writeln!(out, "  {line}")?;
    }
    if !confirmed && !ask(out)? {
        return Ok(exit::OK);
    }
    let purged = store.map(|store| store.purge(None).map_err(failure)).transpose()?;
    for file in files.iter().flat_map(|(_, files)| files) {
        remove(file)?;
    }
    if let Some(purged) = purged {
        rewritten(state, purged)?;
    }
    writeln!(out, "Done.")?;
    Ok(exit::OK)
}

/// Returns an error that says what is left, if another process reads the database.
fn rewritten(state: &State, purged: PurgeOutcome) -> Result<u8, Failure> {
    if purged.is_rewritten {
        return Ok(exit::OK);
    }
    Err(Failure::new(format!(
        "the data is deleted, but its bytes stay in {} because another process is reading it; \
         run `deloop purge` again when that has ended",
        state.database().display()
    )))
}

/// Formats "1 session" or "2 sessions".
fn line((what, count): (&str, usize)) -> String {
    match what.split_once(' ') {
        _ if count == 1 => format!("1 {what}"),
        Some((first @ ("task" | "project"), rest)) => format!("{count} {first}s {rest}"),
        _ => format!("{count} {what}s"),
    }
}

/// Asks for confirmation on a terminal. Without one, returns an error that names `--yes`.
fn ask(out: &mut dyn Write) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        out.flush()?;
        return Err(Failure::new("nothing was deleted; run `deloop purge --yes` to confirm"));
    }
    write!(out, "Delete? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !yes {
        writeln!(out, "Nothing was deleted.")?;
    }
    Ok(yes)
}

fn remove(file: &PathBuf) -> Result<(), Failure> {
    match std::fs::remove_file(file) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(Failure::new(format!("{}: {e}", file.display())))
        }
        _ => Ok(()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failure(error: StoreError) -> Failure {
    Failure::new(error.to_string())
}
