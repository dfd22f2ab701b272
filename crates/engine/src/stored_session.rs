//! The stored text of a session: reading it, and what is left of one that can't be read.

use deloop_policy::{LadderState, Profile};
use deloop_store::StoreError;
use deloop_types::Decision;
use serde::Deserialize;
use serde_json::Value;

use crate::checkpoint::{Checkpoint, RestoreError};
use crate::session::{Agent, Session};

/// What every version of the format has, in the same place.
#[derive(Deserialize)]
struct CheckpointVersion {
    version: u32,
}

/// Reads the stored text of a session.
pub(crate) fn thaw(text: &str, profile: &Profile) -> Result<Session, StoreError> {
    let checkpoint: Checkpoint = match serde_json::from_str(text) {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            let version = serde_json::from_str(text).map_or(0, |CheckpointVersion { version }| version);
            return Err(later(version).unwrap_or_else(|| StoreError::decode(error)));
        }
    };
    checkpoint.into_session(profile).map_err(|error| match error {
        RestoreError::Version(version) => later(version).unwrap_or_else(|| StoreError::decode(error)),
        error => StoreError::decode(error),
    })
}

/// Returns the error about this version, if a later release wrote it.
fn later(version: u32) -> Option<StoreError> {
    let known = Checkpoint::VERSION;
    (version > known).then_some(StoreError::Later { found: version, known })
}

/// Returns a new session with the stops that stood in a text that can't be read, if there are any: an agent that was
/// stopped must not continue because of a changed format.
pub(crate) fn salvage(text: &str, fresh: impl Fn(Option<String>) -> Agent) -> Option<Session> {
    let stored: Value = serde_json::from_str(text).ok()?;
    let mut session = Session {
        steps: stored["steps"].as_u64().unwrap_or(0),
        ended: Decision::deserialize(&stored["ended"]).ok().map(Box::new),
        ladder: stopped_ladder(&stored["ladder"]).map(Box::new),
        ..Session::default()
    };
    for stored in stored["agents"].as_array().into_iter().flatten() {
        if let Some(ladder) = stopped_ladder(&stored["ladder"]) {
            session.agents.push(Agent { ladder, ..fresh(stored["name"].as_str().map(str::to_owned)) });
        }
    }
    let is_stopped = session.ended.is_some() || session.ladder.is_some() || !session.agents.is_empty();
    is_stopped.then_some(session)
}

fn stopped_ladder(stored: &Value) -> Option<LadderState> {
    LadderState::deserialize(stored).ok().filter(|ladder| ladder.stopped().is_some())
}
