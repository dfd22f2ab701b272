//! Cargo, what it builds, the tools that setup installs, and how programs are run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::registry::retried;

/// A program from a package of the same name, at a version that is known to work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    version: &'static str,
    /// Further arguments of `cargo install`.
    arguments: &'static [&'static str],
}

/// Runs tests. A newer one on the PATH will do.
pub(crate) const NEXTEST: Tool = Tool { name: "cargo-nextest", version: "0.9.143", arguments: &[] };
/// Checks licences. Without its default features it builds three times faster; they are for the advisory database.
pub(crate) const CARGO_DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", arguments: &["--no-default-features"] };
pub(crate) const CARGO_FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2", arguments: &[] };

impl Tool {
    /// Returns the program: the one on the PATH if it is new enough, else the one that setup installed.
    pub(crate) fn program(&self) -> Option<PathBuf> {
        let own = self.folder().join("bin").join(self.name);
        in_path(self.name).filter(|path| self.is_new_enough(path)).or_else(|| own.exists().then_some(own))
    }

    fn is_new_enough(&self, program: &Path) -> bool {
        // Programs of cargo take the name of their subcommand first.
        let subcommand = self.name.trim_start_matches("cargo-");
        let output = Command::new(program).args([subcommand, "--version"]).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let text = text.unwrap_or_default();
        text.split_whitespace().nth(1).is_some_and(|found| numbers(found) >= numbers(self.version))
    }

    fn folder(&self) -> PathBuf {
        target_folder().join("tools").join(format!("{}-{}", self.name, self.version))
    }

    /// Installs the program under the target folder.
    ///
    /// # Errors
    /// When `cargo install` fails three times.
    pub(crate) fn install(&self) -> Result<(), String> {
        let folder = self.folder();
        let build = folder.join("build");
        let mut install = cargo(&["install", "--quiet", "--locked", "--profile", "dev"]);
        install.args(["--version", self.version]).args(self.arguments).arg("--root").arg(&folder);
        let done = retried(install.arg("--target-dir").arg(&build).arg(self.name));
        let _ = std::fs::remove_dir_all(build);
        done
    }
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

/// Returns the command `cargo`, of the toolchain that runs this.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    without_own_package(command.args(arguments));
    command
}

/// Returns the command `cargo` of the nightly toolchain.
pub(crate) fn cargo_nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    // The variables of the toolchain that runs this would win over the one named here.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").arg("+nightly").args(arguments);
    command
}

/// Returns this program with other arguments: by a name of its own, which stays when cargo builds it again meanwhile.
pub(crate) fn xtask(arguments: &[&str]) -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let (program, link) =
            (std::env::current_exe().unwrap_or_default(), target_folder().join("check/xtask"));
        let _ = link.parent().map(std::fs::create_dir_all);
        let _ = std::fs::remove_file(&link);
        if std::fs::hard_link(&program, &link).is_ok() { link } else { program }
    });
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Takes away the variables with which `cargo run` describes xtask. Build scripts look at some of them, so that with them
/// cargo would build `ring`, and all that depends on it, again.
pub(crate) fn without_own_package(command: &mut Command) -> &mut Command {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let describes = |name: &String| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    names.filter(describes).fold(command, |command, name| command.env_remove(name))
}

/// Returns the absolute path of the folder that cargo builds in.
pub(crate) fn target_folder() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let workspace = workspace.canonicalize().unwrap_or(workspace);
    let folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    workspace.join(folder)
}

/// Returns the command that builds all that the tests, the command and the bindings consist of, with one set of features:
/// whatever is built with it needn't be built again. This program is left out, because it runs.
pub(crate) fn build_everything() -> Command {
    cargo(&["build", "--workspace", "--exclude", "xtask", "--lib", "--bins", "--examples", "--tests"])
}

/// Returns the path of the command `deloop`, built for debugging.
pub(crate) fn debug_deloop() -> PathBuf {
    target_folder().join("debug").join(format!("deloop{}", std::env::consts::EXE_SUFFIX))
}

/// Builds the command `deloop` for debugging and returns its path.
pub(crate) fn build_deloop() -> Option<PathBuf> {
    works(build_everything().arg("--quiet")).then(debug_deloop)
}

/// Returns whether a command succeeds, without its output.
pub(crate) fn works(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns the file of this name in a folder of the PATH.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::split_paths(&std::env::var_os("PATH")?).collect::<Vec<_>>();
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(numbers("0.9.143") > numbers("0.9.99"));
        assert!(numbers("0.10.0") > numbers("0.9.143"));
        assert!(numbers("nonsense") < numbers("0.9.143"));
    }
}
