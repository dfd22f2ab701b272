//! Reads opencode's database. Anybody may have made it, so it is opened with limits: what is read is stored in the file,
//! not computed by it, and neither SQLite nor the rows of a session take more memory than a session may.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deloop_formats::{FileRead, Format, Item};
use deloop_types::limits::EVENT;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, params};
use serde_json::json;

use super::{Files, LONGEST, empty, take};
use crate::safe_file::{self, Links};

/// Time limit. Only a malicious database takes longer to read.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of operations after which SQLite checks the time limit.
const OPERATIONS: i32 = 1_000;
/// Longer values aren't read, like lines of this length.
const LONGEST_VALUE: usize = EVENT;
/// All memory that SQLite may use, in bytes.
const MEMORY: u64 = 512 << 20;
/// What a row costs in memory beyond its values, in bytes.
const ROW: u64 = 128;
/// Maximum number of sessions read of a database.
const SESSIONS: i64 = 100_000;
/// Maximum length of an id, in bytes.
const LONGEST_ID: i64 = 512;
/// A file stores its values as they are, so they have at most twice its size, if it keeps them in UTF-16.
const EXPANSION: u64 = 2;

/// What is read of each table.
const TABLES: [(&str, &[&str]); 3] = [
    ("session", &["id", "directory", "version", "title", "parent_id", "time_created"]),
    ("message", &["id", "session_id", "data"]),
    ("part", &["id", "session_id", "message_id", "data"]),
];

/// Returns whether a file is an SQLite database.
pub(super) fn is_database(path: &Path) -> io::Result<bool> {
    let mut start = [0; 16];
    let length = io::Read::read(&mut safe_file::open(path, Links::Follow)?, &mut start)?;
    Ok(&start[..length] == b"SQLite format 3\0")
}

/// Reads every session of a database; `None` if it isn't opencode's.
pub(super) fn read(
    path: &Path,
    format: &'static dyn Format,
    emit: &mut dyn FnMut(Item, u64),
) -> io::Result<Option<FileRead>> {
    let failed = |error: rusqlite::Error| io::Error::other(format!("not an opencode database: {error}"));
    let stored = (size(path) + size(&beside(path, "-wal"))).saturating_mul(EXPANSION);
    let database = open(path).map_err(failed)?;
    // Other programs, including deloop, have databases too.
    if !has_tables(&database).map_err(failed)? {
        return Ok(None);
    }
    if let Some(column) = computed_column(&database).map_err(failed)? {
        return Err(io::Error::other(format!(
            "`{column}` is computed, not stored; opencode writes no such database"
        )));
    }
    let mut read = empty(format);
    for id in sessions(&database).map_err(failed)? {
        let size = size_of_rows(&database, &id).map_err(failed)?;
        if size.too_long > 0 {
            let limit = LONGEST_VALUE >> 20;
            read.notes.push(format!("session {id}: skipped {} values longer than {limit} MB", size.too_long));
        }
        if read.bytes.saturating_add(size.bytes) > stored {
            read.notes.push("skipped the rest: its rows hold more than the file".to_owned());
            break;
        }
        let files = || match size.bytes.saturating_add(size.rows.saturating_mul(ROW)) > LONGEST {
            true => Ok(None),
            false => rows(&database, &id).map(Some).map_err(failed),
        };
        take(&mut read, &id, files, emit)?;
    }
    Ok(Some(read))
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |about| about.len())
}

/// Opens it read-only, even if its folder isn't writable.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if beside_it_are_files(path) {
        let database = restrict(Connection::open_with_flags(path, flags)?, PATIENCE)?;
        if database.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(())).is_ok() {
            return Ok(database);
        }
    }
    let name = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = flags | OpenFlags::SQLITE_OPEN_URI;
    restrict(Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)?, PATIENCE)
}

/// Returns whether the files that SQLite opens by itself, its logs, are regular files: it would wait for a pipe.
fn beside_it_are_files(path: &Path) -> bool {
    let is_file = |path: &PathBuf| std::fs::symlink_metadata(path).map_or(true, |about| about.is_file());
    ["-wal", "-shm", "-journal"].iter().all(|ending| is_file(&beside(path, ending)))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Restricts an untrusted database: its schema can't call functions with side effects, no value and not all of SQLite takes
/// much memory, and a query that doesn't end is interrupted.
#[expect(clippy::disallowed_methods, reason = "a deadline is wall-clock time, not session time")]
fn restrict(mut database: Connection, patience: Duration) -> rusqlite::Result<Connection> {
    database.busy_timeout(Duration::from_secs(2))?;
    database.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(LONGEST_VALUE).unwrap_or(i32::MAX))?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    database.execute_batch(&format!(
        "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;
         PRAGMA hard_heap_limit = {MEMORY};"
    ))?;
    let deadline = Instant::now() + patience;
    database.progress_handler(OPERATIONS, Some(move || Instant::now() > deadline))?;
    Ok(database)
}

/// Returns whether everything that is read is an ordinary table: a view or a virtual table could compute forever.
fn has_tables(database: &Connection) -> rusqlite::Result<bool> {
    let count: i64 = database.query_row(
        "SELECT count(DISTINCT name) FROM sqlite_master WHERE name IN ('session', 'message', 'part') \
         AND type = 'table' AND rootpage > 0 AND sql NOT LIKE 'CREATE VIRTUAL%'",
        [],
        |row| row.get(0),
    )?;
    Ok(count == 3)
}

/// Returns a column that is read and generated: a few bytes of a schema can compute gigabytes in it.
fn computed_column(database: &Connection) -> rusqlite::Result<Option<String>> {
    for (table, columns) in TABLES {
        let mut query = database.prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden <> 0")?;
        let hidden = query.query_map([table], |row| row.get::<_, String>(0))?;
        for name in hidden {
            let name = name?;
            if columns.iter().any(|column| name.eq_ignore_ascii_case(column)) {
                return Ok(Some(format!("{table}.{name}")));
            }
        }
    }
    Ok(None)
}

/// Returns the ids of all sessions, oldest first.
fn sessions(database: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query = database
        .prepare("SELECT id FROM session WHERE octet_length(id) <= ?1 ORDER BY time_created, id LIMIT ?2")?;
    let ids = query.query_map([LONGEST_ID, SESSIONS], |row| row.get(0))?;
    ids.collect()
}

/// How much is stored of a session.
struct RowsSize {
    rows: u64,
    bytes: u64,
    /// The number of values that aren't read, because they are too long.
    too_long: u64,
}

/// Returns how much the messages of a session and their parts take, without reading them.
fn size_of_rows(database: &Connection, id: &str) -> rusqlite::Result<RowsSize> {
    let mut size = RowsSize { rows: 0, bytes: 0, too_long: 0 };
    for (table, folder) in [("message", "session_id"), ("part", "message_id")] {
        let sql = format!(
            "SELECT count(*) FILTER (WHERE fits), CAST(total(bytes) FILTER (WHERE fits) AS INTEGER),
                 count(*) FILTER (WHERE NOT fits)
             FROM (SELECT coalesce(octet_length(data), 0) + coalesce(octet_length(id), 0)
                     + coalesce(octet_length({folder}), 0) AS bytes, {FITS} AS fits
                 FROM {table} WHERE session_id = ?1)"
        );
        let (rows, bytes, too_long): (i64, i64, i64) =
            database.query_row(&sql, params![id, signed(LONGEST_VALUE)], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        size.rows += rows.unsigned_abs();
        size.bytes += bytes.unsigned_abs();
        size.too_long += too_long.unsigned_abs();
    }
    Ok(size)
}

/// Whether a row is read, in SQL.
const FITS: &str = "coalesce(octet_length(data) <= ?2, TRUE)";

fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Returns a session, its messages and their parts, in the form of the files of earlier releases.
fn rows(database: &Connection, id: &str) -> rusqlite::Result<Files> {
    let about = database.query_row(
        "SELECT substr(directory, 1, 4096), substr(version, 1, 100), substr(title, 1, 4096), substr(parent_id, 1, 512),
             time_created FROM session WHERE id = ?1",
        [id],
        |row| {
            Ok(json!({
                "id": id,
                "directory": row.get::<_, Option<String>>(0)?,
                "version": row.get::<_, Option<String>>(1)?,
                "title": row.get::<_, Option<String>>(2)?,
                "parentID": row.get::<_, Option<String>>(3)?,
                "time": {"created": row.get::<_, Option<i64>>(4)?},
            }))
        },
    )?;
    let mut files = vec![(format!("session/project/{id}.json"), about.to_string().into_bytes())];
    for (kind, folder) in [("message", "session_id"), ("part", "message_id")] {
        let sql = format!("SELECT {folder}, id, data FROM {kind} WHERE session_id = ?1 AND {FITS}");
        let mut query = database.prepare(&sql)?;
        let rows = query.query_map(params![id, signed(LONGEST_VALUE)], |row| {
            let (folder, id, data): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((format!("{kind}/{folder}/{id}.json"), data.into_bytes()))
        })?;
        for row in rows {
            files.push(row?);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_without_an_end_is_ended() {
        let database = restrict(Connection::open_in_memory().unwrap(), Duration::from_millis(20)).unwrap();
        let endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let ended = database.query_row(endless, [], |row| row.get::<_, i64>(0)).unwrap_err();
        assert_eq!(ended.sqlite_error_code(), Some(rusqlite::ErrorCode::OperationInterrupted));
    }

    #[test]
    fn views_and_virtual_tables_are_no_tables() {
        let with = |sql: &str| {
            let database = Connection::open_in_memory().unwrap();
            database.execute_batch(sql).unwrap();
            has_tables(&database).unwrap()
        };
        let rest = "CREATE TABLE message(id); CREATE TABLE part(id);";
        assert!(with(&format!("CREATE TABLE session(id); {rest}")));
        assert!(!with(&format!("CREATE VIEW session AS SELECT 1; {rest}")));
        assert!(!with(&format!("create /* */ virtual table session USING fts5(id); {rest}")));
        assert!(!with(rest));
    }

    #[test]
    fn a_column_that_is_read_must_be_stored() {
        let with = |part: &str| {
            let database = Connection::open_in_memory().unwrap();
            let rest = "CREATE TABLE session(id); CREATE TABLE message(id, session_id, data);";
            database.execute_batch(&format!("{rest} CREATE TABLE part({part});")).unwrap();
            computed_column(&database).unwrap()
        };
        assert_eq!(with("id, session_id, message_id, data, other AS (1)"), None);
        let data = "id, session_id, message_id, DATA AS (printf('%.*c', 100000000, 'x'))";
        assert_eq!(with(data).as_deref(), Some("part.DATA"));
        let id = "data, session_id, message_id, id TEXT AS (hex(data)) STORED";
        assert_eq!(with(id).as_deref(), Some("part.id"));
    }

    /// The file stores the default of a column that was added later once, whatever the number of its rows.
    #[test]
    fn rows_that_hold_more_than_the_file_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let database = Connection::open(&path).unwrap();
        let long = format!("{{\"type\":\"text\",\"text\":\"{}\"}}", "x".repeat(500_000));
        database
            .execute_batch(&format!(
                "CREATE TABLE session(id, directory, version, title, parent_id, time_created);
                 CREATE TABLE message(id TEXT, session_id, data TEXT);
                 CREATE TABLE part(id TEXT, session_id, message_id TEXT);
                 INSERT INTO session(id, time_created) VALUES('s1', 1), ('s2', 2);
                 INSERT INTO message VALUES('m1', 's1', '{{}}'), ('m2', 's2', '{{}}');
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
                     INSERT INTO part SELECT 'p' || i, 's2', 'm2' FROM n;
                 ALTER TABLE part ADD COLUMN data TEXT DEFAULT '{long}';"
            ))
            .unwrap();
        let read =
            super::read(&path, deloop_formats::find("opencode").unwrap(), &mut |_, _| ()).unwrap().unwrap();
        let notes: Vec<String> = read.notes.into_iter().collect();
        assert_eq!(notes, ["skipped the rest: its rows hold more than the file"]);
        assert!(read.bytes < 1000, "{}", read.bytes);
    }
}
