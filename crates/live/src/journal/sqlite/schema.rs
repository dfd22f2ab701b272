//! The journal's tables.

use rusqlite::Connection;

/// The version of the tables, stored in the table `journal`.
const VERSION: i64 = 3;

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
        since_ms INTEGER NOT NULL,
        project TEXT,
        first_ms INTEGER
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

/// A table that version 1 didn't have.
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

/// Tables that version 1 didn't have.
const EMBEDDINGS: &str = "
    CREATE TABLE embeddings(
        model TEXT NOT NULL,
        text TEXT NOT NULL,
        vector BLOB NOT NULL,
        stored_ms INTEGER NOT NULL,
        PRIMARY KEY(model, text)
    );
    CREATE INDEX embeddings_by_age ON embeddings(stored_ms);
    CREATE TABLE embedding_failures(model TEXT PRIMARY KEY, failed_ms INTEGER NOT NULL);
";

/// Columns that version 1 didn't have.
const SINCE_1: &str =
    "ALTER TABLE sources ADD COLUMN project TEXT; ALTER TABLE sources ADD COLUMN first_ms INTEGER;";

/// A table and columns that version 2 didn't have.
const SINCE_2: &str = "
    ALTER TABLE decisions ADD COLUMN episode INTEGER;
    ALTER TABLE decisions ADD COLUMN side TEXT;
    CREATE TABLE day_usage(
        project TEXT NOT NULL,
        day INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        usd REAL NOT NULL,
        turns INTEGER NOT NULL,
        subagents INTEGER NOT NULL,
        minutes REAL NOT NULL,
        raises INTEGER NOT NULL,
        PRIMARY KEY(project, day)
    );
";

/// Returns whether the tables exist in this version.
pub(super) fn is_current(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(version(connection)? >= Some(VERSION))
}

/// Returns the version of the tables and the one that this release reads, if a later release wrote them.
pub(super) fn later(connection: &Connection) -> rusqlite::Result<Option<(i64, i64)>> {
    Ok(version(connection)?.filter(|version| *version > VERSION).map(|version| (version, VERSION)))
}

/// Returns the version of the tables; `None` if there are none.
fn version(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    // `table_exists` would use the schema from when the file was opened.
    let sql = "SELECT count(*) > 0 FROM sqlite_master WHERE name = 'journal'";
    match connection.query_row(sql, [], |row| row.get(0))? {
        true => connection.query_row("SELECT max(version) FROM journal", [], |row| row.get(0)),
        false => Ok(None),
    }
}

/// Creates the tables, or brings those of an earlier version up to date.
pub(super) fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    // Two processes may find no tables at the same time: the second one checks again once it has the lock.
    let before = version(connection)?;
    match before {
        None => {
            connection.execute_batch(TABLES)?;
            connection.execute_batch("CREATE TABLE journal(version INTEGER)")?;
        }
        Some(1) => connection.execute_batch(SINCE_1)?,
        Some(2) => {}
        Some(_) => return Ok(()),
    }
    if before != Some(2) {
        connection.execute_batch(RUNS)?;
        connection.execute_batch(EMBEDDINGS)?;
    }
    connection.execute_batch(SINCE_2)?;
    connection.execute_batch(&format!("DELETE FROM journal; INSERT INTO journal VALUES({VERSION})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_version_1_become_current() {
        let connection = Connection::open_in_memory().unwrap();
        let old = TABLES.replace(
            "since_ms INTEGER NOT NULL,\n        project TEXT,\n        first_ms INTEGER",
            "since_ms INTEGER NOT NULL",
        );
        assert!(!old.contains("project"));
        connection.execute_batch(&old).unwrap();
        connection
            .execute_batch("CREATE TABLE journal(version INTEGER); INSERT INTO journal VALUES(1)")
            .unwrap();
        connection.execute("INSERT INTO sources VALUES('s', 'codex', NULL, NULL, 5)", []).unwrap();
        assert!(!is_current(&connection).unwrap());
        migrate(&connection).unwrap();
        migrate(&connection).unwrap();
        assert!(is_current(&connection).unwrap());
        let kept: i64 = connection
            .query_row("SELECT since_ms FROM sources WHERE project IS NULL", [], |r| r.get(0))
            .unwrap();
        assert_eq!(kept, 5);
    }

    #[test]
    fn tables_of_version_2_become_current() {
        let connection = Connection::open_in_memory().unwrap();
        for tables in [TABLES, RUNS, EMBEDDINGS] {
            connection.execute_batch(tables).unwrap();
        }
        connection
            .execute_batch("CREATE TABLE journal(version INTEGER); INSERT INTO journal VALUES(2)")
            .unwrap();
        let old = "INSERT INTO decisions(id, session, agent, step, ts, action, level) VALUES('d1', 's', 'codex', 1, 1, 'nudge', 1)";
        connection.execute(old, []).unwrap();
        assert!(!is_current(&connection).unwrap());
        migrate(&connection).unwrap();
        migrate(&connection).unwrap();
        assert!(is_current(&connection).unwrap());
        let kept: Option<String> =
            connection.query_row("SELECT side FROM decisions WHERE id = 'd1'", [], |r| r.get(0)).unwrap();
        assert_eq!(kept, None);
        connection.execute("INSERT INTO day_usage VALUES('/p', 1, 0, 0.0, 0, 0, 0.0, 0)", []).unwrap();
    }
}
