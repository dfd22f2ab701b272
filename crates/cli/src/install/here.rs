//! Finds agents and their settings on this machine, without starting any of them.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use deloop_formats::hooks::Installable;
use deloop_formats::{Base, Place};

use super::args::Scope;
use crate::exit::Failure;
use crate::safe_file::{self, Links};
use crate::sessions::agent_folders::{self, System};

/// Maximum size in bytes. No agent has larger settings.
const LONGEST_SETTINGS: u64 = 16 << 20;

/// Returns the agent's settings file.
pub(crate) fn settings(agent: &Installable, scope: Scope) -> Result<PathBuf, Failure> {
    match scope {
        Scope::Project => {
            let here =
                std::env::current_dir().map_err(|e| Failure::new(format!("the current folder: {e}")))?;
            Ok(below(here, agent.wiring.project))
        }
        Scope::User => {
            user_file(agent).ok_or_else(|| Failure::new("no home folder; set HOME, or use --scope project"))
        }
    }
}

/// Returns the folder of a scope's settings if someone else may control its content.
pub(crate) fn root(scope: Scope) -> Result<Option<PathBuf>, Failure> {
    match scope {
        Scope::User => Ok(None),
        Scope::Project => {
            std::env::current_dir().map(Some).map_err(|e| Failure::new(format!("the current folder: {e}")))
        }
    }
}

/// Reads an agent's settings to find out about them; `None` when they are not there.
///
/// # Errors
/// When the file isn't a regular file, is too large, or isn't UTF-8.
pub(crate) fn read_settings(agent: &Installable, scope: Scope) -> Option<(PathBuf, Result<String, String>)> {
    let path = settings(agent, scope).ok()?;
    let text = match safe_file::read_text(&path, LONGEST_SETTINGS, Links::Follow) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            return None;
        }
        other => other.map_err(|e| e.to_string()),
    };
    Some((path, text))
}

fn user_file(agent: &Installable) -> Option<PathBuf> {
    let place = Place { base: agent.wiring.base, folder: agent.wiring.user, suffix: "" };
    agent_folders::folder(&place, System::here(), &|name| std::env::var_os(name))
}

fn below(folder: PathBuf, path: &str) -> PathBuf {
    path.split('/').fold(folder, |folder, part| folder.join(part))
}

/// Returns whether the agent's program or settings folder is on this machine.
pub(crate) fn is_here(agent: &Installable) -> bool {
    program(agent).is_some() || own_folder(agent).is_some_and(|folder| folder.is_dir())
}

/// Returns the folder that only this agent uses: the first one below the home folder.
fn own_folder(agent: &Installable) -> Option<PathBuf> {
    let folder = |base, folder| {
        let place = Place { base, folder, suffix: "" };
        agent_folders::folder(&place, System::here(), &|name| std::env::var_os(name))
    };
    let first = agent.wiring.user.split('/').next().unwrap_or_default();
    match agent.wiring.base {
        // The agent shares this folder with other programs.
        Base::Home | Base::Config | Base::Data | Base::Variable(_, "" | ".config") => {
            folder(agent.wiring.base, first)
        }
        Base::Variable(..) => folder(agent.wiring.base, ""),
    }
}

/// Returns the agent's program on PATH.
pub(crate) fn program(agent: &Installable) -> Option<PathBuf> {
    agent.wiring.programs.iter().find_map(|name| on_path(name))
}

/// Returns the version of a program installed with npm, from its package.
pub(crate) fn version(program: &Path) -> Option<String> {
    let real = std::fs::canonicalize(program).ok()?;
    let manifest =
        real.ancestors().skip(1).take(4).map(|folder| folder.join("package.json")).find(|f| f.is_file())?;
    let manifest: serde_json::Value = {
        let text = safe_file::read(&manifest, LONGEST_SETTINGS, Links::Follow).ok()?;
        serde_json::from_slice(&text).ok()?
    };
    Some(manifest.get("version")?.as_str()?.to_owned())
}

/// Returns how hooks call deloop: by name if it is on PATH, else by the path of this program. A script on PATH, such as
/// the one that npm installs, doesn't count: each hook would start its interpreter first.
pub(crate) fn this_program() -> Result<String, Failure> {
    if on_path("deloop").is_some_and(|path| !is_script(&path)) {
        return Ok("deloop".to_owned());
    }
    let path = std::env::current_exe()
        .map_err(|e| Failure::new(format!("can't find the path of the deloop program: {e}")))?;
    let path = path.to_str().ok_or_else(|| {
        Failure::new(format!(
            "{} is not UTF-8, so settings can't hold it; put deloop on PATH",
            path.display()
        ))
    })?;
    Ok(if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() })
}

/// Returns whether a program needs an interpreter.
fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    let read = safe_file::open(path, Links::Follow).and_then(|mut file| file.read_exact(&mut start));
    (read.is_ok() && &start == b"#!")
        || path
            .extension()
            .is_some_and(|ending| ["cmd", "bat", "ps1"].iter().any(|e| ending.eq_ignore_ascii_case(e)))
}

/// Returns the path of a hook's program; `None` if it can't be found.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    if program.contains(['/', '\\']) {
        Some(PathBuf::from(program)).filter(|p| is_program(p))
    } else {
        on_path(program)
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").filter(|p| !p.is_empty())?;
    let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd", ".bat", ".ps1"] } else { &[""] };
    std::env::split_paths(&path).find_map(|folder| {
        endings
            .iter()
            .map(|ending| folder.join(OsStr::new(&format!("{name}{ending}"))))
            .find(|p| is_program(p))
    })
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
