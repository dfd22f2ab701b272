//! Finds the configuration files that apply here and determines whether they are trusted.

use std::path::{Path, PathBuf};

use super::ConfigNotice;
use crate::safe_file::{self, Links};
use crate::trust::{Standing, Trusted};

/// The names of a configuration file, in search order.
const NAMES: [&str; 4] = ["deloop.toml", "deloop.yaml", "deloop.yml", ".deloop.toml"];
/// Maximum size in bytes. A longer configuration is a mistake or an attack.
pub(super) const LONGEST: u64 = 1 << 20;

/// A configuration file and its content.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) path: PathBuf,
    /// The content, or why it can't be read.
    pub(crate) text: Result<String, String>,
    /// Which files it may name.
    pub(crate) reach: Reach,
}

impl Layer {
    /// Returns whether it is a project's configuration, not the user's own.
    pub(crate) fn is_of_project(&self) -> bool {
        matches!(self.reach, Reach::Inside { .. })
    }
}

/// Which files a configuration may name.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    /// The user's own configuration: any file.
    Anywhere,
    /// A project's configuration: files inside its folder, without links, as they were when it was trusted.
    Inside {
        /// The folder.
        root: PathBuf,
        /// The profile file that it names, if any, and its content.
        profile: Option<(String, String)>,
    },
}

/// The configuration files found.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The file that the user named, or the one in the user's configuration folder.
    pub(super) own: Option<Layer>,
    /// The nearest file in the working folder or above, if it is trusted.
    pub(super) project: Option<Layer>,
    /// Why a file was ignored.
    pub(super) ignored: Option<ConfigNotice>,
}

/// Reads the user's file and the project's, or only the one that was named.
pub(super) fn find(named: Option<&Path>) -> Sources {
    if let Some(path) = named {
        return Sources { own: Some(own(path.to_owned())), ..Sources::default() };
    }
    let user = user_folder().and_then(|folder| first_in(&folder));
    let mut sources = Sources { own: user.clone().map(own), ..Sources::default() };
    let mut trusted = None;
    for path in upward().filter(|path| !same(path, user.as_deref())) {
        match trusted.get_or_insert_with(Trusted::load).standing(&path) {
            Standing::Trusted(layer) => {
                sources.project = Some(layer);
                break;
            }
            // An untrusted file doesn't hide a trusted one further up.
            Standing::Not(why) => {
                let path = deloop_detect::clean(&path.to_string_lossy(), 300);
                let notice = || ConfigNotice::Ignored(format!("ignored {path}: {why}"));
                sources.ignored.get_or_insert_with(notice);
            }
        }
    }
    sources
}

/// Returns the configurations in the working folder and above, nearest first.
fn upward() -> impl Iterator<Item = PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let folders: Vec<PathBuf> = here.ancestors().map(Path::to_owned).collect();
    folders.into_iter().flat_map(|folder| NAMES.map(|name| folder.join(name))).filter(|path| is_one(path))
}

/// Returns the nearest configuration in the working folder or above.
pub(crate) fn nearest() -> Option<PathBuf> {
    upward().next()
}

/// Returns the configuration in this folder.
pub(crate) fn first_in(folder: &Path) -> Option<PathBuf> {
    NAMES.iter().map(|name| folder.join(name)).find(|path| is_one(path))
}

/// Returns whether there is a configuration. A link counts, so that it is reported and not silently skipped.
fn is_one(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|about| !about.is_dir())
}

fn own(path: PathBuf) -> Layer {
    let text = safe_file::read_text(&path, LONGEST, Links::Follow).map_err(|e| e.to_string());
    Layer { path, text, reach: Reach::Anywhere }
}

fn same(a: &Path, b: Option<&Path>) -> bool {
    let Some(b) = b else { return false };
    a == b || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

/// Returns a folder from the environment. A relative one is ignored, because it would depend on the working folder.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Returns deloop's configuration folder of the user.
fn user_folder() -> Option<PathBuf> {
    let base = if cfg!(windows) {
        variable("APPDATA")
    } else {
        variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")))
    };
    base.map(|base| base.join("deloop"))
}

/// Returns the user's configuration file, or where it would be.
pub(crate) fn own_file() -> Option<PathBuf> {
    let folder = user_folder()?;
    Some(first_in(&folder).unwrap_or_else(|| folder.join(NAMES[0])))
}

/// Returns deloop's state folder of the user.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")))
    };
    base.map(|base| base.join("deloop"))
}
