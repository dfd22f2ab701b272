//! Reads opencode's sessions: rows of a database, or many small files in earlier releases.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deloop_formats::{FileNotes, FileRead, Format, Item, Report, find, read_opencode_storage};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use crate::safe_file::{self, Links};

/// A longer session is skipped, because it must fit in memory as a whole.
const LONGEST: u64 = 256 << 20;
/// Time limit. Only a malicious database takes longer to read.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of operations after which SQLite checks the time limit.
const OPERATIONS: i32 = 10_000;

/// The parts of a session: names as in the storage folder, and JSON.
type Files = Vec<(String, Vec<u8>)>;

/// Reads `path` if it belongs to opencode; `None` if it doesn't.
pub(crate) fn read(path: &Path, emit: &mut dyn FnMut(Item, u64)) -> io::Result<Option<FileRead>> {
    let Some(format) = find("opencode") else { return Ok(None) };
    if safe_file::is_stream(path) {
        return Ok(None);
    }
    if path.extension().is_some_and(|e| e == "db") && is_database(path)? {
        return database(path, format, emit);
    }
    let Some(storage) = storage_of(path) else { return Ok(None) };
    let mut read = empty(format);
    take(&mut read, "", || of_folder(&storage, path), emit)?;
    Ok(Some(read))
}

fn empty(format: &'static dyn Format) -> FileRead {
    FileRead { format, report: Report::default(), notes: FileNotes::default(), bytes: 0 }
}

/// Reads one session.
fn take(
    read: &mut FileRead,
    session: &str,
    files: impl FnOnce() -> io::Result<Option<Files>>,
    emit: &mut dyn FnMut(Item, u64),
) -> io::Result<()> {
    let Some(files) = files()? else {
        let which = if session.is_empty() { String::new() } else { format!("session {session}: ") };
        read.notes.push(format!("{which}skipped: larger than {} MB", LONGEST >> 20));
        return Ok(());
    };
    read.bytes += files.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
    let named = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    let report = read_opencode_storage(named, &mut |item| emit(item, 0));
    read.report.unreadable += report.unreadable;
    for (kind, count) in report.unknown {
        *read.report.unknown.entry(kind).or_default() += count;
    }
    let Report { first_error, project, version, .. } = report;
    read.report.first_error = read.report.first_error.take().or(first_error);
    read.report.project = read.report.project.take().or(project);
    read.report.version = read.report.version.take().or(version);
    Ok(())
}

fn is_database(path: &Path) -> io::Result<bool> {
    let mut start = [0; 16];
    let length = io::Read::read(&mut safe_file::open(path, Links::Follow)?, &mut start)?;
    Ok(&start[..length] == b"SQLite format 3\0")
}

fn database(
    path: &Path,
    format: &'static dyn Format,
    emit: &mut dyn FnMut(Item, u64),
) -> io::Result<Option<FileRead>> {
    let rows = |error: rusqlite::Error| io::Error::other(format!("not an opencode database: {error}"));
    let database = open(path).map_err(rows)?;
    // Other programs, including deloop, have databases too.
    if !has_tables(&database).map_err(rows)? {
        return Ok(None);
    }
    let mut read = empty(format);
    for (id, about) in sessions(&database).map_err(rows)? {
        let files = || of_rows(&database, &id, about).map_err(rows);
        take(&mut read, &id, files, emit)?;
    }
    Ok(Some(read))
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
    ["-wal", "-shm", "-journal"].iter().all(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        std::fs::symlink_metadata(PathBuf::from(name)).map_or(true, |about| about.is_file())
    })
}

/// Restricts an untrusted database: its schema can't call functions with side effects, and a query that doesn't end
/// is interrupted.
#[expect(clippy::disallowed_methods, reason = "a deadline is wall-clock time, not session time")]
fn restrict(mut database: Connection, patience: Duration) -> rusqlite::Result<Connection> {
    database.busy_timeout(Duration::from_secs(2))?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    database
        .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;")?;
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

/// Returns every session, oldest first, in the form of its file in earlier releases.
fn sessions(database: &Connection) -> rusqlite::Result<Vec<(String, Vec<u8>)>> {
    let mut query = database
        .prepare("SELECT id, directory, version, title, parent_id, time_created FROM session ORDER BY time_created, id")?;
    let rows = query.query_map([], |row| {
        let id: String = row.get(0)?;
        let about = json!({
            "id": id,
            "directory": row.get::<_, Option<String>>(1)?,
            "version": row.get::<_, Option<String>>(2)?,
            "title": row.get::<_, Option<String>>(3)?,
            "parentID": row.get::<_, Option<String>>(4)?,
            "time": {"created": row.get::<_, Option<i64>>(5)?},
        });
        Ok((id, about.to_string().into_bytes()))
    })?;
    rows.collect()
}

/// Returns the messages of one session and their parts; `None` if they are too long.
fn of_rows(database: &Connection, id: &str, about: Vec<u8>) -> rusqlite::Result<Option<Files>> {
    let long: i64 = database.query_row(
        "SELECT (SELECT coalesce(sum(length(data)), 0) FROM message WHERE session_id = ?1) \
              + (SELECT coalesce(sum(length(data)), 0) FROM part WHERE session_id = ?1)",
        [id],
        |row| row.get(0),
    )?;
    if long.unsigned_abs() > LONGEST {
        return Ok(None);
    }
    let mut files = vec![(format!("session/project/{id}.json"), about)];
    for (kind, sql) in [
        ("message", "SELECT session_id, id, data FROM message WHERE session_id = ?1"),
        ("part", "SELECT message_id, id, data FROM part WHERE session_id = ?1"),
    ] {
        let mut query = database.prepare(sql)?;
        let rows = query.query_map([id], |row| {
            let (folder, id, data): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((format!("{kind}/{folder}/{id}.json"), data.into_bytes()))
        })?;
        for row in rows {
            files.push(row?);
        }
    }
    Ok(Some(files))
}

/// Returns the storage folder of this session file: `STORAGE/session/PROJECT/SESSION.json`.
fn storage_of(path: &Path) -> Option<PathBuf> {
    let sessions = path.parent()?.parent()?;
    let storage = sessions.parent()?;
    let named = |path: &Path, name: &str| path.file_name().is_some_and(|n| n == name);
    (named(sessions, "session") && path.extension().is_some_and(|e| e == "json"))
        .then(|| storage.to_owned())
        .filter(|storage| storage.join("message").is_dir())
}

/// Returns the files of one session; `None` if they are too long.
fn of_folder(storage: &Path, session: &Path) -> io::Result<Option<Files>> {
    let mut files = Vec::new();
    let mut long = 0;
    let mut add = |name: String, path: &Path| {
        // Anything that isn't a file, or is longer than a session may be, is skipped.
        let bytes = match safe_file::read(path, LONGEST, Links::Follow) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Ok(false),
            other => other?,
        };
        long += bytes.len() as u64;
        files.push((name, bytes));
        Ok::<_, io::Error>(long <= LONGEST)
    };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let id = session.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    add(format!("session/project/{}", name(session)), session)?;
    for message in inside(&storage.join("message").join(&id)) {
        if !add(format!("message/{id}/{}", name(&message)), &message)? {
            return Ok(None);
        }
        let message = message.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for part in inside(&storage.join("part").join(&message)) {
            if !add(format!("part/{message}/{}", name(&part)), &part)? {
                return Ok(None);
            }
        }
    }
    Ok(Some(files))
}

/// Returns the files in a folder, by name; none if it doesn't exist.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    files
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
}
