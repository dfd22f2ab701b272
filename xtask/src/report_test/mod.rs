//! The report of `deloop scan --html` in a real browser: it renders, clicking works, and no request leaves it.

mod sessions;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::tools::{build_deloop, target_folder, works};

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
    let folder = target_folder().join("report-test");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let Some(browser) = browser() else {
        return Ok(Some("there is no Chromium; install the package `chromium`".into()));
    };
    if !node() {
        return Ok(Some("there is no Node.js with npm; install the packages `nodejs` and `npm`".into()));
    }
    if !folder.join("node_modules/playwright-core").exists() {
        let mut install = Command::new("npm");
        install.args(["install", "--no-save", "--no-audit", "--no-fund", DRIVER]).current_dir(&folder);
        if !works(&mut install) {
            return Ok(Some(format!("npm could not install {DRIVER}")));
        }
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

/// A browser that is there, or that can be installed.
fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let there = || BROWSERS.iter().find_map(|name| in_path(name));
    named.or_else(there).or_else(|| installed(&["chromium"]).then(there).flatten())
}

/// Whether Node.js is there, or could be installed.
fn node() -> bool {
    let there =
        || works(Command::new("node").arg("--version")) && works(Command::new("npm").arg("--version"));
    there() || (installed(&["nodejs", "npm"]) && there())
}

/// Installs packages of a Debian system.
fn installed(packages: &[&str]) -> bool {
    works(Command::new("apt-get").arg("update"))
        && works(
            Command::new("apt-get")
                .args(["install", "-y", "--no-install-recommends"])
                .args(packages)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
}

fn in_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| Path::is_file(path))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}
