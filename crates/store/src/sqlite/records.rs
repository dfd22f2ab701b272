//! What is kept beside the sessions: decisions, how often hooks were called, pauses and allowances.

use deloop_types::{Action, Decision, Millis, SessionId};
use rusqlite::{OptionalExtension, Row, params};

use super::{SqliteStore, signed};
use crate::StoreError;

/// A decision as it was written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRow {
    /// Its name.
    pub id: String,
    /// The session.
    pub session: String,
    /// Which program: `claude-code`.
    pub agent: String,
    /// Which subagent of the session, if it was one.
    pub subagent: Option<String>,
    /// The step's index in the session.
    pub step: u64,
    /// When.
    pub ts: Millis,
    /// What was done.
    pub action: String,
    /// What would have been done if the mode had let it.
    pub would: Option<String>,
    /// The rung of the ladder.
    pub level: u64,
    /// What found it.
    pub detector: Option<String>,
    /// What was seen, in words for people.
    pub summary: Option<String>,
    /// What the agent was told.
    pub message: Option<String>,
    /// How the run ended, on a stop.
    pub status: Option<String>,
    /// At which event of the agent it was carried out; `None` while it was not.
    pub delivered: Option<String>,
    /// A person said that it was wrong.
    pub wrong: bool,
}

impl DecisionRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let number = |n: i64| u64::try_from(n).unwrap_or(0);
        Ok(Self {
            id: row.get(0)?,
            session: row.get(1)?,
            agent: row.get(2)?,
            subagent: row.get(3)?,
            step: number(row.get(4)?),
            ts: Millis(row.get(5)?),
            action: row.get(6)?,
            would: row.get(7)?,
            level: number(row.get(8)?),
            detector: row.get(9)?,
            summary: row.get(10)?,
            message: row.get(11)?,
            status: row.get(12)?,
            delivered: row.get(13)?,
            wrong: row.get(14)?,
        })
    }
}

const COLUMNS: &str = "id, session, agent, subagent, step, ts, action, would, level, detector, summary, message, \
                       status, delivered, wrong";

/// How often a program's hook was called, and when last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCalls {
    /// Which program.
    pub agent: String,
    /// When last.
    pub last: Millis,
    /// How often.
    pub calls: u64,
}

impl SqliteStore {
    /// Writes down what was decided for a session of a program; a plain `continue` is not.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn record(
        &self,
        agent: &str,
        subagent: Option<&str>,
        now: Millis,
        decision: &Decision,
    ) -> Result<(), StoreError> {
        let full = decision.would.as_deref().unwrap_or(decision);
        let Some(id) = full.id.as_deref().filter(|_| full.action > Action::Continue) else { return Ok(()) };
        let finding = decision.findings.first();
        self.change(|connection| {
            connection
                .prepare_cached(&format!(
                    "INSERT OR REPLACE INTO decisions({COLUMNS})
                     VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, NULL, 0)"
                ))?
                .execute(params![
                    id,
                    decision.session.as_str(),
                    agent,
                    subagent,
                    signed(decision.step),
                    now.0,
                    decision.action.as_str(),
                    decision.would.as_ref().map(|would| would.action.as_str()),
                    full.level,
                    finding.map(|f| f.detector.as_str()),
                    finding.map(|f| f.summary.as_str()),
                    decision.message.as_deref(),
                    decision.status.as_deref(),
                ])?;
            Ok(())
        })
    }

    /// Notes that a decision was carried out, at this event of the agent.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn delivered(&self, id: &str, event: &str) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("UPDATE decisions SET delivered = ?2 WHERE id = ?1", [id, event])?;
            Ok(())
        })
    }

    /// The latest decisions, newest first; of one session if one is named.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn decisions(&self, session: Option<&str>, most: usize) -> Result<Vec<DecisionRow>, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare(&format!(
                "SELECT {COLUMNS} FROM decisions WHERE ?1 IS NULL OR session = ?1
                 ORDER BY ts DESC, step DESC LIMIT ?2"
            ))?;
            let rows = select.query_map(params![session, signed(most as u64)], DecisionRow::read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The decision of this name.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn decision(&self, id: &str) -> Result<Option<DecisionRow>, StoreError> {
        self.see(|connection| {
            let sql = format!("SELECT {COLUMNS} FROM decisions WHERE id = ?1");
            Ok(connection.query_row(&sql, [id], DecisionRow::read).optional()?)
        })
    }

    /// Notes that a person said a decision was wrong; `false` when there is none of this name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn mark_wrong(&self, id: &str) -> Result<bool, StoreError> {
        self.change(|connection| {
            Ok(connection.execute("UPDATE decisions SET wrong = 1 WHERE id = ?1", [id])? > 0)
        })
    }

    /// Notes that a program's hook was called.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn called(&self, agent: &str, now: Millis) -> Result<(), StoreError> {
        self.change(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO hooks VALUES(?1, ?2, 1)
                     ON CONFLICT(agent) DO UPDATE SET last_called_ms = ?2, calls = calls + 1",
                )?
                .execute(params![agent, now.0])?;
            Ok(())
        })
    }

    /// How often each program's hook was called.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn calls(&self) -> Result<Vec<HookCalls>, StoreError> {
        self.see(|connection| {
            let mut select =
                connection.prepare("SELECT agent, last_called_ms, calls FROM hooks ORDER BY agent")?;
            let rows = select.query_map([], |row| {
                let calls: i64 = row.get(2)?;
                Ok(HookCalls {
                    agent: row.get(0)?,
                    last: Millis(row.get(1)?),
                    calls: u64::try_from(calls).unwrap_or(0),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// What a hook keeps for itself beside a session's state.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn desk(&self, session: &SessionId) -> Result<Option<String>, StoreError> {
        self.see(|connection| {
            let row = connection
                .prepare_cached("SELECT desk FROM sessions WHERE session = ?1")?
                .query_row([session.as_str()], |row| row.get(0))
                .optional()?;
            Ok(row.flatten())
        })
    }

    /// Keeps what a hook wants to know at the session's next event. A session without a step has no place for it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_desk(&self, session: &SessionId, desk: &str) -> Result<(), StoreError> {
        self.change(|connection| {
            connection
                .prepare_cached("UPDATE sessions SET desk = ?2 WHERE session = ?1")?
                .execute([session.as_str(), desk])?;
            Ok(())
        })
    }

    /// Leaves a session alone until then; `None` is every session.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn pause(&self, session: Option<&str>, until: Millis) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute(
                "INSERT OR REPLACE INTO pauses VALUES(?1, ?2)",
                params![session.unwrap_or_default(), until.0],
            )?;
            Ok(())
        })
    }

    /// Ends all pauses; how many there were.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn resume(&self) -> Result<usize, StoreError> {
        self.change(|connection| Ok(connection.execute("DELETE FROM pauses", [])?))
    }

    /// Until when a session is left alone, if it is.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn paused(&self, session: &str, now: Millis) -> Result<Option<Millis>, StoreError> {
        self.see(|connection| {
            let until: Option<i64> = connection
                .prepare_cached(
                    "SELECT max(until_ms) FROM pauses WHERE session IN ('', ?1) AND until_ms > ?2",
                )?
                .query_row(params![session, now.0], |row| row.get(0))?;
            Ok(until.map(Millis))
        })
    }

    /// Never looks at calls of this pattern again.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn allow(&self, pattern: &str, now: Millis) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("INSERT OR IGNORE INTO allows VALUES(?1, ?2)", params![pattern, now.0])?;
            Ok(())
        })
    }

    /// Looks at calls of this pattern again; `false` when they were not allowed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn disallow(&self, pattern: &str) -> Result<bool, StoreError> {
        self.change(|connection| {
            Ok(connection.execute("DELETE FROM allows WHERE pattern = ?1", [pattern])? > 0)
        })
    }

    /// The patterns of calls that are not looked at.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn allowed(&self) -> Result<Vec<String>, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare_cached("SELECT pattern FROM allows ORDER BY since_ms")?;
            let rows = select.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Forgets a session with its decisions, or everything but the allowances; how many sessions that were.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn purge(&self, session: Option<&str>) -> Result<usize, StoreError> {
        let gone = self.change(|connection| {
            for table in ["decisions", "pauses"] {
                let sql = format!("DELETE FROM {table} WHERE ?1 IS NULL OR session = ?1");
                connection.execute(&sql, [session])?;
            }
            if session.is_none() {
                connection.execute("DELETE FROM swarms", [])?;
            }
            Ok(connection.execute("DELETE FROM sessions WHERE ?1 IS NULL OR session = ?1", [session])?)
        })?;
        // What was deleted is still in the file and its log until they are written anew.
        self.see(|connection| Ok(connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")?))?;
        Ok(gone)
    }
}
