//! The journal's tables.

use rusqlite::Connection;

/// The version of the tables, stored in the table `journal`.
const VERSION: i64 = 1;

const TABLES: &str = "
    CREATE TABLE decisions(
        id TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        agent TEXT NOT NULL,
        subagent TEXT,
        step INTEGER NOT NULL,
        ts INTEGER NOT NULL,
        action TEXT NOT NULL,
        would TEXT,
        level INTEGER NOT NULL,
        detector TEXT,
        summary TEXT,
        message TEXT,
        status TEXT,
        delivered TEXT,
        wrong INTEGER NOT NULL DEFAULT 0,
        rung TEXT,
        findings TEXT,
        recent_calls TEXT,
        run TEXT,
        held TEXT,
        outcome TEXT
    );
    CREATE INDEX decisions_by_age ON decisions(ts);
    CREATE INDEX decisions_by_run ON decisions(run) WHERE run IS NOT NULL;
    CREATE TABLE hooks(agent TEXT PRIMARY KEY, last_called_ms INTEGER NOT NULL, calls INTEGER NOT NULL);
    CREATE TABLE pauses(session TEXT PRIMARY KEY, until_ms INTEGER NOT NULL);
    CREATE TABLE allows(pattern TEXT PRIMARY KEY, since_ms INTEGER NOT NULL);
    CREATE TABLE sources(
        session TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        transcript TEXT,
        run TEXT,
        since_ms INTEGER NOT NULL
    );
    CREATE INDEX sources_by_run ON sources(run) WHERE run IS NOT NULL;
    CREATE TABLE pardons(
        session TEXT NOT NULL,
        detector TEXT NOT NULL,
        pattern INTEGER NOT NULL,
        since_ms INTEGER NOT NULL,
        known INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY(session, detector, pattern)
    );
    CREATE TABLE session_state(session TEXT PRIMARY KEY, updated_ms INTEGER NOT NULL, state TEXT NOT NULL);
";

/// Returns whether the tables exist.
pub(super) fn is_current(connection: &Connection) -> rusqlite::Result<bool> {
    // `table_exists` would use the schema from when the file was opened.
    connection
        .query_row("SELECT count(*) > 0 FROM sqlite_master WHERE name = 'journal'", [], |row| row.get(0))
}

/// Creates the tables.
pub(super) fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    // Two processes may find no tables at the same time: the second one checks again once it has the lock.
    if is_current(connection)? {
        return Ok(());
    }
    connection.execute_batch(TABLES)?;
    connection.execute_batch(&format!(
        "CREATE TABLE journal(version INTEGER); INSERT INTO journal VALUES({VERSION})"
    ))
}
