//! Node, and the folders with what the Node package is built and tested with.

use std::path::PathBuf;
use std::process::Command;

use super::{installations, repository};
use crate::registry::retried;
use crate::tools::works;

/// The TypeScript compiler.
pub(super) const DEV: &str = "dev";
/// A newer Node, for the frameworks that need one.
pub(super) const NEWER: &str = "node-22";
const NEWER_MAJOR: u32 = 22;
/// What the quick run tests; `ai-6` runs on the oldest Node that the package supports.
pub(super) const QUICK: [&str; 3] = ["core", "fake-model", "ai-6"];

/// Checks that this machine has Node and npm.
///
/// # Errors
/// When it has none, or one that is too old.
pub(super) fn check() -> Result<(), String> {
    if major().is_none_or(|major| major < 20) || !works(Command::new("npm").arg("--version")) {
        return Err("there is no Node 20 or later with npm".to_owned());
    }
    Ok(())
}

/// Returns whether this machine's Node runs every framework.
pub(super) fn is_new() -> bool {
    major().is_some_and(|major| major >= NEWER_MAJOR)
}

fn major() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Lists the core, the fake model and the frameworks, in the order in which they are tested.
pub(super) fn names() -> Vec<String> {
    let pinned = pinned().into_iter().filter(|name| name != NEWER);
    ["core", "fake-model"].map(str::to_owned).into_iter().chain(pinned).collect()
}

/// Lists the frameworks that have pinned packages, and the newer Node.
pub(super) fn pinned() -> Vec<String> {
    let folders = std::fs::read_dir(repository().join("bindings/node/test/frameworks"));
    let mut names: Vec<String> = folders
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Returns whether the packages of a lock file are installed.
pub(super) fn has(name: &str) -> bool {
    let mark = std::fs::read_to_string(folder(name).join("installed")).ok();
    mark.is_some() && mark == std::fs::read_to_string(pins(name).join("package-lock.json")).ok()
}

/// Installs the packages of a lock file.
///
/// # Errors
/// When npm fails three times.
pub(super) fn install(name: &str) -> Result<(), String> {
    check()?;
    let (pins, folder) = (pins(name), folder(name));
    let _ = std::fs::remove_dir_all(&folder);
    let io = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(io)?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(pins.join(file), folder.join(file)).map_err(io)?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]);
    // Node is a program that its package's script puts into place.
    if name != NEWER {
        npm.arg("--ignore-scripts");
    }
    retried(npm.current_dir(&folder))?;
    // Written at the end, so that an installation that was cut off is done again.
    std::fs::copy(pins.join("package-lock.json"), folder.join("installed")).map_err(io).map(drop)
}

fn pins(name: &str) -> PathBuf {
    let package = repository().join("bindings/node");
    if name == DEV { package.join(DEV) } else { package.join("test/frameworks").join(name) }
}

fn folder(name: &str) -> PathBuf {
    installations().join(format!("node-{name}"))
}
