//! The report of `deloop scan --html` in a real browser: it renders, clicking works, and no request leaves it.

mod sessions;

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::registry::retried;
use crate::tools::{build_deloop, in_path, target_folder};

/// What drives the browser, at a version that is known to work.
const DRIVER: &str = "playwright-core@1.56.1";
const PAGE_TEST: &str = include_str!("page.mjs");
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

pub fn run() -> ExitCode {
    match test() {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(why)) => {
            println!("report-test: skipped, {why}");
            ExitCode::from(2)
        }
        Err(why) => {
            println!("report-test: FAILED, {why}");
            ExitCode::FAILURE
        }
    }
}

/// `Ok(Some(why))` when it cannot run here.
fn test() -> Result<Option<String>, String> {
    let folder = folder();
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let Some(browser) = browser() else {
        return Ok(Some("there is no Chromium; cargo xtask setup --all".into()));
    };
    if !has_driver() {
        return Ok(Some(format!("{DRIVER} isn't installed; cargo xtask setup --all")));
    }
    let deloop = build_deloop().ok_or("deloop could not be built")?;
    let sessions = folder.join("sessions");
    sessions::write(&sessions).map_err(|e| e.to_string())?;
    for (page, paths) in [("report.html", Some(&sessions)), ("examples.html", None)] {
        let mut scan = Command::new(&deloop);
        scan.args(["scan", "--html"]).arg(folder.join(page)).args(paths);
        scan.env("HOME", &folder).env("USERPROFILE", &folder).current_dir(&folder).stdout(Stdio::null());
        succeed(&mut scan)?;
    }
    let script = folder.join("page.mjs");
    std::fs::write(&script, PAGE_TEST).map_err(|e| e.to_string())?;
    succeed(Command::new("node").arg(&script).arg(&browser).arg(&folder).current_dir(&folder))?;
    println!("report-test: passed; the screenshots are in {}", folder.display());
    Ok(None)
}

/// Returns a browser: the one that `CHROMIUM` names, or one on the PATH.
pub(crate) fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    named.or_else(|| BROWSERS.iter().find_map(|name| in_path(name)))
}

/// Whether setup has installed what drives the browser.
pub(crate) fn has_driver() -> bool {
    folder().join("node_modules/playwright-core/package.json").exists()
}

/// Installs what drives the browser under the target folder.
///
/// # Errors
/// When npm fails three times.
pub(crate) fn install_driver() -> Result<(), String> {
    std::fs::create_dir_all(folder()).map_err(|error| error.to_string())?;
    let mut install = Command::new("npm");
    retried(install.args(["install", "--no-save", "--no-audit", "--no-fund", DRIVER]).current_dir(folder()))
}

fn folder() -> PathBuf {
    target_folder().join("report-test")
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}
