//! Checks one agent that has deloop hooks.

use std::io::Read;
use std::path::Path;

use deloop_formats::hooks::{HookLine, Installable, Installed};

use super::Note;
use super::probe::Home;
use super::rehearse::{self, Came};
use crate::args::RuleArgs;
use crate::config;
use crate::install::args::Scope;
use crate::install::here;
use crate::safe_file::{self, Links};

/// One installation of deloop.
pub(super) struct InstalledHook {
    pub(super) scope: &'static str,
    pub(super) file: String,
    version: Option<String>,
    found: Result<Installed, String>,
}

impl InstalledHook {
    /// The agent's version, shown after its name.
    pub(super) fn version(&self) -> String {
        self.version.as_ref().map(|v| format!(" {v}")).unwrap_or_default()
    }
}

/// Returns all settings of an agent that name deloop or can't be read.
pub(super) fn places(agent: &Installable) -> Vec<InstalledHook> {
    let mut places: Vec<InstalledHook> = Vec::new();
    for scope in [Scope::User, Scope::Project] {
        let Some((path, text)) = here::read_settings(agent, scope) else { continue };
        let found = match text {
            Ok(text) => agent.installed(&text).map_err(|e| e.to_string()).transpose(),
            Err(why) => Some(Err(format!("the file is {why}"))),
        };
        let file = path.display().to_string();
        // In the home folder, both are the same file.
        let Some(found) = found.filter(|_| places.iter().all(|p| p.file != file)) else { continue };
        let version = here::program(agent).as_deref().and_then(here::version);
        places.push(InstalledHook { scope: scope.name(), file, version, found });
    }
    places
}

/// Replays a stuck session through this program, with the mode and profile of this installation. The command in the
/// settings is compared and never run, because anyone may have written it.
pub(super) fn examine(agent: &Installable, place: &InstalledHook, called: bool) -> Vec<Note> {
    let Installed { line, command } = match &place.found {
        Ok(found) => found,
        Err(why) => return vec![Note::Wrong(format!("{why}; fix the file, or move it away"))],
    };
    let again = format!("run `deloop install {}` to fix it", agent.name);
    let Some(program) = here::find(&line.program) else {
        let program = deloop_detect::clean(&line.program, 200);
        return vec![Note::Wrong(format!("its hook calls `{program}`, which doesn't exist; {again}"))];
    };
    let mut notes = vec![same_program(&line.program, &program, &again)];
    if written_by_install(agent, line).is_some_and(|written| written != *command) {
        notes.push(Note::Know(format!(
            "its command differs from the one `deloop install` writes, and was not run: {}",
            quoted(command)
        )));
    }
    let home = match Home::make() {
        Ok(home) => home,
        Err(error) => {
            notes.push(Note::Wrong(format!("can't create a temporary folder ({error}); set TMPDIR")));
            return notes;
        }
    };
    let as_it_is = rehearse::play(agent, line, &home, false);
    let enforced = rehearse::play(agent, line, &home, true);
    match (as_it_is, enforced) {
        (Ok(as_it_is), Ok(enforced)) => judge(line, &as_it_is, &enforced, &mut notes),
        (Err(why), _) | (_, Err(why)) => notes.push(Note::Wrong(format!("{why}; {again}"))),
    }
    if !called {
        let then = if agent.wiring.then.is_empty() { "start its next session" } else { agent.wiring.then };
        notes.push(Note::Know(format!("the agent has never called deloop; {then}")));
    }
    notes
}

fn judge(line: &HookLine, as_it_is: &Came, enforced: &Came, notes: &mut Vec<Note>) {
    let rules = RuleArgs { profile: line.profile.clone(), ..RuleArgs::default() };
    let config = config::load_for_hook(&rules);
    let is_default = config.profile.name == "default";
    let mode = line.mode.as_deref().map(|mode| deloop_detect::clean(mode, 40));
    let mode = mode.unwrap_or_else(|| "as configured, else nudge".to_owned());
    if as_it_is.nudge {
        notes.push(Note::Well(format!("a stuck agent gets a message (mode: {mode})")));
    } else if mode == "shadow" {
        notes.push(Note::Know("mode shadow: decisions are only recorded".to_owned()));
    } else {
        let log = as_it_is.log.as_deref().unwrap_or("the profile may have no nudge; see `deloop config`");
        notes.push(Note::Wrong(format!("a stuck agent got no message: {log}")));
    }
    for (done, not_done, came) in [
        ("calls are blocked", "calls aren't blocked", enforced.block),
        ("the run is stopped", "the run isn't stopped", enforced.stop),
    ] {
        notes.push(match came {
            true => Note::Well(format!("in mode enforce {done}")),
            false if is_default => Note::Wrong(format!(
                "in mode enforce {not_done}: {}",
                enforced.log.as_deref().unwrap_or("see `deloop config` for changed rungs")
            )),
            false => Note::Know(format!("in mode enforce {not_done}: the profile doesn't go that far")),
        });
    }
    let took = as_it_is.median_ms;
    let text = format!("{took:.1} ms per call (median of {})", as_it_is.calls);
    notes.push(if took > 250.0 {
        Note::Wrong(format!("{text}: too slow. If the state folder is on a network disk, set XDG_STATE_HOME"))
    } else {
        Note::Well(text)
    });
}

/// Returns the command that `deloop install` would write for this line.
fn written_by_install(agent: &Installable, line: &HookLine) -> Option<String> {
    let text = agent.install(None, line).ok()?;
    Some(agent.installed(&text).ok()??.command)
}

/// Returns a command found in settings, as text.
fn quoted(command: &str) -> String {
    format!("`{}`", deloop_detect::clean(command, 200).replace('`', "'"))
}

/// Returns whether the settings call this program, or a copy of it.
fn same_program(named: &str, found: &Path, again: &str) -> Note {
    let named = quoted(named);
    let mine = format!("deloop {}", env!("CARGO_PKG_VERSION"));
    let same = std::env::current_exe().is_ok_and(|this| is_same_file(&this, found).unwrap_or(false));
    if same {
        return Note::Well(format!("calls {named}, {mine}"));
    }
    Note::Wrong(format!(
        "calls {named}, which isn't this program ({mine}) and was not run; {again}, or check its version"
    ))
}

fn is_same_file(this: &Path, other: &Path) -> std::io::Result<bool> {
    if this.canonicalize()? == other.canonicalize()? {
        return Ok(true);
    }
    let (mut a, mut b) = (safe_file::open(this, Links::Follow)?, safe_file::open(other, Links::Follow)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut ours, mut theirs) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let length = a.read(&mut ours)?;
        if length == 0 {
            return Ok(true);
        }
        b.read_exact(&mut theirs[..length])?;
        if ours[..length] != theirs[..length] {
            return Ok(false);
        }
    }
}
