//! `deloop swarm`: lists, shows and clears the swarms of running sessions.

use std::io::Write;

use deloop_detect::{Swarm, SwarmFingerprint, SwarmState, clean};
use deloop_engine::Session;
use deloop_live::SqliteJournal;
use deloop_store::Store;
use serde_json::Value;

use super::args::{SwarmArgs, SwarmCommand};
use super::named::told;
use crate::exit::{self, Failure};
use crate::state::State;

/// Number of workers named per fingerprint.
const NAMED: usize = 8;

pub(crate) fn run(args: &SwarmArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let journal = State::here()?.existing()?;
    match &args.command {
        None => list(journal.as_ref(), out)?,
        Some(SwarmCommand::Show { name, json }) => {
            let state = find(journal.as_ref(), name)?;
            if *json {
                let mut value = serde_json::to_value(&state)?;
                value["swarm"] = Value::String(name.clone());
                writeln!(out, "{value}")?;
            } else {
                show(name, &state, out)?;
            }
        }
        Some(SwarmCommand::Clear { name }) => {
            find(journal.as_ref(), name)?;
            if let Some(journal) = &journal {
                Store::<Session>::forget_swarm(journal.store(), name).map_err(told)?;
            }
            writeln!(out, "Cleared swarm {}.", clean(name, 256))?;
        }
    }
    Ok(exit::OK)
}

fn list(journal: Option<&SqliteJournal>, out: &mut dyn Write) -> Result<(), Failure> {
    let names = journal.map(|j| Store::<Session>::swarms(j.store()).map_err(told)).transpose()?;
    let mut names = names.unwrap_or_default();
    names.sort();
    if names.is_empty() {
        writeln!(
            out,
            "No swarms. Set DELOOP_SWARM, or `name` under `[swarm]` in your configuration, to form one."
        )?;
    }
    for name in names {
        let state = find(journal, &name)?;
        write!(out, "{}: {}", clean(&name, 256), size(&state))?;
        if let Some(most) = state.fingerprints.first() {
            write!(out, "; most called: {}", line(most))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn show(name: &str, state: &SwarmState, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "Swarm {}: {}. It remembers {} calls.", clean(name, 256), size(state), state.window)?;
    for one in &state.fingerprints {
        let named: Vec<String> = one.workers.iter().take(NAMED).map(|name| clean(name, 90)).collect();
        let more = match one.worker_count.saturating_sub(named.len() as u64) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        writeln!(out, "  {}: {}{more}", line(one), named.join(", "))?;
    }
    Ok(())
}

fn find(journal: Option<&SqliteJournal>, name: &str) -> Result<SwarmState, Failure> {
    let state = journal.map(|j| Store::<Session>::look_swarm(j.store(), name, Swarm::state).map_err(told));
    let none = || Failure::new(format!("no swarm `{name}`; `deloop swarm` lists the swarms"));
    state.transpose()?.flatten().ok_or_else(none)
}

fn size(state: &SwarmState) -> String {
    format!("{} by {}", counted(state.calls, "call"), counted(state.workers, "worker"))
}

fn line(one: &SwarmFingerprint) -> String {
    let SwarmFingerprint { call, total_calls, worker_count, .. } = one;
    format!("{call} ({} by {})", counted(*total_calls, "call"), counted(*worker_count, "worker"))
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
