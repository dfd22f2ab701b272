//! The user's state folder: the database that all hooks share, and their log.

use std::io::Write;
use std::path::{Path, PathBuf};

use deloop_live::SqliteJournal;
use deloop_store::{Bounds, set_aside_files};
use deloop_types::Millis;

use crate::config;
use crate::exit::Failure;
use crate::print;
use crate::safe_file::{self, Expected, FileLock, Links, Permission, Target};

/// A longer log is rotated and replaces the previous one.
const LONGEST_LOG: u64 = 1 << 20;
/// A longer file wasn't written by deloop.
const LONGEST_FILE: u64 = 64 << 20;

/// Maximum length of a log line, in characters.
const LONGEST_LINE: usize = 2000;

/// The name of a server's database.
#[cfg(feature = "serve")]
pub(crate) const SERVER_DATABASE: &str = "server.db";

/// The name of the file with a server's waiting alerts.
#[cfg(feature = "serve")]
pub(crate) const SERVER_ALERTS: &str = "alerts.db";

/// The state folder.
pub(crate) struct State {
    folder: PathBuf,
}

impl State {
    /// Returns the user's state folder, which may not exist.
    pub(crate) fn here() -> Result<Self, Failure> {
        let folder = config::state_folder();
        let folder =
            folder.ok_or_else(|| Failure::new("no home folder to keep state in; set XDG_STATE_HOME"))?;
        Ok(Self { folder })
    }

    /// Creates the folder and returns the file of a server's database in it. Hooks use another file.
    #[cfg(feature = "serve")]
    pub(crate) fn server_database(&self) -> Result<PathBuf, Failure> {
        self.prepare().map_err(|e| Failure::new(format!("{}: {e}", self.folder.display())))?;
        Ok(self.folder.join(SERVER_DATABASE))
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join("deloop.db")
    }

    /// Opens the database; creates it if it doesn't exist.
    pub(crate) fn open(&self) -> Result<SqliteJournal, Failure> {
        self.prepare().map_err(|e| Failure::new(format!("{}: {e}", self.folder.display())))?;
        SqliteJournal::open(&self.database(), Bounds::default()).map_err(|e| Failure::new(e.to_string()))
    }

    /// Returns what people should know of the damaged databases that were set aside here, one text for each.
    pub(crate) fn damage(&self) -> Vec<String> {
        let files = set_aside_files(&self.database()).into_iter();
        #[cfg(feature = "serve")]
        let files = files.chain(set_aside_files(&self.folder.join(SERVER_DATABASE)));
        let text = |file: PathBuf| {
            format!(
                "{} was damaged and set aside, so sessions in it started afresh; delete it once you have what you need \
                 of it",
                file.display()
            )
        };
        files.map(text).collect()
    }

    /// Opens the database, if it exists.
    pub(crate) fn existing(&self) -> Result<Option<SqliteJournal>, Failure> {
        if self.database().exists() { self.open().map(Some) } else { Ok(None) }
    }

    /// Writes a file in the folder atomically, accessible only to the user. Returns its path.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.folder.join(name);
        let done = self
            .prepare()
            .and_then(|()| Target::making_folders(&path)?.replace(bytes, Permission::Private, Expected::Any));
        done.map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        Ok(path)
    }

    /// Takes the lock of a file in the folder. Hold it from reading the file to writing it.
    pub(crate) fn lock(&self, name: &str) -> Result<FileLock, Failure> {
        let path = self.folder.join(name);
        let locked = self.prepare().and_then(|()| safe_file::lock(&path));
        locked.map_err(|e| Failure::new(format!("{}: {e}", path.display())))
    }

    /// Reads a file in the folder, if possible.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        safe_file::read_text(&self.folder.join(name), LONGEST_FILE, Links::Refuse).ok()
    }

    /// Creates the folder, or removes other users' access to an existing one that the user owns.
    fn prepare(&self) -> std::io::Result<()> {
        prepare_folder(&self.folder)
    }

    /// Logs why a hook failed. A failure to write the log is ignored.
    pub(crate) fn log(&self, who: &str, what: &str) {
        let path = self.folder.join("deloop.log");
        if std::fs::metadata(&path).is_ok_and(|m| m.len() > LONGEST_LOG) {
            let _ = std::fs::rename(&path, self.folder.join("deloop.log.1"));
        }
        if let Ok(mut file) = self.prepare().and_then(|()| Target::named(&path)?.append()) {
            let what = print::log_line(what, LONGEST_LINE);
            let _ = file.write_all(format!("{} {who}: {what}\n", now()).as_bytes());
        }
    }

    /// Returns the files of `folder` inside the state folder whose names have this prefix and suffix.
    pub(crate) fn files(&self, folder: &str, prefix: &str, suffix: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten();
        let matches = |name: &std::ffi::OsStr| {
            name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(suffix))
        };
        entries.filter(|entry| matches(&entry.file_name())).map(|entry| entry.path()).collect()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Creates a state folder, or removes other users' access to an existing one that the user owns.
pub(crate) fn prepare_folder(folder: &Path) -> std::io::Result<()> {
    safe_file::private_folder(folder)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let about = std::fs::metadata(folder)?;
        if about.mode() & 0o077 != 0 && about.uid() == rustix::process::geteuid().as_raw() {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}

/// Returns the current time. Only the edges of deloop read the clock.
pub(crate) fn now() -> Millis {
    Millis(jiff::Timestamp::now().as_millisecond())
}
