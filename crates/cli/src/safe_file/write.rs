//! Writing: no link is followed, new files are created exclusively under a random name, and a file that another program
//! changed in the meantime is left alone.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use super::folder::{OpenFolder, set_mode};
use super::read::{Links, is_stream, read};

/// A larger file isn't compared, because deloop never reads one.
const MOST: u64 = 64 << 20;

/// A file to write: its open folder and its name in it.
pub(crate) struct Target {
    folder: OpenFolder,
    name: OsString,
    path: PathBuf,
}

/// The content that the file must have to be replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected<'a> {
    /// Any content, or no file.
    Any,
    /// No file.
    Absent,
    /// Exactly these bytes.
    Bytes(&'a [u8]),
}

/// Whether to create missing folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Make {
    /// Create them.
    Folders,
    /// Don't create them: a mistyped path is an error.
    Nothing,
}

/// Who may read the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    /// Only the user, mode 0600.
    Private,
    /// Everyone who could read the file before; for a new file, as the umask allows.
    Keep,
    /// The same as this other file, if it exists, else as the umask allows.
    Mode(Option<u32>),
}

impl Target {
    /// Opens a path that the user chose. Links in its folders are followed; the file itself must not be a link.
    pub(crate) fn named(path: &Path) -> Result<Self> {
        let name = path.file_name().ok_or_else(|| Error::new(ErrorKind::InvalidInput, "not a file name"))?;
        let parent = folder_of(path);
        Ok(Self { folder: OpenFolder::open(parent)?, name: name.to_owned(), path: path.to_owned() })
    }

    /// Does the same as [`Target::named`] and creates missing folders, accessible only to the user.
    pub(crate) fn making_folders(path: &Path) -> Result<Self> {
        private_folder(folder_of(path))?;
        Self::named(path)
    }

    /// Opens a path that the user typed or wrote into their own configuration. Inside the working folder, no links are
    /// followed, because someone else may control its content.
    pub(crate) fn chosen(path: &Path, make: Make) -> Result<Self> {
        let here = std::env::current_dir();
        let inside = here.ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
        let inside = inside.unwrap_or_else(|| path.to_owned());
        if inside.is_relative() && !inside.components().any(|part| part == Component::ParentDir) {
            return Self::walk(Path::new("."), &inside, make);
        }
        match make {
            Make::Folders => Self::making_folders(path),
            Make::Nothing => Self::named(path),
        }
    }

    /// Opens a path below `root`, a folder whose content someone else may control. The path must contain no
    /// links and stay inside `root`. Missing folders are created.
    pub(crate) fn below(root: &Path, relative: &Path) -> Result<Self> {
        Self::walk(root, relative, Make::Folders)
    }

    /// Does the same as [`Target::below`], but creates no folders.
    ///
    /// # Errors
    /// When a folder in the path doesn't exist or is a link.
    pub(crate) fn existing_below(root: &Path, relative: &Path) -> Result<Self> {
        Self::walk(root, relative, Make::Nothing)
    }

    fn walk(root: &Path, relative: &Path, make: Make) -> Result<Self> {
        let mut folder = OpenFolder::open(root)?;
        let mut path = root.to_owned();
        let mut names = Vec::new();
        for part in relative.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => {
                    let why = format!("points outside {}; use a path inside it", root.display());
                    return Err(Error::new(ErrorKind::InvalidInput, why));
                }
            }
        }
        let name = names.pop().ok_or_else(|| Error::new(ErrorKind::InvalidInput, "not a file name"))?;
        for part in names {
            path.push(part);
            folder = folder
                .enter(part, make)
                .map_err(|e| Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        }
        path.push(name);
        Ok(Self { folder, name: name.to_owned(), path })
    }

    /// Replaces the file with these bytes atomically: a reader sees the old file or the new one.
    ///
    /// # Errors
    /// When the file is a link, isn't a regular file, belongs to another user or is read-only, when it doesn't have the
    /// expected content, or when it can't be written. Nothing is left behind then.
    pub(crate) fn replace(&self, bytes: &[u8], permission: Permission, expected: Expected<'_>) -> Result<()> {
        let before = self.folder.look(&self.name)?;
        if let Some(before) = &before {
            before.check()?;
        }
        let mode = match permission {
            Permission::Private => Some(0o600),
            Permission::Keep => before.as_ref().map(|b| b.mode),
            Permission::Mode(mode) => mode,
        };
        let (fresh, mut file) = self.folder.create_fresh(if mode.is_some() { 0o600 } else { 0o666 })?;
        let mut write = || -> Result<()> {
            if let Some(mode) = mode {
                set_mode(&file, mode)?;
            }
            if let Some(before) = &before {
                before.keep_owner(&file);
            }
            file.write_all(bytes)?;
            file.sync_all()?;
            self.expect(expected)?;
            self.folder.rename(&fresh, &self.name)
        };
        let done = write();
        if done.is_err() {
            let _ = self.folder.remove(&fresh);
        }
        done
    }

    /// Opens the file for appending. Creates it, accessible only to the user, if it doesn't exist.
    ///
    /// # Errors
    /// When it is a link or a hard link, isn't a regular file or belongs to another user.
    pub(crate) fn append(&self) -> Result<File> {
        self.check_alone()?;
        self.folder.append(&self.name)
    }

    /// Reads the last `most` bytes of the file.
    ///
    /// # Errors
    /// When it doesn't exist, is a link, isn't a regular file or can't be read.
    pub(crate) fn read_tail(&self, most: u64) -> Result<Vec<u8>> {
        if !self.folder.look(&self.name)?.is_some_and(|before| before.is_regular()) {
            return Err(not_a_file());
        }
        let mut file = self.folder.read(&self.name)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(not_a_file());
        }
        file.seek(SeekFrom::Start(about.len().saturating_sub(most)))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Opens the file for reading and writing. Creates it, accessible only to the user, if it doesn't exist.
    ///
    /// # Errors
    /// The same as for [`Target::append`].
    pub(crate) fn edit(&self) -> Result<File> {
        self.check_alone()?;
        self.folder.edit(&self.name)
    }

    /// Checks that writing to the file changes no other file.
    fn check_alone(&self) -> Result<()> {
        let Some(before) = self.folder.look(&self.name)? else { return Ok(()) };
        before.check()?;
        if before.names > 1 {
            let why = "is a hard link: the file has another name elsewhere; replace it with a separate copy";
            return Err(Error::new(ErrorKind::InvalidInput, why));
        }
        Ok(())
    }

    /// Removes the file if it has the expected content.
    ///
    /// # Errors
    /// When it doesn't, or can't be removed.
    pub(crate) fn remove(&self, expected: Expected<'_>) -> Result<()> {
        self.expect(expected)?;
        match self.folder.remove(&self.name) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn expect(&self, expected: Expected<'_>) -> Result<()> {
        let now = match expected {
            Expected::Any => return Ok(()),
            _ => match read(&self.path, MOST, Links::Refuse) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            },
        };
        let same = match expected {
            Expected::Any => true,
            Expected::Absent => now.is_none(),
            Expected::Bytes(bytes) => now.as_deref() == Some(bytes),
        };
        if same {
            return Ok(());
        }
        Err(Error::other(
            "another program changed it in the meantime, so nothing was written; run the command again",
        ))
    }
}

fn not_a_file() -> Error {
    Error::new(ErrorKind::NotFound, "is missing, or is not a regular file")
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Replaces a file that the user named on the command line.
///
/// # Errors
/// The same as for [`Target::replace`].
pub(crate) fn replace_named(path: &Path, bytes: &[u8]) -> Result<()> {
    if is_stream(path) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    Target::chosen(path, Make::Nothing)?.replace(bytes, Permission::Private, Expected::Any)
}

/// Opens a file that the user named on the command line, for appending.
///
/// # Errors
/// The same as for [`Target::append`].
pub(crate) fn append_named(path: &Path) -> Result<File> {
    if is_stream(path) {
        return OpenOptions::new().append(true).open(path);
    }
    Target::chosen(path, Make::Nothing)?.append()
}

/// Creates a folder and its parents, accessible only to the user whatever the umask is. An existing one is unchanged.
pub(crate) fn private_folder(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_are_neither_followed_nor_replaced() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("mine"), "mine").unwrap();
        fs::create_dir(at("repo")).unwrap();
        symlink(at("mine"), at("repo/file")).unwrap();
        symlink(home.path(), at("repo/folder")).unwrap();
        let below = |path: &str| Target::below(&at("repo"), Path::new(path));
        let write = |target: &Target| target.replace(b"theirs", Permission::Private, Expected::Any);
        assert!(write(&below("file").unwrap()).unwrap_err().to_string().contains("is a link"));
        assert!(below("file").unwrap().append().unwrap_err().to_string().contains("is a link"));
        assert!(below("folder/mine").err().unwrap().to_string().contains("doesn't follow links"));
        assert!(below("../mine").err().unwrap().to_string().contains("points outside"));
        assert!(below("/mine").err().unwrap().to_string().contains("points outside"));
        fs::hard_link(at("mine"), at("repo/hard")).unwrap();
        assert!(below("hard").unwrap().append().unwrap_err().to_string().contains("hard link"));
        assert_eq!(fs::read_to_string(at("mine")).unwrap(), "mine");
        write(&below("new/deep/file").unwrap()).unwrap();
        assert_eq!(fs::read_to_string(at("repo/new/deep/file")).unwrap(), "theirs");
        assert_eq!(fs::read_dir(at("repo/new/deep")).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn an_edit_in_between_is_kept_and_modes_are() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a");
        let target = Target::named(&path).unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        target.replace(b"1", Permission::Private, Expected::Absent).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = target.replace(b"3", Permission::Keep, Expected::Bytes(b"2")).unwrap_err();
        assert!(error.to_string().contains("another program changed it"), "{error}");
        assert!(target.replace(b"3", Permission::Keep, Expected::Absent).is_err());
        target.replace(b"2", Permission::Keep, Expected::Bytes(b"1")).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode()), ("2", 0o640));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
        assert!(target.replace(b"4", Permission::Keep, Expected::Any).is_err(), "it is read-only");
        assert!(target.remove(Expected::Bytes(b"1")).is_err());
        target.remove(Expected::Bytes(b"2")).unwrap();
        assert!(!path.exists());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
