//! Cargo, what it builds, and the tools that chores install for themselves.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program from a package of the same name, at a version that is known to work.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Further arguments of `cargo install`.
    pub(crate) arguments: &'static [&'static str],
}

/// Checks licences. Without its default features it builds three times faster; they are for the advisory database.
pub(crate) const CARGO_DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", arguments: &["--no-default-features"] };
pub(crate) const CARGO_FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2", arguments: &[] };

impl Tool {
    /// Returns the program, installed under the target folder if it is not there yet.
    ///
    /// # Errors
    /// When `cargo install` fails; its output says why.
    pub(crate) fn installed(&self) -> Result<PathBuf, String> {
        let folder = target_folder().join("tools").join(format!("{}-{}", self.name, self.version));
        let program = folder.join("bin").join(self.name);
        if program.exists() {
            return Ok(program);
        }
        println!("installing {} {} into {}", self.name, self.version, folder.display());
        let build = folder.join("build");
        let mut install = cargo(&["install", "--quiet", "--locked", "--profile", "dev"]);
        install.args(["--version", self.version]).args(self.arguments).arg("--root").arg(&folder);
        install.arg("--target-dir").arg(&build).arg(self.name);
        let done = install.status().is_ok_and(|status| status.success());
        let _ = std::fs::remove_dir_all(build);
        if done { Ok(program) } else { Err(format!("{} could not be installed", self.name)) }
    }
}

/// Returns the command `cargo`, of the toolchain that runs this.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    without_own_package(command.args(arguments));
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

/// Builds the command `deloop` for debugging and returns its path.
pub(crate) fn build_deloop() -> Option<PathBuf> {
    // The examples give it the features that the tests do, so that after the tests nothing is built again.
    let built = cargo(&["build", "--quiet", "--workspace", "--bin", "deloop", "--examples"]).status();
    let name = format!("deloop{}", std::env::consts::EXE_SUFFIX);
    built.is_ok_and(|status| status.success()).then(|| target_folder().join("debug").join(name))
}

/// Returns whether a command succeeds, without its output.
pub(crate) fn works(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
