//! Reading: only regular files, without blocking, up to a size limit and a deadline.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;
use std::time::{Duration, Instant};

/// A file that takes longer is on a disk that doesn't answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Number of bytes read between two checks of the clock.
const PIECE: usize = 256 * 1024;

/// Whether the file itself may be a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// The user chose the path, so a link is followed.
    Follow,
    /// Someone else may have placed the file, so a link is an error.
    Refuse,
}

/// Opens a regular file for reading.
///
/// # Errors
/// When it doesn't exist, isn't a regular file (a folder, pipe, device or socket), or is a link where none is allowed.
pub(crate) fn open(path: &Path, links: Links) -> Result<File> {
    // Opening a device can have side effects, so check before opening and again after.
    let about = match links {
        Links::Follow => std::fs::metadata(path)?,
        Links::Refuse => std::fs::symlink_metadata(path)?,
    };
    check(&about)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        flags.set(OFlags::NOFOLLOW, links == Links::Refuse);
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Opens what the user named on the command line: a regular file, or a stream that the shell created.
///
/// # Errors
/// The same as for [`open`].
pub(crate) fn open_named(path: &Path) -> Result<File> {
    if is_stream(path) { File::open(path) } else { open(path, Links::Follow) }
}

/// Returns whether this path is a stream of this process (`/dev/stdout`, or `/dev/fd/63` for `<(command)`). Only the
/// shell can create it, not a folder.
pub(crate) fn is_stream(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder))
        || ["/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|stream| path == Path::new(stream))
}

/// Reads a whole regular file of at most `most` bytes.
///
/// # Errors
/// The same as for [`open`], and when the file is larger or its disk doesn't answer.
pub(crate) fn read(path: &Path, most: u64, links: Links) -> Result<Vec<u8>> {
    let file = open(path, links)?;
    let size = file.metadata()?.len();
    if size > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    fill(file, most, &mut bytes)?;
    Ok(bytes)
}

/// Reads a whole text file of at most `most` bytes.
///
/// # Errors
/// The same as for [`read`], and when it isn't UTF-8.
pub(crate) fn read_text(path: &Path, most: u64, links: Links) -> Result<String> {
    let not_text = |_| Error::new(ErrorKind::InvalidData, "not UTF-8: save it as UTF-8, then try again");
    String::from_utf8(read(path, most, links)?).map_err(not_text)
}

#[expect(clippy::disallowed_methods, reason = "a deadline is wall-clock time, not session time")]
fn fill(file: File, most: u64, bytes: &mut Vec<u8>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    // One byte more than allowed, to detect a file that grows.
    let mut file = file.take(most.saturating_add(1));
    while file.by_ref().take(PIECE as u64).read_to_end(bytes)? > 0 {
        if bytes.len() as u64 > most {
            return Err(too_large(most));
        }
        if Instant::now() > deadline {
            let why = format!("not readable within {} seconds; check the disk", PATIENCE.as_secs());
            return Err(Error::new(ErrorKind::TimedOut, why));
        }
    }
    Ok(())
}

fn check(about: &Metadata) -> Result<()> {
    if about.is_file() {
        return Ok(());
    }
    let kind = about.file_type();
    let what = if kind.is_symlink() {
        "a link, which deloop doesn't follow here; replace it with the file itself"
    } else if kind.is_dir() {
        "a folder, not a file"
    } else {
        "not a regular file (a pipe, device or socket); remove it, or name another file"
    };
    Err(Error::new(ErrorKind::InvalidInput, what))
}

fn too_large(most: u64) -> Error {
    let size = if most < 1 << 20 { format!("{} KB", most >> 10) } else { format!("{} MB", most >> 20) };
    Error::new(ErrorKind::FileTooLarge, format!("too large: the limit is {size}"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), "12345").unwrap();
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("zero")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        assert_eq!(read(&at("a"), 5, Links::Refuse).unwrap(), b"12345");
        assert_eq!(read(&at("link"), 5, Links::Follow).unwrap(), b"12345");
        let why = |name: &str, most, links| read(&at(name), most, links).unwrap_err().to_string();
        assert!(why("a", 4, Links::Follow).contains("too large"));
        assert!(why("link", 5, Links::Refuse).contains("a link"));
        assert!(why("zero", 5, Links::Follow).contains("not a regular file"));
        assert!(why("pipe", 5, Links::Follow).contains("not a regular file"));
        assert!(why("", 5, Links::Follow).contains("a folder"));
    }
}
