//! Brings the agents here, at the versions the cases were written for, once.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::agents::Package;

/// npm silently takes an older release of an agent when node is too old for the newest, so node comes from npm as well.
const NODE: Package = Package { folder: "node", name: "node", version: "22", program: "node" };

/// The agents of one machine, under `target/e2e/agents`.
pub(super) struct Agents {
    folder: PathBuf,
}

impl Agents {
    /// Looks in this folder, and fetches node into it if it is not there.
    pub(super) fn open(folder: PathBuf) -> Result<Self, String> {
        let agents = Self { folder };
        agents.install(&NODE)?;
        Ok(agents)
    }

    /// Fetches the package unless it is here already.
    pub(super) fn install(&self, package: &Package) -> Result<(), String> {
        let folder = self.folder.join(package.folder);
        if self.version(package).is_some_and(|version| fits(&version, package.version)) {
            return Ok(());
        }
        let Package { name, version, .. } = package;
        println!("installing {name} {version}");
        let describe = |error: &dyn std::fmt::Display| format!("cannot install {name} {version}: {error}");
        fs::create_dir_all(&folder).map_err(|e| describe(&e))?;
        fs::write(folder.join("package.json"), "{\"private\":true}\n").map_err(|e| describe(&e))?;
        let npm = Command::new("npm")
            .current_dir(&folder)
            .env("PATH", self.path(&[]))
            .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
            .arg(format!("{name}@{version}"))
            .output()
            .map_err(|e| describe(&format!("npm does not start ({e}); install Node.js with npm")))?;
        if !npm.status.success() {
            return Err(describe(&String::from_utf8_lossy(&npm.stderr).trim()));
        }
        match self.version(package) {
            Some(found) if fits(&found, version) => Ok(()),
            found => Err(describe(&format!("npm brought {}", found.as_deref().unwrap_or("nothing")))),
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
