//! The tables, and how a file of an earlier release becomes one of this release.

use rusqlite::Connection;

use super::file::Trouble;

/// One step per version of the schema: `MIGRATIONS[n]` brings a file from version n to n + 1. Released ones never change.
pub(super) const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE sessions(
        session TEXT PRIMARY KEY,
        updated_ms INTEGER NOT NULL,
        steps INTEGER NOT NULL,
        state TEXT NOT NULL,
        desk TEXT
    );
    CREATE INDEX sessions_by_age ON sessions(updated_ms);
    CREATE TABLE swarms(swarm TEXT PRIMARY KEY, touched INTEGER NOT NULL, state TEXT NOT NULL);
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
        wrong INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX decisions_by_age ON decisions(ts);
    CREATE TABLE hooks(agent TEXT PRIMARY KEY, last_called_ms INTEGER NOT NULL, calls INTEGER NOT NULL);
    CREATE TABLE pauses(session TEXT PRIMARY KEY, until_ms INTEGER NOT NULL);
    CREATE TABLE allows(pattern TEXT PRIMARY KEY, since_ms INTEGER NOT NULL);
",
    "
    ALTER TABLE decisions ADD COLUMN rung TEXT;
    ALTER TABLE decisions ADD COLUMN findings TEXT;
    ALTER TABLE decisions ADD COLUMN trail TEXT;
    ALTER TABLE decisions ADD COLUMN run TEXT;
    ALTER TABLE decisions ADD COLUMN held TEXT;
    ALTER TABLE decisions ADD COLUMN outcome TEXT;
    CREATE INDEX decisions_by_run ON decisions(run) WHERE run IS NOT NULL;
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
",
];

/// Brings the file to this release's schema.
pub(super) fn migrate(connection: &Connection) -> Result<(), Trouble> {
    if version(connection)? == MIGRATIONS.len() {
        return Ok(());
    }
    // Two processes may find an old file at once: the second one looks again when it has the lock.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let done = version(connection).and_then(|from| {
        if from > MIGRATIONS.len() {
            return Err(Trouble::Later { found: from, known: MIGRATIONS.len() });
        }
        for migration in &MIGRATIONS[from..] {
            connection.execute_batch(migration)?;
        }
        Ok(connection.execute_batch(&format!("PRAGMA user_version = {}; COMMIT", MIGRATIONS.len()))?)
    });
    if done.is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

fn version(connection: &Connection) -> Result<usize, Trouble> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}
