//! Calls that count once they are known not to have failed.

use deloop_types::Outcome;
use serde::{Deserialize, Serialize};

use crate::{Happening, Moment};

/// Maximum number of calls that wait for their results.
const MOST: usize = 16;

/// What calls will have done, unless they fail: each with the call's index in the history.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Awaited<T>(Vec<(u32, T)>);

impl<T> Default for Awaited<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Awaited<T> {
    /// Adds a call that was just made.
    pub(crate) fn add(&mut self, ordinal: u32, what: T) {
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push((ordinal, what));
    }

    /// Returns what took effect: a call does when its result arrives and doesn't declare a failure, a refusal or a
    /// cancellation, or when the agent's next turn comes without a result.
    pub(crate) fn settled(&mut self, moment: &Moment<'_>) -> Vec<(u32, T)> {
        match &moment.event {
            Happening::Turn(_) => std::mem::take(&mut self.0),
            Happening::Result(view) => {
                let ended = view.result.ended();
                let at = self.0.iter().position(|(ordinal, _)| *ordinal == view.record.ordinal);
                let Some(at) = at.filter(|_| ended != Some(Outcome::Running)) else { return Vec::new() };
                let one = self.0.remove(at);
                let undone = |o: Outcome| o.failed() || matches!(o, Outcome::Denied | Outcome::Cancelled);
                if ended.is_some_and(undone) { Vec::new() } else { vec![one] }
            }
            _ => Vec::new(),
        }
    }
}
