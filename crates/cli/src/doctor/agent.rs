//! One agent that deloop is installed in.

use deloop_formats::hooks::{HookLine, Installable, Installed};

use super::Note;
use super::probe::{self, Home};
use super::rehearse::{self, Came};
use crate::args::RuleArgs;
use crate::config;
use crate::install::args::Scope;
use crate::install::here;

/// Where deloop is installed.
pub(super) struct Place {
    pub(super) scope: &'static str,
    pub(super) file: String,
    version: Option<String>,
    found: Result<Installed, String>,
}

impl Place {
    /// The agent's version, as it stands after its name.
    pub(super) fn version(&self) -> String {
        self.version.as_ref().map(|v| format!(" {v}")).unwrap_or_default()
    }
}

/// All places where an agent's settings name deloop or cannot be read.
pub(super) fn places(agent: &Installable) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for scope in [Scope::User, Scope::Project] {
        let Ok(path) = here::settings(agent, scope) else { continue };
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let found = match std::str::from_utf8(&bytes) {
            Ok(text) => agent.installed(text).map_err(|e| e.to_string()).transpose(),
            Err(_) => Some(Err("the file is not UTF-8".to_owned())),
        };
        let file = path.display().to_string();
        // In the home folder both are one file.
        let Some(found) = found.filter(|_| places.iter().all(|p| p.file != file)) else { continue };
        let version = here::program(agent).as_deref().and_then(here::version);
        places.push(Place { scope: scope.name(), file, version, found });
    }
    places
}

/// Plays a stuck session through the command line of this place.
pub(super) fn examine(agent: &Installable, place: &Place, called: bool) -> Vec<Note> {
    let Installed { line, command } = match &place.found {
        Ok(found) => found,
        Err(why) => return vec![Note::Wrong(format!("{why}; mend the file, or move it away"))],
    };
    let again = format!("`deloop install {}` mends that", agent.name);
    if here::find(&line.program).is_none() {
        return vec![Note::Wrong(format!("it calls `{}`, which is not there: {again}", line.program))];
    }
    let mut notes = vec![version(&line.program, &again)];
    let home = match Home::make() {
        Ok(home) => home,
        Err(error) => {
            notes.push(Note::Wrong(format!("no temporary folder could be made ({error}): set TMPDIR")));
            return notes;
        }
    };
    let as_it_is = rehearse::play(agent, line, command, &home, false);
    let enforced = rehearse::play(agent, line, command, &home, true);
    match (as_it_is, enforced) {
        (Ok(as_it_is), Ok(enforced)) => judge(line, &as_it_is, &enforced, &mut notes),
        (Err(why), _) | (_, Err(why)) => notes.push(Note::Wrong(format!("{why}: {again}"))),
    }
    if !called {
        let then = if agent.wiring.then.is_empty() { "start its next session" } else { agent.wiring.then };
        notes.push(Note::Know(format!("the agent itself has never called deloop: {then}")));
    }
    notes
}

fn judge(line: &HookLine, as_it_is: &Came, enforced: &Came, notes: &mut Vec<Note>) {
    let rules = RuleArgs { profile: line.profile.clone(), ..RuleArgs::default() };
    let config = config::load_for_hook(&rules);
    let is_default = config.as_ref().is_ok_and(|config| config.profile.name == "default");
    let mode = line.mode.clone().unwrap_or_else(|| "the configured one, else nudge".to_owned());
    if as_it_is.nudge {
        notes.push(Note::Well(format!("a stuck session is told so (mode: {mode})")));
    } else if mode == "shadow" {
        notes.push(Note::Know("mode shadow: it watches, and does nothing".to_owned()));
    } else {
        let log = as_it_is.log.as_deref().unwrap_or("the profile may know no nudge: see `deloop config`");
        notes.push(Note::Wrong(format!("a stuck session was not told: {log}")));
    }
    for (what, came) in [("refused", enforced.block), ("stopped", enforced.stop)] {
        notes.push(match came {
            true => Note::Well(format!("with mode enforce it is {what}")),
            false if is_default => Note::Wrong(format!(
                "with mode enforce it is not {what}: {}",
                enforced.log.as_deref().unwrap_or("see `deloop config` for rungs that were changed")
            )),
            false => {
                Note::Know(format!("with mode enforce it is not {what}: the profile does not go that far"))
            }
        });
    }
    let took = as_it_is.median_ms;
    let text = format!("{took:.1} ms a call, shell included (median of {})", as_it_is.calls);
    notes.push(if took > 250.0 {
        Note::Wrong(format!("{text}: too slow; is the state folder on a network disk? Set XDG_STATE_HOME"))
    } else {
        Note::Well(text)
    });
}

/// Whether the settings call this release.
fn version(program: &str, again: &str) -> Note {
    let mine = format!("deloop {}", env!("CARGO_PKG_VERSION"));
    match probe::version(program) {
        Some(found) if found == mine => Note::Well(format!("calls {program}, {found}")),
        Some(found) => Note::Wrong(format!("calls {program}, which is {found}; this is {mine}: {again}")),
        None => Note::Wrong(format!("calls {program}, which does not run: {again}")),
    }
}
