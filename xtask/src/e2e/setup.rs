//! Brings the agents here, at the versions the cases were written for, once.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::agents::Package;
use crate::registry::retried;

/// npm silently takes an older release of an agent when node is too old for the newest, so node comes from npm as well.
const NODE: Package = Package { folder: "node", name: "node", version: "22", program: "node" };

/// The agents of one machine, under `target/e2e/agents`.
pub(super) struct Agents {
    folder: PathBuf,
}

impl Agents {
    /// Looks in this folder.
    pub(super) fn open(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Whether the package is here, at a version that fits.
    pub(super) fn has(&self, package: &Package) -> bool {
        self.version(package).is_some_and(|version| fits(&version, package.version))
    }

    pub(super) fn has_node(&self) -> bool {
        self.has(&NODE)
    }

    /// Fetches the Node that agents run on, unless it is here already.
    pub(super) fn install_node(&self) -> Result<(), String> {
        self.install(&NODE)
    }

    /// Fetches the package, unless it is here already.
    pub(super) fn install(&self, package: &Package) -> Result<(), String> {
        if self.has(package) {
            return Ok(());
        }
        let Package { name, version, .. } = package;
        let folder = self.folder.join(package.folder);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        fs::write(folder.join("package.json"), "{\"private\":true}\n").map_err(|error| error.to_string())?;
        let mut npm = Command::new("npm");
        npm.current_dir(&folder).env("PATH", self.path(&[]));
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
        retried(npm.arg(format!("{name}@{version}")))?;
        match self.version(package) {
            Some(found) if fits(&found, version) => Ok(()),
            found => Err(format!("npm brought {}", found.as_deref().unwrap_or("nothing"))),
        }
    }

    /// Where the program of an installed package is, or this program.
    pub(super) fn program(&self, package: Option<&Package>) -> PathBuf {
        let Some(package) = package else { return std::env::current_exe().unwrap_or_default() };
        self.folder.join(package.folder).join("node_modules/.bin").join(package.program)
    }

    /// A PATH with these folders, then our node, then what every machine has.
    pub(super) fn path(&self, first: &[&Path]) -> OsString {
        let node = self.folder.join("node/node_modules/.bin");
        let system = std::env::var_os("PATH").unwrap_or_default();
        let folders = first.iter().map(|folder| folder.to_path_buf()).chain([node]);
        std::env::join_paths(folders.chain(std::env::split_paths(&system))).unwrap_or(system)
    }

    fn version(&self, package: &Package) -> Option<String> {
        if !self.program(Some(package)).exists() {
            return None;
        }
        let manifest =
            self.folder.join(package.folder).join("node_modules").join(package.name).join("package.json");
        let manifest: serde_json::Value = serde_json::from_slice(&fs::read(manifest).ok()?).ok()?;
        Some(manifest["version"].as_str()?.to_owned())
    }
}

fn fits(found: &str, wanted: &str) -> bool {
    found == wanted || found.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'))
}
