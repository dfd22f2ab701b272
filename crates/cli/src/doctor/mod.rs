//! `deloop doctor`: rehearses a stuck session through every installed hook, and says what is wrong and how to mend it.

mod agent;
mod probe;
mod rehearse;

use std::io::Write;

use clap::Args;
use deloop_formats::hooks::installables;

use crate::args::RuleArgs;
use crate::config::{self, Notice};
use crate::exit::{self, Failure};
use crate::state::State;

pub(crate) const DOCTOR_HELP: &str = "\
For each agent that deloop is installed in, a session that is stuck is played through this program, with the mode and
the profile in the agent's settings and in a folder of its own: your sessions and the log stay as they are. It passes
when the agent would have been told, and, were the mode `enforce`, refused and stopped. Commands in settings are
compared with what `deloop install` writes, and never run.

Exit codes: 0 all is well; 1 something is wrong, and said with its fix; 2 it could not run.";

/// `deloop doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {}

/// What was found out about one thing.
pub(super) enum Note {
    /// As it should be.
    Well(String),
    /// Worth knowing.
    Know(String),
    /// Wrong, with its fix.
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
        let fix = "deloop is installed in no agent here: `deloop install AGENT` sets that up";
        tell("Agents", &[Note::Wrong(fix.to_owned())], out)?;
    }
    if wrong > 0 {
        writeln!(out, "\n{wrong} wrong")?;
    }
    Ok(if wrong > 0 { exit::FOUND } else { exit::OK })
}

/// What does not depend on an agent.
fn here(state: &State) -> Vec<Note> {
    let mut notes = Vec::new();
    if config::is_off() {
        notes.push(Note::Wrong("DELOOP=off is set: nothing is guarded; unset it".to_owned()));
    }
    let config = config::load_checked(&RuleArgs::default());
    if !config.notices.iter().any(|notice| matches!(notice, Notice::Broken(_))) {
        notes.push(Note::Well(format!("configuration: profile {}", config.profile.name)));
    }
    notes.extend(config.notices.iter().map(|notice| match notice {
        Notice::Broken(why) => Note::Wrong(format!("configuration: {why}")),
        Notice::Ignored(why) => Note::Know(format!("configuration: {why}")),
    }));
    notes.push(match state.open() {
        Ok(_) => Note::Well(format!("database: {}", state.database().display())),
        Err(Failure::Told(why)) => {
            Note::Wrong(format!("database: {why}; hooks let everything pass until it can be written"))
        }
        Err(Failure::ClosedPipe) => Note::Wrong("database: it could not be opened".to_owned()),
    });
    if let Some(log) = state.read("deloop.log").filter(|log| !log.is_empty()) {
        let last = log.lines().last().unwrap_or_default();
        let count = log.lines().count();
        notes.push(Note::Know(format!(
            "{count} failures of hooks in deloop.log, the last: {}",
            deloop_detect::clean(last, 200)
        )));
    }
    notes
}
