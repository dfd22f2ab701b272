//! The agent and transcript of each session, its delivery state, and the patterns marked as legitimate.

use deloop_types::Millis;
use rusqlite::{Connection, OptionalExtension, Row, params};

use deloop_store::StoreError;

use super::{SqliteJournal, signed};
use crate::{Pardon, SessionSource};

const COLUMNS: &str = "session, agent, transcript, run, project";

fn read(row: &Row<'_>) -> rusqlite::Result<SessionSource> {
    Ok(SessionSource {
        session: row.get(0)?,
        agent: row.get(1)?,
        transcript: row.get(2)?,
        run: row.get(3)?,
        project: row.get(4)?,
    })
}

impl SqliteJournal {
    /// Stores which agent a session belongs to. A known transcript or run is kept.
    pub(super) fn keep_source(&self, source: &SessionSource, now: Millis) -> Result<(), StoreError> {
        let known = self.source(&source.session)?;
        let is_new = known.is_none();
        let same = known.is_some_and(|known| {
            let kept = |new: &Option<String>, old: &Option<String>| new.is_none() || new == old;
            known.agent == source.agent
                && kept(&source.transcript, &known.transcript)
                && kept(&source.run, &known.run)
                && (source.project.is_none() || known.project.is_some())
        });
        if same {
            return Ok(());
        }
        self.change(|connection| {
            if is_new {
                self.make_room(connection, now)?;
            }
            connection
                .prepare_cached(
                    "INSERT INTO sources(session, agent, transcript, run, since_ms, project, first_ms)
                     VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?5)
                     ON CONFLICT(session) DO UPDATE SET agent = ?2, transcript = coalesce(?3, transcript),
                     run = coalesce(?4, run), since_ms = ?5, project = coalesce(project, ?6)",
                )?
                .execute(params![
                    source.session,
                    source.agent,
                    source.transcript,
                    source.run,
                    now.0,
                    source.project
                ])?;
            Ok(())
        })
    }

    /// Returns which agent a session belongs to, if it is known.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn source(&self, session: &str) -> Result<Option<SessionSource>, StoreError> {
        self.see(|connection| {
            let mut select =
                connection.prepare_cached(&format!("SELECT {COLUMNS} FROM sources WHERE session = ?1"))?;
            select.query_row([session], read).optional()
        })
    }

    /// Returns the sessions whose names start with this prefix, at most `most`.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn sources_named(&self, prefix: &str, most: u32) -> Result<Vec<String>, StoreError> {
        self.see(|connection| {
            let sql = "SELECT session FROM sources WHERE substr(session, 1, length(?1)) = ?1 ORDER BY session LIMIT ?2";
            let mut select = connection.prepare(sql)?;
            let rows = select.query_map(params![prefix, most], |row| row.get(0))?;
            rows.collect()
        })
    }

    /// Returns the sessions of a `deloop run`, oldest first.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn sources_of_run(&self, run: &str) -> Result<Vec<SessionSource>, StoreError> {
        self.see(|connection| {
            let sql = format!("SELECT {COLUMNS} FROM sources WHERE run = ?1 ORDER BY since_ms");
            let mut select = connection.prepare(&sql)?;
            let rows = select.query_map([run], read)?;
            rows.collect()
        })
    }

    /// Ignores this pattern in this session from now on.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn pardon(&self, session: &str, detector: &str, pattern: u64, now: Millis) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute(
                "INSERT OR REPLACE INTO pardons VALUES(?1, ?2, ?3, ?4, 0)",
                params![session, detector, pattern.cast_signed(), now.0],
            )?;
            Ok(())
        })
    }

    pub(super) fn pardons_of(&self, session: &str) -> Result<Vec<Pardon>, StoreError> {
        self.see(|connection| {
            let mut select = connection
                .prepare_cached("SELECT detector, pattern, known FROM pardons WHERE session = ?1")?;
            let rows = select.query_map([session], |row| {
                let pattern: i64 = row.get(1)?;
                Ok(Pardon { detector: row.get(0)?, pattern: pattern.cast_unsigned(), known: row.get(2)? })
            })?;
            rows.collect()
        })
    }

    /// Removes the pardons of a session.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn unpardon(&self, session: &str) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("DELETE FROM pardons WHERE session = ?1", [session])?;
            Ok(())
        })
    }

    pub(super) fn read_state(&self, session: &str, now: Millis) -> Result<Option<String>, StoreError> {
        self.see(|connection| {
            connection
                .prepare_cached("SELECT state FROM session_state WHERE session = ?1 AND updated_ms >= ?2")?
                .query_row(params![session, self.oldest(now)], |row| row.get(0))
                .optional()
        })
    }

    pub(super) fn keep_state(&self, session: &str, now: Millis, state: &str) -> Result<(), StoreError> {
        self.change(|connection| {
            connection
                .prepare_cached("INSERT OR REPLACE INTO session_state VALUES(?1, ?2, ?3)")?
                .execute(params![session, now.0, state])
                .map(drop)
        })
    }

    /// Returns the time before which a session counts as idle.
    fn oldest(&self, now: Millis) -> i64 {
        now.0.saturating_sub_unsigned(self.bounds.idle)
    }

    fn make_room(&self, connection: &Connection, now: Millis) -> rusqlite::Result<()> {
        let newest = |table: &str, key: &str, age: &str| {
            format!(
                "DELETE FROM {table} WHERE {key} IN
                 (SELECT {key} FROM {table} ORDER BY {age} DESC LIMIT -1 OFFSET ?1)"
            )
        };
        let sessions = signed(self.bounds.sessions.saturating_sub(1));
        connection.execute(&newest("decisions", "id", "ts"), [signed(self.bounds.decisions)])?;
        connection.execute(&newest("sources", "session", "since_ms"), [sessions])?;
        connection.execute(&newest("runs", "run", "started_ms"), [sessions])?;
        connection.execute(&newest("session_state", "session", "updated_ms"), [sessions])?;
        let oldest = self.oldest(now);
        connection.execute("DELETE FROM session_state WHERE updated_ms < ?1", [oldest])?;
        connection.execute(
            "DELETE FROM pardons WHERE since_ms < ?1 AND session NOT IN (SELECT session FROM sessions)",
            [oldest],
        )?;
        Ok(())
    }
}
