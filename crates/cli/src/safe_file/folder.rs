//! A folder that is held open, and its files.

use std::ffi::{OsStr, OsString};
use std::fs::File;
#[cfg(not(unix))]
use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
#[cfg(not(unix))]
use std::path::PathBuf;

use super::write::Make;

/// Number of random names to try before giving up.
const TRIES: u32 = 16;

/// Metadata of an existing file.
pub(super) struct Before {
    is_link: bool,
    is_file: bool,
    pub(super) mode: u32,
    owner: u32,
    group: u32,
    pub(super) names: u64,
}

impl Before {
    /// Returns whether it is a regular file, not a link to one.
    pub(super) fn is_regular(&self) -> bool {
        self.is_file && !self.is_link
    }

    /// Checks that it is a regular, writable file of the user.
    pub(super) fn check(&self) -> Result<()> {
        let refused = |why: &str| Err(Error::new(ErrorKind::InvalidInput, why.to_owned()));
        if self.is_link {
            return refused(
                "is a link, which deloop doesn't follow here; replace it with a file, or remove it",
            );
        }
        if !self.is_file {
            return refused("is not a regular file; remove it, or name another file");
        }
        if self.mode & 0o200 == 0 {
            return refused("is read-only; make it writable first: chmod u+w");
        }
        self.check_owner()
    }

    #[cfg(unix)]
    fn check_owner(&self) -> Result<()> {
        let me = rustix::process::geteuid();
        if me.is_root() || me.as_raw() == self.owner {
            return Ok(());
        }
        let why = format!("belongs to another user (uid {}); remove it, or name another file", self.owner);
        Err(Error::new(ErrorKind::InvalidInput, why))
    }

    #[cfg(not(unix))]
    fn check_owner(&self) -> Result<()> {
        Ok(())
    }

    /// Keeps the owner when root changes a user's file, and the group where permitted.
    #[cfg(unix)]
    pub(super) fn keep_owner(&self, file: &File) {
        let (owner, group) = (rustix::fs::Uid::from_raw(self.owner), rustix::fs::Gid::from_raw(self.group));
        let _ = rustix::fs::fchown(file, Some(owner), Some(group));
    }

    #[cfg(not(unix))]
    pub(super) fn keep_owner(&self, _: &File) {}
}

#[cfg(unix)]
pub(super) fn set_mode(file: &File, mode: u32) -> Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode & 0o777))
}

#[cfg(not(unix))]
pub(super) fn set_mode(_: &File, _: u32) -> Result<()> {
    Ok(())
}

/// Returns an unpredictable name.
fn random_name() -> OsString {
    use std::hash::{BuildHasher, Hasher};
    // A RandomState gets its keys from the system's random number generator.
    let number = |n: u32| {
        let mut hasher = std::hash::RandomState::new().build_hasher();
        hasher.write_u32(n ^ std::process::id());
        hasher.finish()
    };
    format!(".deloop-{:016x}{:016x}.tmp", number(0), number(1)).into()
}

/// A folder handle that keeps referring to the same folder, whatever replaces it in the meantime.
#[cfg(unix)]
pub(super) struct OpenFolder(rustix::fd::OwnedFd);

#[cfg(unix)]
impl OpenFolder {
    pub(super) fn open(path: &Path) -> Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens the subfolder of this name; a link is an error.
    pub(super) fn enter(&self, name: &OsStr, make: Make) -> Result<Self> {
        use rustix::fs::{Mode, OFlags};
        if make == Make::Folders {
            match rustix::fs::mkdirat(&self.0, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Err(rustix::io::Errno::EXIST) | Ok(()) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(folder) => Ok(Self(folder)),
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => Err(Error::new(
                ErrorKind::InvalidInput,
                "is a link or a file, not a folder; deloop doesn't follow links here: replace it with a folder",
            )),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn look(&self, name: &OsStr) -> Result<Option<Before>> {
        use rustix::fs::{AtFlags, FileType};
        let about = match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => about,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        #[allow(
            clippy::unnecessary_cast,
            clippy::allow_attributes,
            reason = "these types differ from system to system"
        )]
        let (mode, names) = (about.st_mode as u32, about.st_nlink as u64);
        let kind = FileType::from_raw_mode(about.st_mode);
        Ok(Some(Before {
            is_link: kind.is_symlink(),
            is_file: kind.is_file(),
            mode,
            owner: about.st_uid,
            group: about.st_gid,
            names,
        }))
    }

    pub(super) fn create_fresh(&self, mode: u32) -> Result<(OsString, File)> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            let name = random_name();
            match rustix::fs::openat(&self.0, &name, flags, Mode::from_bits_truncate(mode as _)) {
                Ok(file) => return Ok((name, File::from(file))),
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::new(ErrorKind::AlreadyExists, "no free name for a temporary file"))
    }

    pub(super) fn append(&self, name: &OsStr) -> Result<File> {
        self.open_in_place(name, rustix::fs::OFlags::APPEND | rustix::fs::OFlags::WRONLY)
    }

    pub(super) fn edit(&self, name: &OsStr) -> Result<File> {
        self.open_in_place(name, rustix::fs::OFlags::RDWR)
    }

    pub(super) fn read(&self, name: &OsStr) -> Result<File> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    fn open_in_place(&self, name: &OsStr, how: rustix::fs::OFlags) -> Result<File> {
        use rustix::fs::{Mode, OFlags};
        let safe = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let flags = how | OFlags::CREATE | safe;
        let file = File::from(rustix::fs::openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?);
        if !file.metadata()?.is_file() {
            return Err(Error::new(ErrorKind::InvalidInput, "is not a regular file; remove it"));
        }
        Ok(file)
    }

    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        rustix::fs::renameat(&self.0, from, &self.0, to)?;
        // Syncing the folder makes the name durable. A file system that can't do that still has the file.
        let _ = rustix::fs::fsync(&self.0);
        Ok(())
    }

    pub(super) fn remove(&self, name: &OsStr) -> Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, rustix::fs::AtFlags::empty())?)
    }
}

/// On other systems a folder is identified by its path.
#[cfg(not(unix))]
pub(super) struct OpenFolder(PathBuf);

#[cfg(not(unix))]
impl OpenFolder {
    pub(super) fn open(path: &Path) -> Result<Self> {
        Ok(Self(path.to_owned()))
    }

    pub(super) fn enter(&self, name: &OsStr, make: Make) -> Result<Self> {
        let path = self.0.join(name);
        if make == Make::Folders
            && let Err(error) = std::fs::create_dir(&path)
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        if !std::fs::symlink_metadata(&path)?.is_dir() {
            return Err(Error::new(ErrorKind::NotADirectory, "is a link or a file, not a folder"));
        }
        Ok(Self(path))
    }

    pub(super) fn look(&self, name: &OsStr) -> Result<Option<Before>> {
        let about = match std::fs::symlink_metadata(self.0.join(name)) {
            Ok(about) => about,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mode = if about.permissions().readonly() { 0o400 } else { 0o600 };
        let (is_link, is_file) = (about.is_symlink(), about.is_file());
        Ok(Some(Before { is_link, is_file, mode, owner: 0, group: 0, names: 1 }))
    }

    pub(super) fn create_fresh(&self, _: u32) -> Result<(OsString, File)> {
        for _ in 0..TRIES {
            let name = random_name();
            match OpenOptions::new().create_new(true).write(true).open(self.0.join(&name)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|file| (name, file)),
            }
        }
        Err(Error::new(ErrorKind::AlreadyExists, "no free name for a temporary file"))
    }

    pub(super) fn append(&self, name: &OsStr) -> Result<File> {
        OpenOptions::new().create(true).append(true).open(self.0.join(name))
    }

    pub(super) fn read(&self, name: &OsStr) -> Result<File> {
        OpenOptions::new().read(true).open(self.0.join(name))
    }

    pub(super) fn edit(&self, name: &OsStr) -> Result<File> {
        OpenOptions::new().create(true).read(true).write(true).truncate(false).open(self.0.join(name))
    }

    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        std::fs::rename(self.0.join(from), self.0.join(to))
    }

    pub(super) fn remove(&self, name: &OsStr) -> Result<()> {
        std::fs::remove_file(self.0.join(name))
    }
}
