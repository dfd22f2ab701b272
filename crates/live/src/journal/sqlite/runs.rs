//! The attempts of `deloop run`, and which session got the hand-off of the attempt before it.

use deloop_store::StoreError;
use deloop_types::Millis;
use rusqlite::{OptionalExtension, params};

use super::{SqliteJournal, signed};
use crate::{RecentCall, RunAttempt, repeated};

impl SqliteJournal {
    /// Records an attempt before its agent starts.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn record_attempt(&self, attempt: &RunAttempt, now: Millis) -> Result<(), StoreError> {
        let RunAttempt { run, first, attempt, after, handoff } = attempt;
        self.change(|connection| {
            connection.execute(
                "INSERT OR REPLACE INTO runs VALUES(?1, ?2, ?3, ?4, ?5, ?6, NULL)",
                params![run, first, signed(*attempt), now.0, after, handoff],
            )?;
            Ok(())
        })
    }

    /// Returns the attempt with this id.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn attempt(&self, run: &str) -> Result<Option<RunAttempt>, StoreError> {
        self.see(|connection| {
            let sql = "SELECT run, first, attempt, after, handoff FROM runs WHERE run = ?1";
            let read = |row: &rusqlite::Row<'_>| {
                let attempt: i64 = row.get(2)?;
                Ok(RunAttempt {
                    run: row.get(0)?,
                    first: row.get(1)?,
                    attempt: u64::try_from(attempt).unwrap_or(0),
                    after: row.get(3)?,
                    handoff: row.get(4)?,
                })
            };
            connection.prepare_cached(sql)?.query_row([run], read).optional()
        })
    }

    /// Returns the fingerprints of the calls that the session before an attempt repeated.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn loop_calls_before(&self, run: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT recent_calls FROM decisions
                   WHERE session = (SELECT after FROM runs WHERE run = ?1) AND action IN ('stop', 'block')
                   ORDER BY ts DESC, step DESC LIMIT 1";
        let text: Option<Option<String>> = self.see(|connection| {
            connection.prepare_cached(sql)?.query_row([run], |row| row.get(0)).optional()
        })?;
        let calls: Vec<RecentCall> =
            text.flatten().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(repeated(&calls).into_iter().map(str::to_owned).collect())
    }

    /// Returns the hand-off of an attempt for this session. The first session that asks gets it; an agent that this one
    /// starts doesn't.
    ///
    /// # Errors
    /// When the file can't be read or written.
    pub fn handoff_for(&self, run: &str, first: &str, session: &str) -> Result<Option<String>, StoreError> {
        let look = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let sql = "SELECT handoff, session FROM runs WHERE run = ?1 AND first = ?2";
        let known: Option<(Option<String>, Option<String>)> =
            self.see(|connection| connection.prepare_cached(sql)?.query_row([run, first], look).optional())?;
        match known {
            Some((Some(handoff), None)) => self.change(|connection| {
                let sql = "UPDATE runs SET session = ?2 WHERE run = ?1 AND session IS NULL";
                Ok((connection.execute(sql, [run, session])? > 0).then_some(handoff))
            }),
            Some((handoff, Some(given))) if given == session => Ok(handoff),
            _ => Ok(None),
        }
    }
}
