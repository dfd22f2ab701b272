//! Which sessions and swarms there are: their names in order, and when each was last listed. A listing is on one node of a
//! cluster, and its sessions on many, so an entry may outlive its session; it is dropped when it wasn't renewed in time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use deloop_types::SessionId;
use redis::Cmd;

use super::failures::FAILURES_TTL;
use super::scripts::{COUNT_LISTED, LIST, UNLIST, eval};
use super::{RedisStore, millis};
use crate::StoreError;

/// How many names are read at a time.
const PAGE: usize = 1000;
/// A session or swarm in use is listed again this often.
const RENEWED: Duration = Duration::from_secs(600);
/// How many names are remembered as listed.
const REMEMBERED: usize = 200_000;

/// Remembers what this process listed a short time ago.
#[derive(Default)]
pub(super) struct RecentlyListed(Mutex<HashMap<String, Instant>>);

impl RecentlyListed {
    pub(super) fn is_recent(&self, key: &str) -> bool {
        let listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listed.get(key).is_some_and(|until| *until > Instant::now())
    }

    pub(super) fn note(&self, keys: impl IntoIterator<Item = String>) {
        let mut listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.len() > REMEMBERED {
            listed.clear();
        }
        let until = Instant::now() + RENEWED;
        listed.extend(keys.into_iter().map(|key| (key, until)));
    }

    pub(super) fn forget(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl RedisStore {
    /// Returns how long an entry is kept: as long as a session (`s`), a swarm (`w`) or the failures of a project (`f`).
    fn listed_for(&self, kind: char) -> u64 {
        let ttl = match kind {
            's' => self.options.session_ttl,
            'f' => FAILURES_TTL,
            _ => self.options.swarm_ttl,
        };
        millis(ttl.saturating_add(RENEWED))
    }

    /// Returns the command that lists sessions (`s`) or swarms (`w`), if there are any to be listed.
    pub(super) fn list_command(&self, kind: char, names: &[&str]) -> Option<Cmd> {
        let mut command = eval(LIST, &self.keys.listing(kind));
        command.arg(self.listed_for(kind)).arg(names);
        Some(command).filter(|_| !names.is_empty())
    }

    /// Returns the command that ends the listing of a session (`s`) or swarm (`w`).
    pub(super) fn unlist_command(&self, kind: char, name: &str) -> Cmd {
        let mut command = eval(UNLIST, &self.keys.listing(kind));
        command.arg(name);
        command
    }

    fn page(&self, kind: char, after: Option<&str>, limit: usize) -> Result<Vec<String>, StoreError> {
        let from = after.map_or("-".to_owned(), |after| format!("({after}"));
        let [names, _] = self.keys.listing(kind);
        let mut read = redis::cmd("ZRANGEBYLEX");
        read.arg(names).arg(from).arg("+").arg("LIMIT").arg(0).arg(limit);
        let names: Vec<Vec<u8>> = self.link.run(read, self.until())?;
        Ok(names.into_iter().filter_map(|name| String::from_utf8(name).ok()).collect())
    }

    /// Returns at most `limit` names of what is stored after `after`.
    fn names_after(&self, kind: char, after: Option<&str>, limit: usize) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        let mut after = after.map(ToOwned::to_owned);
        while names.len() < limit {
            let page = self.page(kind, after.as_deref(), PAGE.min(limit))?;
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            let exists = |name: &String| {
                let mut exists = redis::cmd("EXISTS");
                exists.arg(self.keys.first(kind, name));
                exists
            };
            let exist = self.link.run_all::<bool>(page.iter().map(exists).collect(), self.until());
            for (name, exists) in page.into_iter().zip(exist) {
                if exists? && names.len() < limit {
                    names.push(name);
                }
            }
        }
        Ok(names)
    }

    pub(super) fn names(&self, kind: char) -> Result<Vec<String>, StoreError> {
        self.names_after(kind, None, usize::MAX)
    }

    /// Returns at most `limit` sessions whose names come after `after`, in the order of the bytes of their names. Costs
    /// two round trips per 1,000 of them, whatever the number of sessions.
    ///
    /// # Errors
    /// When the server fails.
    pub fn sessions_after(&self, after: Option<&str>, limit: u64) -> Result<Vec<SessionId>, StoreError> {
        let names = self.names_after('s', after, usize::try_from(limit).unwrap_or(usize::MAX))?;
        Ok(names.into_iter().map(SessionId::from).collect())
    }

    /// Returns the number of stored sessions, in one round trip. A session that had no step for its time to live is
    /// counted for up to ten minutes more.
    ///
    /// # Errors
    /// When the server fails.
    pub fn session_count(&self) -> Result<u64, StoreError> {
        let mut command = eval(COUNT_LISTED, &self.keys.listing('s'));
        command.arg(self.listed_for('s'));
        self.link.run(command, self.until())
    }

    /// Returns whether a session is stored.
    ///
    /// # Errors
    /// When the server fails.
    pub fn has_session(&self, session: &SessionId) -> Result<bool, StoreError> {
        let mut exists = redis::cmd("EXISTS");
        exists.arg(self.keys.session(session.as_str()));
        self.link.run(exists, self.until())
    }
}
