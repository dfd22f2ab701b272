use rusqlite::Connection;

/// The version of the tables, stored in the table `shared_records_version`.
const VERSION: i64 = 1;

/// A record that is deleted takes its amounts and its texts with it.
const TABLES: &str = "
    CREATE TABLE shared_records(
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        record_group TEXT NOT NULL,
        name TEXT NOT NULL,
        expires_ms INTEGER NOT NULL,
        text TEXT NOT NULL,
        UNIQUE(kind, record_group, name)
    );
    CREATE INDEX shared_records_by_expiry ON shared_records(expires_ms);
    CREATE TABLE shared_amounts(
        record INTEGER NOT NULL,
        field TEXT NOT NULL,
        amount INTEGER NOT NULL,
        PRIMARY KEY(record, field)
    ) WITHOUT ROWID;
    CREATE TABLE shared_texts(id INTEGER PRIMARY KEY AUTOINCREMENT, record INTEGER NOT NULL, text TEXT NOT NULL);
    CREATE INDEX shared_texts_by_record ON shared_texts(record, id);
    CREATE TRIGGER shared_records_gone AFTER DELETE ON shared_records BEGIN
        DELETE FROM shared_amounts WHERE record = old.id;
        DELETE FROM shared_texts WHERE record = old.id;
    END;
    CREATE TABLE shared_events(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL);
    CREATE TABLE shared_records_version(version INTEGER);
";

/// Returns whether the tables exist in this version.
pub(super) fn are_current(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) > 0 FROM sqlite_master WHERE name = 'shared_records_version'";
    if !connection.query_row(sql, [], |row| row.get(0))? {
        return Ok(false);
    }
    Ok(version(connection)? >= Some(VERSION))
}

/// Returns the version of the tables and the one that this release reads, if a later release wrote them.
pub(super) fn later(connection: &Connection) -> rusqlite::Result<Option<(i64, i64)>> {
    Ok(version(connection)?.filter(|version| *version > VERSION).map(|version| (version, VERSION)))
}

fn version(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection.query_row("SELECT max(version) FROM shared_records_version", [], |row| row.get(0))
}

/// Creates the tables.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    // Two processes may find no tables at the same time: the second one checks again once it has the lock.
    if are_current(connection)? {
        return Ok(());
    }
    connection.execute_batch(TABLES)?;
    connection.execute_batch(&format!("INSERT INTO shared_records_version VALUES({VERSION})"))
}
