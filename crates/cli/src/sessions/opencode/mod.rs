//! Reads opencode's sessions: rows of a database, or many small files in earlier releases.

mod database;

use std::io;
use std::path::{Path, PathBuf};

use deloop_formats::{FileNotes, FileRead, Format, Item, Report, find, read_opencode_storage};

use crate::safe_file::{self, Links};

/// A longer session is skipped, because it must fit in memory as a whole.
const LONGEST: u64 = 256 << 20;

/// The parts of a session: names as in the storage folder, and JSON.
type Files = Vec<(String, Vec<u8>)>;

/// Reads `path` if it belongs to opencode; `None` if it doesn't.
pub(crate) fn read(path: &Path, emit: &mut dyn FnMut(Item, u64)) -> io::Result<Option<FileRead>> {
    let Some(format) = find("opencode") else { return Ok(None) };
    if safe_file::is_stream(path) {
        return Ok(None);
    }
    if path.extension().is_some_and(|e| e == "db") && database::is_database(path)? {
        return database::read(path, format, emit);
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
    let real_storage = storage.canonicalize()?;
    let mut files = Vec::new();
    let mut long = 0;
    let mut add = |name: String, path: &Path| {
        // Anything that isn't a file, or is longer than a session may be, is skipped.
        let bytes = match safe_file::read(path, LONGEST, Links::Follow) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Ok(false),
            other => other?,
        };
        if path != session && !path.canonicalize()?.starts_with(&real_storage) {
            return Err(io::Error::other(format!("`{name}` is a link that leads out of the storage folder")));
        }
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
