//! The list of trusted configurations, a file in the state folder.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::sources::{Layer, Reach};
use crate::config::{is_file_name, parse};
use crate::exit::Failure;
use crate::safe_file::{self, Links};
use crate::state::{State, now};

/// The file's name.
pub(crate) const TRUSTED_FILE: &str = "trusted.json";
/// Maximum size in bytes of a configuration that can be trusted.
const LONGEST: u64 = 1 << 20;

/// One trusted configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrustRecord {
    /// The real path, with links in its folders resolved.
    pub(crate) path: String,
    /// Hash of the content.
    pub(crate) sha256: String,
    /// The owner; `None` where files have no owner.
    uid: Option<u32>,
    /// When it was trusted, in milliseconds since 1970.
    since_ms: i64,
    /// The profile file that it names.
    pub(crate) profile: Option<ProfileFile>,
}

/// A profile file that a configuration names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProfileFile {
    /// The path, relative to the configuration's folder.
    pub(crate) path: String,
    sha256: String,
}

/// Whether a configuration is trusted.
pub(crate) enum Standing {
    /// It is, with this content.
    Trusted(Layer),
    /// It isn't; why, and how to fix that.
    Not(String),
}

/// All trusted configurations.
#[derive(Debug, Default)]
pub(crate) struct Trusted {
    records: Vec<TrustRecord>,
}

impl TrustRecord {
    /// Returns the owner, if that is neither the user nor root.
    pub(crate) fn foreign_owner(&self) -> Option<u32> {
        #[cfg(unix)]
        let me = rustix::process::geteuid().as_raw();
        #[cfg(not(unix))]
        let me = 0;
        self.uid.filter(|uid| *uid != me && *uid != 0)
    }
}

impl Trusted {
    /// Reads the list. If it can't be read, nothing is trusted.
    pub(crate) fn load() -> Self {
        Self::read().unwrap_or_default()
    }

    /// Reads the list.
    ///
    /// # Errors
    /// When there is no state folder, or the list is corrupt.
    pub(crate) fn read() -> Result<Self, Failure> {
        let Some(text) = State::here()?.read(TRUSTED_FILE) else { return Ok(Self::default()) };
        let records = serde_json::from_str(&text).map_err(|e| {
            Failure::new(format!(
                "{TRUSTED_FILE} in the state folder is corrupt ({e}): remove it, then trust your configurations again"
            ))
        })?;
        Ok(Self { records })
    }

    pub(crate) fn records(&self) -> &[TrustRecord] {
        &self.records
    }

    /// Adds a configuration to the list, replacing an earlier entry for the same path.
    pub(crate) fn add(record: TrustRecord) -> Result<(), Failure> {
        let _lock = State::here()?.lock(TRUSTED_FILE)?;
        let mut all = Self::read()?;
        all.records.retain(|known| known.path != record.path);
        all.records.push(record);
        all.write()
    }

    /// Removes a configuration from the list. Returns whether it was listed.
    pub(crate) fn remove(path: &Path) -> Result<bool, Failure> {
        let real = real_path(path).unwrap_or_else(|_| path.to_owned());
        let (real, path) = (real.to_string_lossy(), path.to_string_lossy());
        let _lock = State::here()?.lock(TRUSTED_FILE)?;
        let mut all = Self::read()?;
        let before = all.records.len();
        all.records.retain(|known| known.path != real && known.path != path);
        if all.records.len() == before {
            return Ok(false);
        }
        all.write().map(|()| true)
    }

    fn write(&self) -> Result<(), Failure> {
        State::here()?.write(TRUSTED_FILE, &serde_json::to_vec_pretty(&self.records)?).map(|_| ())
    }

    /// Returns whether the configuration at this path is trusted in its current state.
    pub(crate) fn standing(&self, path: &Path) -> Standing {
        let fix = format!("review it, then run `deloop trust {}`", shell_word(path));
        let real = match real_path(path) {
            Ok(real) => real,
            Err(why) => return Standing::Not(why),
        };
        let known = self.records.iter().find(|known| Path::new(&known.path) == real);
        let Some(known) = known else { return Standing::Not(format!("not trusted; {fix}")) };
        let (found, layer) = match examine(&real) {
            Ok(found) => found,
            Err(Failure::Message(why)) => return Standing::Not(deloop_detect::clean(&why, 300)),
            Err(Failure::ClosedPipe) => return Standing::Not("it cannot be read".to_owned()),
        };
        if found.sha256 != known.sha256 {
            Standing::Not(format!("it changed since you trusted it; {fix}"))
        } else if found.uid != known.uid {
            Standing::Not(format!("its owner changed since you trusted it; {fix}"))
        } else if found.profile != known.profile {
            Standing::Not(format!("the profile it names changed since you trusted it; {fix}"))
        } else {
            Standing::Trusted(layer)
        }
    }
}

/// Reads a configuration in a folder and the profile file that it names, without following links.
///
/// # Errors
/// When one of them isn't a regular file, is too large, isn't UTF-8, or is outside the folder.
pub(super) fn examine(path: &Path) -> Result<(TrustRecord, Layer), Failure> {
    let told = |path: &Path, e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
    let path = real_path(path).map_err(|why| told(path, &why))?;
    let text = safe_file::read_text(&path, LONGEST, Links::Refuse).map_err(|e| told(&path, &e))?;
    let root = path.parent().unwrap_or(Path::new("/")).to_owned();
    // Errors in the TOML are reported when the configuration is used.
    let document = parse(&path, &text).unwrap_or_default();
    let profile = match document.get("profile").and_then(|name| name.as_str()).filter(|n| is_file_name(n)) {
        None => None,
        Some(name) => {
            let file = inside(&root, Path::new(name)).map_err(|why| told(&path, &why))?;
            let text = safe_file::read_text(&file, LONGEST, Links::Refuse).map_err(|e| told(&file, &e))?;
            Some((name.to_owned(), text))
        }
    };
    let record = TrustRecord {
        path: path.to_str().ok_or_else(|| told(&path, &"its path is not UTF-8; rename it"))?.to_owned(),
        sha256: digest(text.as_bytes()),
        uid: owner(&path),
        since_ms: now().0,
        profile: profile
            .as_ref()
            .map(|(name, text)| ProfileFile { path: name.clone(), sha256: digest(text.as_bytes()) }),
    };
    Ok((record, Layer { path, text: Ok(text), reach: Reach::Inside { root, profile } }))
}

/// Returns a path inside a folder that contains no links.
fn inside(root: &Path, relative: &Path) -> Result<PathBuf, String> {
    let mut path = root.to_owned();
    for part in relative.components() {
        match part {
            Component::CurDir => continue,
            Component::Normal(name) => path.push(name),
            _ => {
                return Err(
                    "`profile` names a file outside the configuration's folder; copy it into that folder"
                        .to_owned(),
                );
            }
        }
        if path.is_symlink() {
            return Err(format!(
                "the path in `profile` contains a symbolic link, {}, which deloop doesn't follow",
                path.display()
            ));
        }
    }
    Ok(path)
}

/// Returns the path with the links in its folders resolved. The file itself must not be a link.
fn real_path(path: &Path) -> Result<PathBuf, String> {
    let name = path.file_name().ok_or("not a file name")?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().map_err(|e| e.to_string())?;
    let path = folder.join(name);
    if path.is_symlink() {
        return Err("it is a link, and deloop doesn't follow links to a project's configuration".to_owned());
    }
    Ok(path)
}

/// Returns the SHA-256 in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(unix)]
fn owner(path: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|about| about.uid())
}

#[cfg(not(unix))]
fn owner(_: &Path) -> Option<u32> {
    None
}

/// Returns the path as you can type it in a shell, without characters that affect the terminal.
fn shell_word(path: &Path) -> String {
    let text = deloop_detect::clean(&path.to_string_lossy(), 300);
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+~".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
