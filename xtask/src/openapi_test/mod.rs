//! The OpenAPI document against a running server: schemathesis sends what the document allows, and what it forbids, and
//! compares the answers with the document.

mod server;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::registry::retried;
use crate::tools::{build_deloop, target_folder, works};
use server::TestedServer;

/// schemathesis and all that it needs, at versions that are known to work.
const REQUIREMENTS: &str = include_str!("requirements.txt");
const HOOKS: &str = include_str!("hooks.py");
const CONFIGURATION: &str = include_str!("schemathesis.toml");
/// The same requests each time.
const SEED: &str = "20261116";
/// How many random requests each operation gets; the ones at the limits of the schemas come on top.
const EXAMPLES: &str = "40";

pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    match test(arguments) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(why)) => {
            println!("openapi-test: skipped, {why}");
            ExitCode::from(2)
        }
        Err(why) => {
            println!("openapi-test: FAILED, {why}");
            ExitCode::FAILURE
        }
    }
}

/// `Ok(Some(why))` when it cannot run here.
fn test(mut arguments: impl Iterator<Item = String>) -> Result<Option<String>, String> {
    let deloop = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => None,
        (Some("--deloop"), Some(path)) => Some(PathBuf::from(path)),
        _ => return Err("usage: cargo xtask openapi-test [--deloop PATH]".to_owned()),
    };
    let Some(schemathesis) = schemathesis() else {
        return Ok(Some("schemathesis isn't installed; cargo xtask setup".to_owned()));
    };
    let deloop = match deloop {
        Some(path) => path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?,
        None => build_deloop().ok_or("deloop could not be built")?,
    };
    let folder = target_folder().join("openapi-test");
    // What an earlier run left would change the answers.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for (name, text) in [("hooks.py", HOOKS), ("schemathesis.toml", CONFIGURATION)] {
        std::fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
    }
    let tester = Tester { schemathesis, deloop, folder };
    tester.without_keys()?;
    tester.with_a_key()?;
    println!("openapi-test: passed");
    Ok(None)
}

fn folder() -> PathBuf {
    let version = REQUIREMENTS.lines().find(|line| line.starts_with("schemathesis=="));
    target_folder().join("tools").join(version.unwrap_or("schemathesis").replace("==", "-"))
}

/// Returns schemathesis, if setup has installed it.
pub(crate) fn schemathesis() -> Option<PathBuf> {
    let (program, ready) = (folder().join("bin/schemathesis"), folder().join("installed.txt"));
    std::fs::read_to_string(ready).is_ok_and(|text| text == REQUIREMENTS).then_some(program)
}

/// Installs schemathesis under the target folder.
///
/// # Errors
/// When there is no Python with venv, or pip fails three times.
pub(crate) fn install() -> Result<(), String> {
    let folder = folder();
    if !works(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)) {
        return Err("python3 has no venv".to_owned());
    }
    let list = folder.join("requirements.txt");
    std::fs::write(&list, REQUIREMENTS).map_err(|error| error.to_string())?;
    let mut install = Command::new(folder.join("bin/python"));
    retried(install.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&list))?;
    // Written at the end, so that an installation that was cut off is done again.
    std::fs::write(folder.join("installed.txt"), REQUIREMENTS).map_err(|error| error.to_string())
}

struct Tester {
    schemathesis: PathBuf,
    deloop: PathBuf,
    folder: PathBuf,
}

impl Tester {
    /// Tests a server without keys, which needs none, whatever the document says about servers that have them.
    fn without_keys(&self) -> Result<(), String> {
        let server = TestedServer::start(&self.deloop, self.folder.join("open"))?;
        let printed = Command::new(&self.deloop).args(["schema", "openapi"]).output();
        let printed = printed.map_err(|error| error.to_string())?.stdout;
        let mut document: Value = serde_json::from_slice(&printed).map_err(|error| error.to_string())?;
        for operations in document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut()) {
            for operation in operations.as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
                operation["security"] = Value::Array(Vec::new());
            }
        }
        let file = self.folder.join("open.json");
        std::fs::write(&file, document.to_string()).map_err(|error| error.to_string())?;
        let mut command = self.command(&file.to_string_lossy());
        command.args(["--url", &server.url(), "--exclude-checks", "ignored_auth"]);
        check("without keys", command, server)
    }

    /// Tests a server with keys, by the document that it serves.
    fn with_a_key(&self) -> Result<(), String> {
        let state = self.folder.join("keyed");
        let mut add = Command::new(&self.deloop);
        add.args(["keys", "add", "openapi-test", "--scope", "admin", "--all-projects", "--state"])
            .arg(&state);
        let added = add.output().map_err(|error| error.to_string())?;
        let key = String::from_utf8_lossy(&added.stdout).trim().to_owned();
        if !added.status.success() || key.is_empty() {
            return Err(format!("a key could not be created: {}", String::from_utf8_lossy(&added.stderr)));
        }
        let server = TestedServer::start(&self.deloop, state)?;
        let mut command = self.command(&format!("{}/v1/openapi.json", server.url()));
        command.args(["--header", &format!("Authorization: Bearer {key}")]).env("DELOOP_TEST_KEY", &key);
        check("with a key", command, server)
    }

    /// Returns the command that tests what is described at `document`. All checks are on by default; naming them would
    /// overrule the configuration.
    fn command(&self, document: &str) -> Command {
        let mut command = Command::new(&self.schemathesis);
        command.arg("--config-file").arg(self.folder.join("schemathesis.toml"));
        command.args(["run", document, "--seed", SEED, "--max-examples", EXAMPLES]);
        // A database of earlier findings would make runs differ.
        command.args(["--generation-database", "none", "--continue-on-failure", "--no-color"]);
        command.env("PYTHONPATH", &self.folder).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(&self.folder);
        command
    }
}

/// Runs the tests, and checks that the server neither ended nor reported a failure of its own.
fn check(name: &str, mut command: Command, server: TestedServer) -> Result<(), String> {
    println!("openapi-test: a server {name}");
    let passed = command.status().map_err(|error| format!("schemathesis: {error}"))?.success();
    let said = server.stop()?;
    if !said.is_empty() {
        return Err(format!("the server {name} reported: {said}"));
    }
    if passed { Ok(()) } else { Err(format!("see above, the server {name}")) }
}
