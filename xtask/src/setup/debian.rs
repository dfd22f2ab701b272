//! Packages of a Debian system.

use std::process::Command;

use crate::registry::retried;
use crate::tools::in_path;

/// Installs packages.
///
/// # Errors
/// When there is no apt-get, it may not install, or it fails three times; says what to do.
pub(super) fn install(packages: &[&str]) -> Result<(), String> {
    let by_hand = format!("install {} with your package manager", packages.join(", "));
    if in_path("apt-get").is_none() {
        return Err(by_hand);
    }
    let install = [&["install", "-y", "-q", "--no-install-recommends"], packages].concat();
    let done = retried(&mut apt(&["update", "-q"])).and_then(|()| retried(&mut apt(&install)));
    done.map_err(|why| format!("{by_hand}; apt-get says:\n{why}"))
}

fn apt(arguments: &[&str]) -> Command {
    let mut apt = Command::new("apt-get");
    // With this run level Debian starts no server that it installs.
    apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    apt
}
