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

/// Added after the other tables, so that a file may have those and not this one.
const RUNS: &str = "
    CREATE TABLE IF NOT EXISTS runs(
        run TEXT PRIMARY KEY,
        first TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        started_ms INTEGER NOT NULL,
        after TEXT,
        handoff TEXT,
        session TEXT
    );
";

/// Returns whether the tables exist.
pub(super) fn is_current(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(exists(connection, "journal")? && exists(connection, "runs")?)
}

fn exists(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    // `table_exists` would use the schema from when the file was opened.
    let sql = "SELECT count(*) > 0 FROM sqlite_master WHERE name = ?1";
    connection.prepare_cached(sql)?.query_row([table], |row| row.get(0))
}

/// Creates the tables.
pub(super) fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    // Two processes may find no tables at the same time: the second one checks again once it has the lock.
    if is_current(connection)? {
        return Ok(());
    }
    connection.execute_batch(RUNS)?;
    if !exists(connection, "journal")? {
        connection.execute_batch(TABLES)?;
        connection.execute_batch(&format!(
            "CREATE TABLE journal(version INTEGER); INSERT INTO journal VALUES({VERSION})"
        ))?;
    }
    Ok(())
}
