//! `deloop doctor`: replays a stuck session through every installed hook, and reports what is wrong and how to fix it.

mod agent;
mod probe;
mod rehearse;
mod server;

use std::io::Write;

use clap::Args;
use deloop_formats::hooks::installables;

use crate::args::RuleArgs;
use crate::config::{self, ConfigNotice};
use crate::embedding;
use crate::exit::{self, Failure};
use crate::state::State;

pub(crate) const DOCTOR_HELP: &str = "\
For each agent with deloop hooks, doctor replays a stuck session through this program, with the
mode and profile from the agent's settings. It uses a temporary folder, so your sessions and logs
don't change. The check passes if the agent gets a message and, in mode `enforce`, its calls are
blocked and the run is stopped. If your profile compares embeddings, one word is embedded to see
whether the model answers. If you configured a server, doctor asks it whether it takes your steps,
and sends it none. Commands in settings are compared with what `deloop install`
writes; they are never run.

Exit codes: 0 no problems; 1 problems found, each with a fix; 2 the command failed.";

/// `deloop doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {}

/// The result of one check.
pub(super) enum Note {
    /// Everything is fine.
    Well(String),
    /// Something worth knowing.
    Know(String),
    /// A problem, with its fix.
    Wrong(String),
}

pub(crate) fn run(out: &mut dyn Write) -> Result<u8, Failure> {
    let mut wrong = 0;
    let mut tell = |title: &str, notes: &[Note], out: &mut dyn Write| -> Result<(), Failure> {
        writeln!(out, "{title}")?;
        for note in notes {
            let (mark, text) = match note {
                Note::Well(text) => ("ok   ", text),
                Note::Know(text) => ("note ", text),
                Note::Wrong(text) => ("WRONG", text),
            };
            writeln!(out, "  {mark} {text}")?;
            wrong += usize::from(matches!(note, Note::Wrong(_)));
        }
        Ok(())
    };
    let state = State::here()?;
    tell(&format!("deloop {}", env!("CARGO_PKG_VERSION")), &here(&state), out)?;
    let calls = state.existing().ok().flatten().and_then(|store| store.calls().ok()).unwrap_or_default();
    let mut any = false;
    for agent in installables() {
        for place in agent::places(&agent) {
            any = true;
            let called = calls.iter().any(|c| c.agent == agent.name);
            let file = deloop_detect::clean(&place.file, 300);
            let title = format!("{}{} ({}, {file})", agent.title, place.version(), place.scope);
            tell(&title, &agent::examine(&agent, &place, called), out)?;
        }
    }
    if !any {
        let fix = "no agent has deloop hooks; run `deloop install AGENT`";
        tell("Agents", &[Note::Wrong(fix.to_owned())], out)?;
    }
    if wrong > 0 {
        writeln!(out, "\n{wrong} {} found", if wrong == 1 { "problem" } else { "problems" })?;
    }
    Ok(if wrong > 0 { exit::FOUND } else { exit::OK })
}

/// Checks the database, and names damaged ones that were set aside.
fn database(state: &State) -> Vec<Note> {
    let file = state.database();
    let allows = "until deloop can write to it, hooks allow everything";
    let mut notes = match state.open() {
        Err(Failure::Message(why)) => vec![Note::Wrong(format!("database: {why}; {allows}"))],
        Err(Failure::ClosedPipe) => vec![Note::Wrong("database: can't be opened".to_owned())],
        Ok(journal) => match journal.missing_tables() {
            Err(error) => vec![Note::Wrong(format!("database: {error}; {allows}"))],
            Ok(missing) if !missing.is_empty() => vec![Note::Wrong(format!(
                "database: {} has no table {}; {allows}. Move the file away, and deloop creates a new one",
                file.display(),
                missing.join(", ")
            ))],
            Ok(_) => {
                let mut notes = vec![Note::Well(format!("database: {}", file.display()))];
                let unreadable = journal.store().unreadable_states().unwrap_or_default();
                if unreadable > 0 {
                    notes.push(Note::Know(format!(
                        "database: {unreadable} states of another release can't be read and are kept in the table \
                         unreadable_states; `deloop purge` deletes them"
                    )));
                }
                notes
            }
        },
    };
    notes.extend(state.damage().into_iter().map(|damage| Note::Wrong(format!("database: {damage}"))));
    notes
}

/// Checks what doesn't depend on an agent.
fn here(state: &State) -> Vec<Note> {
    let mut notes = Vec::new();
    if config::is_off() {
        notes.push(Note::Wrong("DELOOP=off is set, so deloop does nothing; unset it".to_owned()));
    }
    let config = config::load_checked(&RuleArgs::default());
    if !config.notices.iter().any(|notice| matches!(notice, ConfigNotice::Broken(_))) {
        notes.push(Note::Well(format!("configuration: profile {}", config.profile.name)));
    }
    notes.extend(config.notices.iter().map(|notice| match notice {
        ConfigNotice::Broken(why) => Note::Wrong(format!("configuration: {why}")),
        ConfigNotice::Ignored(why) => Note::Know(format!("configuration: {why}")),
    }));
    notes.extend(match embedding::check(&config) {
        None => None,
        Some(Ok(())) => Some(Note::Well("embeddings: the model answers".to_owned())),
        Some(Err(Failure::Message(why))) => {
            Some(Note::Wrong(format!("embeddings: {why}; until it works, turns are compared by words")))
        }
        Some(Err(Failure::ClosedPipe)) => None,
    });
    notes.extend(server::check(&config));
    notes.extend(database(state));
    if let Some(log) = state.read("deloop.log").filter(|log| !log.is_empty()) {
        let last = log.lines().last().unwrap_or_default();
        let count = log.lines().count();
        notes.push(Note::Know(format!(
            "{count} hook failures in deloop.log; the last: {}",
            deloop_detect::clean(last, 200)
        )));
    }
    notes
}
