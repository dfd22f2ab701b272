//! One session through a profile: where it fired.

use std::collections::HashMap;
use std::path::Path;

use deloop::{Action, Body, Guard, Limits, Options, Profile, Step};
use deloop_formats::{Item, Source};
use serde::Serialize;

use crate::exit::Failure;

/// A decision that was more than `continue`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Fire {
    /// The agent's turn, from 0.
    pub(crate) turn: u64,
    /// The session's step.
    pub(crate) step: u64,
    pub(crate) action: Action,
    pub(crate) level: u32,
    pub(crate) detector: String,
    pub(crate) summary: String,
}

/// What happened in one session.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Replay {
    pub(crate) turns: u64,
    pub(crate) calls: u64,
    pub(crate) model: Option<String>,
    pub(crate) fires: Vec<Fire>,
}

/// The sessions of a file, in the order of their first step.
pub(crate) fn sessions(path: &Path) -> Result<Vec<(String, Vec<Step>)>, Failure> {
    let told = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
    let bytes = std::fs::read(path).map_err(|e| told(&e))?;
    let head = &bytes[..bytes.len().min(64 * 1024)];
    let format = deloop_formats::sniff(head).ok_or_else(|| told(&"not a format that deloop knows"))?;
    let mut order: Vec<(String, Vec<Step>)> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    deloop_formats::read(format, &bytes, &Source { path: Some(path) }, &mut |item: Item| {
        let name = item.step.session.to_string();
        let at = *index.entry(name.clone()).or_insert_with(|| {
            order.push((name, Vec::new()));
            order.len() - 1
        });
        order[at].1.push(item.step);
    });
    Ok(order)
}

/// Runs a session through a profile that enforces, unattended.
pub(crate) fn replay(profile: Profile, steps: &[Step]) -> Replay {
    let guard = Guard::with(profile, Options::default(), Limits { idle: u64::MAX, ..Limits::default() });
    let mut replay = Replay::default();
    for step in steps {
        match &step.body {
            Body::Turn(turn) => {
                replay.turns += 1;
                replay.calls += turn.calls.len() as u64;
            }
            Body::Usage(usage) if replay.model.is_none() => replay.model.clone_from(&usage.model),
            // A file that holds many runs of one session is still one session.
            Body::End => continue,
            _ => {}
        }
        let decision = guard.observe(step);
        // A stop stands until the session ends; it fires once.
        let stands = replay.fires.last().is_some_and(|f: &Fire| f.action == Action::Stop);
        if decision.action > Action::Continue && !(stands && decision.action == Action::Stop) {
            let finding = decision.findings.first();
            replay.fires.push(Fire {
                turn: replay.turns.saturating_sub(1),
                step: decision.step,
                action: decision.action,
                level: decision.level,
                detector: finding.map_or_else(String::new, |f| f.detector.clone()),
                summary: finding.map_or_else(String::new, |f| f.summary.clone()),
            });
        }
    }
    replay
}
