//! Opens the database file and moves a damaged one aside.

use std::fs::{File, Metadata, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::lock_wait::{LockWait, PATIENCE, PAUSE};
use super::schema::migrate;
use crate::StoreError;

/// A log with more bytes than this is moved into the file. The log is read at every start, so it is kept short. Moving
/// it waits for the disk, so it isn't done every time.
const LONGEST_LOG: u64 = 128 * 4096;
/// Maximum number of damaged files kept next to the good one.
const ASIDE: u32 = 9;
/// What is appended to the name of a damaged file, before its number.
const CORRUPT: &str = ".corrupt-";

/// Returns whether the file itself is damaged.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    let failed = |e: &dyn std::fmt::Display| StoreError::database(path, e.to_string());
    match connect(path) {
        Err(Trouble::Database(error)) if is_damage(&error) => {
            replace_if_damaged(path)
                .map_err(|e| failed(&format!("{error}; it could not be renamed ({e}): move it away")))?;
            connect(path).map_err(|e| failed(&e))
        }
        opened => opened.map_err(|e| failed(&e)),
    }
}

/// Renames a damaged file. If several processes find it, one renames it and the others then see a good file.
pub(super) fn replace_if_damaged(path: &Path) -> std::io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let lock = private_file(&beside(path, ".lock"))?;
    while let Err(held) = lock.try_lock() {
        if Instant::now() >= until {
            return Err(std::io::Error::other(format!("another process is doing it: {held}")));
        }
        std::thread::sleep(PAUSE);
    }
    let sound = connect(path).is_ok_and(|connection| {
        let checked: rusqlite::Result<String> =
            connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
        checked.is_ok_and(|said| said == "ok")
    });
    if sound { Ok(()) } else { set_aside(path) }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Why a file couldn't be opened.
pub(super) enum Trouble {
    Database(rusqlite::Error),
    Later { found: usize, known: usize },
    File(std::io::Error),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Database(e) => e.fmt(f),
            Self::File(e) => e.fmt(f),
            Self::Later { found, known } => write!(
                f,
                "a later release wrote this file (schema {found}, this release reads {known}): update deloop"
            ),
        }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

fn connect(path: &Path) -> Result<Connection, Trouble> {
    make_private(path).map_err(Trouble::File)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    let mut wait = LockWait::new(&beside(path, "-wal"));
    connection.busy_handler(Some(move |attempt| wait.sleep(attempt)))?;
    connection.set_prepared_statement_cache_capacity(32);
    // Closing would write the log back and wait for the disk: too dear at the end of every short-lived process.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    use_log(&connection, LockWait::new(&beside(path, "-wal")))?;
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;")?;
    migrate(&connection)?;
    Ok(connection)
}

/// Switches a new file to a write-ahead log. When several processes do so at the same time, SQLite refuses all but one of
/// them at once: waiting with the lock they already have could block all of them forever. So this one tries again.
fn use_log(connection: &Connection, mut wait: LockWait) -> rusqlite::Result<()> {
    let mut attempt = 0;
    loop {
        match connection.execute_batch("PRAGMA journal_mode = WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && wait.sleep(attempt) =>
            {
                attempt += 1;
            }
            done => return done,
        }
    }
}

/// Moves a long log into the file and empties it. SQLite alone would only restart the log at the next write of the
/// same process. A process that writes once never gets there, so the log would grow forever.
pub(super) fn shorten_log(connection: &Connection, path: &Path) {
    if std::fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > LONGEST_LOG) {
        // Another process that is busy with it now, or the next one, can do it as well.
        let _ = connection.busy_timeout(Duration::ZERO);
        let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    }
}

/// Creates the file and its folder, accessible only to the user. SQLite gives the log the same mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    if let Ok(about) = std::fs::metadata(path) {
        return close_to_others(path, &about);
    }
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    private_file(path).map(|_| ())
}

fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Removes other users' access to a file that an earlier release or a copy left accessible, if we own it.
#[cfg(unix)]
fn close_to_others(path: &Path, about: &Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = about.permissions().mode();
    if about.is_file() && mode & 0o077 != 0 {
        // A file of another user keeps its mode.
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o700));
    }
    Ok(())
}

#[cfg(not(unix))]
fn close_to_others(_: &Path, _: &Metadata) -> std::io::Result<()> {
    Ok(())
}

/// Returns the damaged files that were set aside beside a database.
#[must_use]
pub fn set_aside_files(path: &Path) -> Vec<PathBuf> {
    let names = (1..=ASIDE).map(|n| beside(path, &format!("{CORRUPT}{n}")));
    names.filter(|name| name.exists()).collect()
}

/// Renames a file to the first free `NAME.corrupt-N`.
fn set_aside(path: &Path) -> std::io::Result<()> {
    let name = |n: u32| beside(path, &format!("{CORRUPT}{n}"));
    let free = (1..ASIDE).find(|n| !name(*n).exists()).unwrap_or(ASIDE);
    std::fs::rename(path, name(free))?;
    // A log left behind would be replayed into the new file.
    for log in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(path, log));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file is damaged, and whoever replaces it holds the lock for ever.
    #[test]
    fn a_damaged_file_with_a_held_lock_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deloop.db");
        std::fs::write(&path, "no database").unwrap();
        let lock = private_file(&beside(&path, ".lock")).unwrap();
        lock.lock().unwrap();
        let error = open(&path).unwrap_err().to_string();
        assert!(error.contains("another process is doing it"), "{error}");
        drop(lock);
        assert!(open(&path).is_ok());
    }
}
