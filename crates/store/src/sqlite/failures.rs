//! What the sessions of a project met: one row per project, which is read with every call and written only when a call
//! fails the same way twice, or no longer fails.

use deloop_detect::{FailureNote, KnownFailures};
use deloop_types::SessionId;
use rusqlite::{Connection, OptionalExtension};

use super::{Fault, SqliteStore, signed};
use crate::StoreError;

pub(super) fn read(connection: &Connection, project: &str) -> rusqlite::Result<KnownFailures> {
    // It is only advice, so a text that can't be read is none. A change sets it aside.
    let text = read_text(connection, project)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

fn read_text(connection: &Connection, project: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT failures FROM projects WHERE project = ?1")?
        .query_row([project], |row| row.get(0))
        .optional()
}

pub(super) fn enter(
    store: &SqliteStore,
    connection: &Connection,
    project: &str,
    note: &FailureNote,
) -> Result<(), Fault> {
    let text = read_text(connection, project)?;
    if let Some(Err(error)) = text.as_deref().map(serde_json::from_str::<KnownFailures>) {
        let (text, error) = (text.unwrap_or_default(), StoreError::decode(error));
        store.set_aside(connection, ("project", project), &text, &error)?;
    }
    let mut known = read(connection, project)?;
    known.enter(note);
    write(connection, project, &known)?;
    connection.execute(
        "DELETE FROM projects WHERE touched <= (SELECT max(touched) FROM projects) - ?1",
        [signed(store.bounds.projects.max(1))],
    )?;
    Ok(())
}

fn write(connection: &Connection, project: &str, known: &KnownFailures) -> Result<(), Fault> {
    if known.is_empty() {
        connection.execute("DELETE FROM projects WHERE project = ?1", [project])?;
        return Ok(());
    }
    let text = serde_json::to_string(known).map_err(StoreError::encode)?;
    connection.execute(
        "INSERT OR REPLACE INTO projects VALUES(?1, (SELECT coalesce(max(touched), 0) + 1 FROM projects), ?2)",
        [project, &text],
    )?;
    Ok(())
}

pub(super) fn projects(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut select = connection.prepare_cached("SELECT project FROM projects")?;
    select.query_map([], |row| row.get(0))?.collect()
}

impl SqliteStore {
    /// Removes what a session contributed to the failures of any project.
    ///
    /// # Errors
    /// When the file can't be read or written.
    pub fn forget_failures_of(&self, session: &SessionId) -> Result<(), StoreError> {
        self.change_with(|connection| {
            for project in projects(connection)? {
                let mut known = read(connection, &project)?;
                known.forget_session(session);
                write(connection, &project, &known)?;
            }
            Ok(())
        })
    }
}
