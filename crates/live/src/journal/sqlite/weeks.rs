//! What is known about sessions over time: when they started, where, and how often they looped.

use deloop_store::StoreError;
use deloop_types::Millis;

use super::SqliteJournal;

/// A session that deloop watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedSession {
    /// The session.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// The folder that the agent works in, if known.
    pub project: Option<String>,
    /// When it was first seen.
    pub since: Millis,
}

impl SqliteJournal {
    /// Returns the sessions first seen since then, oldest first.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn watched_sessions(&self, since: Millis) -> Result<Vec<WatchedSession>, StoreError> {
        let sql = "SELECT session, agent, project, coalesce(first_ms, since_ms) AS first FROM sources
                   WHERE first >= ?1 ORDER BY first";
        self.see(|connection| {
            let mut select = connection.prepare(sql)?;
            let rows = select.query_map([since.0], |row| {
                Ok(WatchedSession {
                    session: row.get(0)?,
                    agent: row.get(1)?,
                    project: row.get(2)?,
                    since: Millis(row.get(3)?),
                })
            })?;
            rows.collect()
        })
    }
}
