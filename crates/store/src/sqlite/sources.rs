//! Whose session it is and where it is written down, and what in it a person called honest work.

use deloop_types::Millis;
use rusqlite::{OptionalExtension, Row, params};

use super::SqliteStore;
use crate::StoreError;

/// Whose a session is. It is kept when the session has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceRow {
    /// The session.
    pub session: String,
    /// Which program: `claude-code`.
    pub agent: String,
    /// The file that the program writes the session to.
    pub transcript: Option<String>,
    /// The `deloop run` that started it.
    pub run: Option<String>,
}

/// A pattern of a session that a person called honest work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pardon {
    /// What found it.
    pub detector: String,
    /// Tells it from other patterns of the same detector.
    pub pattern: u64,
    /// The hook has taken note of it.
    pub known: bool,
}

const COLUMNS: &str = "session, agent, transcript, run";

fn read(row: &Row<'_>) -> rusqlite::Result<SourceRow> {
    Ok(SourceRow { session: row.get(0)?, agent: row.get(1)?, transcript: row.get(2)?, run: row.get(3)? })
}

impl SqliteStore {
    /// Notes whose a session is; a transcript and a run that are known stay known.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note_source(&self, source: &SourceRow, now: Millis) -> Result<(), StoreError> {
        let known = self.source(&source.session)?;
        let same = known.is_some_and(|known| {
            let kept = |new: &Option<String>, old: &Option<String>| new.is_none() || new == old;
            known.agent == source.agent
                && kept(&source.transcript, &known.transcript)
                && kept(&source.run, &known.run)
        });
        if same {
            return Ok(());
        }
        self.change(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO sources(session, agent, transcript, run, since_ms) VALUES(?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT(session) DO UPDATE SET agent = ?2, transcript = coalesce(?3, transcript),
                     run = coalesce(?4, run), since_ms = ?5",
                )?
                .execute(params![source.session, source.agent, source.transcript, source.run, now.0])?;
            Ok(())
        })
    }

    /// Whose a session is, if it was ever seen.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn source(&self, session: &str) -> Result<Option<SourceRow>, StoreError> {
        self.see(|connection| {
            let mut select =
                connection.prepare_cached(&format!("SELECT {COLUMNS} FROM sources WHERE session = ?1"))?;
            Ok(select.query_row([session], read).optional()?)
        })
    }

    /// The sessions whose names begin so, at most `most`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sources_named(&self, prefix: &str, most: u32) -> Result<Vec<String>, StoreError> {
        self.see(|connection| {
            let sql = "SELECT session FROM sources WHERE substr(session, 1, length(?1)) = ?1 ORDER BY session LIMIT ?2";
            let mut select = connection.prepare(sql)?;
            let rows = select.query_map(params![prefix, most], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The sessions of a `deloop run`, the first one first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sources_of_run(&self, run: &str) -> Result<Vec<SourceRow>, StoreError> {
        self.see(|connection| {
            let sql = format!("SELECT {COLUMNS} FROM sources WHERE run = ?1 ORDER BY since_ms");
            let mut select = connection.prepare(&sql)?;
            let rows = select.query_map([run], read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Does nothing about this pattern in this session any more.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn pardon(&self, session: &str, detector: &str, pattern: u64, now: Millis) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute(
                "INSERT OR REPLACE INTO pardons VALUES(?1, ?2, ?3, ?4, 0)",
                params![session, detector, pattern.cast_signed(), now.0],
            )?;
            Ok(())
        })
    }

    /// What a person called honest work in a session.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn pardons(&self, session: &str) -> Result<Vec<Pardon>, StoreError> {
        self.see(|connection| {
            let mut select = connection
                .prepare_cached("SELECT detector, pattern, known FROM pardons WHERE session = ?1")?;
            let rows = select.query_map([session], |row| {
                let pattern: i64 = row.get(1)?;
                Ok(Pardon { detector: row.get(0)?, pattern: pattern.cast_unsigned(), known: row.get(2)? })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Notes that a hook has acted upon the pardons of a session.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn pardons_known(&self, session: &str) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("UPDATE pardons SET known = 1 WHERE session = ?1", [session])?;
            Ok(())
        })
    }

    /// Takes back what was pardoned in a session.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn unpardon(&self, session: &str) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("DELETE FROM pardons WHERE session = ?1", [session])?;
            Ok(())
        })
    }
}
