//! What a person wants left alone: a paused session, patterns that were called honest work, allowed calls.

use deloop_formats::hooks::HookEvent;
use deloop_store::{Pardon, SqliteStore, StoreError};
use deloop_types::{Decision, Millis};

use super::aftermath::patterns;
use crate::live::allow;

/// Stands in the place of a detector when it is a call that was called honest work, by its fingerprint.
pub(crate) const CALL: &str = "";

fn print_of(pardon: &Pardon) -> String {
    format!("{:08x}", pardon.pattern)
}

/// Why nothing is done about a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The session is paused; the decision is written down as such.
    Paused,
    /// A person called this pattern honest work.
    Pardoned,
}

/// What holds for a session now.
pub(super) struct Leave {
    pub(super) paused: bool,
    pardons: Vec<Pardon>,
}

impl Leave {
    pub(super) fn of(store: &SqliteStore, session: &str, now: Millis) -> Result<Self, StoreError> {
        Ok(Self { paused: store.paused(session, now)?.is_some(), pardons: store.pardons(session)? })
    }

    /// Whether a person pardoned something since the session's last event.
    pub(super) fn is_news(&self) -> bool {
        self.pardons.iter().any(|p| !p.known)
    }

    /// Whether nothing is to be done about this decision, which was made at these calls.
    pub(super) fn alone(&self, decision: &Decision, calls: &[&str]) -> Option<Why> {
        if self.paused {
            return Some(Why::Paused);
        }
        let pardoned = |(detector, pattern): &(String, u64)| {
            self.pardons.iter().any(|p| p.detector == *detector && p.pattern == *pattern)
        };
        let about = patterns(decision);
        let call = |print: &&str| self.pardons.iter().any(|p| p.detector == CALL && print_of(p) == *print);
        let honest = (!about.is_empty() && about.iter().all(pardoned))
            || (!calls.is_empty() && calls.iter().all(call));
        honest.then_some(Why::Pardoned)
    }
}

/// Leaves the calls out that a person allowed.
pub(super) fn without_allowed(event: &mut HookEvent, store: &SqliteStore) -> Result<(), StoreError> {
    if event.calls.is_empty() {
        return Ok(());
    }
    let allowed = store.allowed()?;
    if !allowed.is_empty() {
        event.calls.retain(|call| !allow::matches(&allowed, &call.call));
    }
    Ok(())
}
