//! Python, and the environments with what the wheel is built and tested with.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{installations, repository};
use crate::registry::retried;
use crate::tools::works;

/// Prints the version of a Python that the package supports, and fails for any other.
const VERSION: &str =
    "import sys; print('%d.%d' % sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))";
pub(super) const CORE: &str = "core";
pub(super) const BUILD: &str = "build";
/// What the quick run tests.
pub(super) const QUICK: [&str; 3] = [CORE, "fake-model", "openai-agents"];

/// A Python of this machine.
pub(super) struct Python {
    program: &'static str,
    version: String,
}

impl Python {
    /// Returns the first that the package supports.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn find() -> Result<Self, String> {
        let version = |program: &'static str| {
            let output = Command::new(program).args(["-c", VERSION]).output().ok()?;
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success().then_some(Self { program, version })
        };
        let found = ["python3.12", "python3", "python"].into_iter().find_map(version);
        found.ok_or_else(|| "there is no Python 3.11 or later; install the package `python3`".to_owned())
    }

    /// Returns the command, without what the caller's environment adds to it.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.env_remove("PYTHONPATH");
        command
    }

    /// Returns the interpreter of an environment, with its programs on the PATH.
    pub(super) fn of(name: &str) -> Command {
        let bin = folder(name).join(if cfg!(windows) { "Scripts" } else { "bin" });
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(bin.clone()).chain(std::env::split_paths(&path));
        let mut python = Command::new(bin.join("python"));
        python.env("PATH", std::env::join_paths(paths).unwrap_or(path)).env_remove("PYTHONPATH");
        python
    }

    /// Returns whether an environment has everything that its requirements name.
    pub(super) fn has(&self, name: &str) -> bool {
        let mark = std::fs::read_to_string(folder(name).join("installed")).ok();
        mark.is_some() && mark == self.mark(name) && works(Self::of(name).args(["-c", ""]))
    }

    /// Makes an environment and installs what its requirements name.
    ///
    /// # Errors
    /// When Python has no `venv`, or pip fails three times.
    pub(super) fn install(&self, name: &str) -> Result<(), String> {
        let folder = folder(name);
        if !works(self.command().args(["-m", "venv", "--clear"]).arg(&folder)) {
            return Err("Python has no venv; install the package `python3-venv`".to_owned());
        }
        let mark = self.mark(name).ok_or_else(|| format!("there are no requirements of {name}"))?;
        let mut pip = Self::of(name);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        // Those of a framework are complete; those of the core are what is asked for.
        if name != CORE && name != BUILD {
            pip.arg("--no-deps");
        }
        retried(pip.arg("--requirement").arg(requirements(name)))?;
        // Written at the end, so that an installation that was cut off is done again.
        std::fs::write(folder.join("installed"), mark).map_err(|error| error.to_string())
    }

    /// Returns what the file says that marks an installation as complete; tests/run.py expects the same.
    fn mark(&self, name: &str) -> Option<String> {
        let wanted = std::fs::read_to_string(requirements(name)).ok()?;
        Some(format!("{wanted}# Python {}\n", self.version))
    }
}

/// Lists the core and the frameworks, in the order in which they are tested.
pub(super) fn names() -> Vec<String> {
    let files = std::fs::read_dir(tests().join("frameworks")).into_iter().flatten().flatten();
    let name = |file: std::fs::DirEntry| {
        let file = file.file_name().into_string().ok()?;
        Some(file.strip_prefix("requirements-")?.strip_suffix(".txt")?.to_owned())
    };
    let mut names: Vec<String> = files.filter_map(name).collect();
    names.sort();
    names.insert(0, CORE.to_owned());
    names
}

fn tests() -> PathBuf {
    repository().join("bindings/python/tests")
}

fn requirements(name: &str) -> PathBuf {
    let tests = tests();
    let folder = if name == CORE || name == BUILD { tests } else { tests.join("frameworks") };
    folder.join(format!("requirements-{name}.txt"))
}

fn folder(name: &str) -> PathBuf {
    installations().join(format!("venv-{name}"))
}

/// Returns the wheel in a folder, if there is one and no other.
pub(super) fn only_wheel(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut files = files.filter(|path| path.extension().is_some_and(|ending| ending == "whl"));
    let first = files.next()?;
    files.next().is_none().then_some(first)
}
