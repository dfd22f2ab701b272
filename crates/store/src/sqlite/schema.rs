//! The tables, and the migration of files from earlier releases.

use rusqlite::Connection;

use super::file::Trouble;

/// One migration per schema version: `MIGRATIONS[n]` takes a file from version n to n + 1. Released ones never
/// change. Versions 1 and 2 were never released.
pub(super) const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE sessions(
        session TEXT PRIMARY KEY,
        updated_ms INTEGER NOT NULL,
        steps INTEGER NOT NULL,
        state TEXT NOT NULL
    );
    CREATE INDEX sessions_by_age ON sessions(updated_ms);
    CREATE TABLE swarms(swarm TEXT PRIMARY KEY, touched INTEGER NOT NULL, state TEXT NOT NULL);
",
    "",
    "
    DROP TABLE IF EXISTS decisions;
    DROP TABLE IF EXISTS hooks;
    DROP TABLE IF EXISTS pauses;
    DROP TABLE IF EXISTS allows;
    DROP TABLE IF EXISTS sources;
    DROP TABLE IF EXISTS pardons;
",
    "
    CREATE TABLE projects(project TEXT PRIMARY KEY, touched INTEGER NOT NULL, failures TEXT NOT NULL);
",
    "
    CREATE INDEX swarms_by_use ON swarms(touched);
    CREATE INDEX projects_by_use ON projects(touched);
",
];

/// Migrates the file to this release's schema.
pub(super) fn migrate(connection: &Connection) -> Result<(), Trouble> {
    if version(connection)? == MIGRATIONS.len() {
        return Ok(());
    }
    // Two processes may find an old file at the same time: the second one checks again once it has the lock.
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

/// Creates the tables in an empty database.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    MIGRATIONS.iter().try_for_each(|migration| connection.execute_batch(migration))
}

fn version(connection: &Connection) -> Result<usize, Trouble> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}
