//! What the sessions of a project met, as one text per project. It is stored only if nobody else stored it in between.
//! Entering a note twice changes nothing more, so a lost answer does no harm.

use std::time::{Duration, Instant};

use deloop_detect::{FailureNote, KnownFailures};

use super::scripts::{STORE_FAILURES, eval};
use super::{RedisStore, millis};
use crate::StoreError;

/// How long the failures of a project are kept without a change: a little longer than a failure counts.
pub(super) const FAILURES_TTL: Duration = Duration::from_secs(15 * 24 * 3600);

impl RedisStore {
    pub(super) fn failures_text(&self, project: &str, until: Instant) -> Result<String, StoreError> {
        let mut read = redis::cmd("GET");
        read.arg(self.keys.first('f', project));
        let text: Option<Vec<u8>> = self.link.run(read, until)?;
        String::from_utf8(text.unwrap_or_default()).map_err(StoreError::decode)
    }

    pub(super) fn enter_failure(&self, project: &str, note: &FailureNote) -> Result<(), StoreError> {
        let until = self.until();
        let key = self.keys.first('f', project);
        loop {
            let before = self.failures_text(project, until)?;
            let mut known = match serde_json::from_str(&before) {
                Ok(known) => known,
                Err(_) if before.is_empty() => KnownFailures::default(),
                // It is only advice. Servers that can read it add to it.
                Err(_) => return Ok(()),
            };
            known.enter(note);
            let text = match known.is_empty() {
                true => String::new(),
                false => serde_json::to_string(&known).map_err(StoreError::encode)?,
            };
            if text == before {
                return Ok(());
            }
            let mut store = eval(STORE_FAILURES, std::slice::from_ref(&key));
            store.arg(before).arg(text).arg(millis(FAILURES_TTL));
            let list = self.list_command('f', &[project]).into_iter();
            let mut answers = self.link.run_all::<i64>(list.chain([store]).collect(), until);
            if answers.pop().unwrap_or(Ok(0))? == 1 {
                return Ok(());
            }
        }
    }
}

/// Reads the failures of a project. They are only advice, so a text that can't be read is none.
pub(super) fn read(text: &str) -> KnownFailures {
    serde_json::from_str(text).unwrap_or_default()
}
