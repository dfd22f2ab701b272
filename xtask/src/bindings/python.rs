//! A Python with what the wheel is built and tested with.

use std::path::PathBuf;
use std::process::Command;

use crate::tools::{target_folder, works};

const REQUIREMENTS: &str = include_str!("../../../bindings/python/tests/requirements.txt");
/// Fails for a Python that the package doesn't support.
const SUPPORTED: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

pub(super) struct PythonTools {
    folder: PathBuf,
}

impl PythonTools {
    /// Returns an environment under the target folder; makes it if it isn't there yet.
    ///
    /// # Errors
    /// When there is no Python that fits, or pip fails.
    pub(super) fn installed() -> Result<Self, String> {
        let folder = target_folder().join("bindings/venv-build");
        let (tools, ready) = (Self { folder: folder.clone() }, folder.join("installed.txt"));
        // Written at the end, so that an installation that was cut off is done again.
        if std::fs::read_to_string(&ready).is_ok_and(|text| text == REQUIREMENTS) {
            return Ok(tools);
        }
        let supported = |name: &&str| works(Command::new(name).args(["-c", SUPPORTED]));
        let Some(python) = ["python3.12", "python3", "python"].into_iter().find(supported) else {
            return Err("there is no Python 3.11 or later; install the package `python3`".to_owned());
        };
        println!("installing maturin, pytest, mypy and pyright into {}", folder.display());
        if !works(Command::new(python).args(["-m", "venv", "--clear"]).arg(&folder)) {
            return Err("Python has no venv; install the package `python3-venv`".to_owned());
        }
        let list = folder.join("requirements.txt");
        std::fs::write(&list, REQUIREMENTS).map_err(|error| error.to_string())?;
        let install = ["-m", "pip", "install", "--quiet", "--requirement"];
        if !works(tools.python().args(install).arg(&list)) {
            return Err("pip could not install maturin, pytest, mypy and pyright".to_owned());
        }
        std::fs::write(ready, REQUIREMENTS).map_err(|error| error.to_string())?;
        Ok(tools)
    }

    /// Returns its interpreter, with its programs on the PATH.
    pub(super) fn python(&self) -> Command {
        let bin = self.folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(bin.clone()).chain(std::env::split_paths(&path));
        let mut python = Command::new(bin.join("python"));
        python.env("PATH", std::env::join_paths(paths).unwrap_or(path)).env_remove("PYTHONPATH");
        python
    }
}
