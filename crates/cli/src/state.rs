//! The user's state folder: the database that hooks share, and their log.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use deloop::{Bounds, Millis, SqliteStore};

use crate::config;
use crate::exit::Failure;
use crate::print;
use crate::private;

/// A log that is longer takes the place of the one before it.
const LONGEST_LOG: u64 = 1 << 20;

/// So many characters of a line are kept.
const LONGEST_LINE: usize = 2000;

/// Where it is.
pub(crate) struct State {
    folder: PathBuf,
}

impl State {
    /// The user's state folder, which need not exist.
    pub(crate) fn here() -> Result<Self, Failure> {
        let folder = config::state_folder();
        let folder = folder
            .ok_or_else(|| Failure::new("there is no home folder to keep state in; set XDG_STATE_HOME"))?;
        Ok(Self { folder })
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join("deloop.db")
    }

    /// The database, made if it is not there.
    pub(crate) fn open(&self) -> Result<SqliteStore, Failure> {
        SqliteStore::open(&self.database(), Bounds::default()).map_err(|e| Failure::new(e.to_string()))
    }

    /// The database, if there is one.
    pub(crate) fn existing(&self) -> Result<Option<SqliteStore>, Failure> {
        if self.database().exists() { self.open().map(Some) } else { Ok(None) }
    }

    /// Writes a file of the folder, for the user alone, all of it or nothing; its path.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.folder.join(name);
        private::write(&path, bytes).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        Ok(path)
    }

    /// A file of the folder, if it can be read.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.join(name)).ok()
    }

    /// Notes for people why a hook could not do its work. A log that cannot be written is nobody's problem.
    pub(crate) fn log(&self, who: &str, what: &str) {
        let path = self.folder.join("deloop.log");
        if std::fs::metadata(&path).is_ok_and(|m| m.len() > LONGEST_LOG) {
            let _ = std::fs::rename(&path, self.folder.join("deloop.log.1"));
        }
        let _ = std::fs::create_dir_all(&self.folder);
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        if let Ok(mut file) = options.open(path) {
            let what = print::log_line(what, LONGEST_LINE);
            let _ = file.write_all(format!("{} {who}: {what}\n", now()).as_bytes());
        }
    }

    pub(crate) fn remove_log(&self) {
        for name in ["deloop.log", "deloop.log.1"] {
            let _ = std::fs::remove_file(self.folder.join(name));
        }
    }
}

/// The time, which only the edges of deloop read.
pub(crate) fn now() -> Millis {
    Millis(jiff::Timestamp::now().as_millisecond())
}
