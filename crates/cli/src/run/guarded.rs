//! Checks whether the agent of a run calls deloop at all.

use std::ffi::OsStr;
use std::path::Path;

use deloop_formats::hooks::{HookEvent, HookKind, Installable, hook_agent, installables};
use deloop_live::SqliteJournal;
use deloop_types::{Action, Decision};

use crate::install::args::Scope;
use crate::install::here;

/// Returns the agent that this program is.
fn agent(program: &OsStr) -> Option<Installable> {
    let name = Path::new(program).file_stem()?.to_str()?;
    installables().find(|agent| agent.wiring.programs.contains(&name))
}

/// Returns the flag that chooses this program's model, if it is known.
pub(super) fn model_flag(program: &OsStr) -> Option<&'static str> {
    agent(program).map(|agent| agent.wiring.model).filter(|flag| !flag.is_empty())
}

/// Returns whether an agent stops when its hook asks for it; true if unknown.
pub(super) fn ends_by_itself(agent: &str) -> bool {
    let Some(agent) = hook_agent(agent) else { return true };
    let mut stop = Decision::default();
    stop.action = Action::Stop;
    let kinds =
        [HookKind::PreCall, HookKind::Permission, HookKind::PostCall, HookKind::Batch, HookKind::Prompt];
    let ends =
        |kind| agent.encode(&HookEvent { kind, ..HookEvent::default() }, &stop).carried == Action::Stop;
    kinds.into_iter().any(ends)
}

/// Returns what is wrong with the agent's settings, and how to fix it.
pub(super) fn problem(program: &OsStr) -> Option<String> {
    let agent = agent(program)?;
    let installed = [Scope::User, Scope::Project].into_iter().any(|scope| {
        let text = here::read_settings(&agent, scope).and_then(|(_, text)| text.ok());
        text.is_some_and(|text| agent.installed(&text).is_ok_and(|found| found.is_some()))
    });
    let Installable { title, name, .. } = agent;
    (!installed)
        .then(|| format!("{title} has no deloop hooks here, so this run is not guarded. Run `deloop install {name}` to add them"))
}

/// Returns a warning that a finished run never called deloop, with a likely reason.
pub(super) fn never_called(store: &SqliteJournal, run: &str, program: &OsStr) -> Option<String> {
    if store.sources_of_run(run).map_or(true, |sources| !sources.is_empty()) {
        return None;
    }
    let then = agent(program).map(|a| a.wiring.then).filter(|then| !then.is_empty());
    let then = then.map(|then| format!(": {then}")).unwrap_or_default();
    Some(format!("the agent never called deloop, so this run was not guarded{then}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codex_and_cursor_must_be_made_to_end() {
        let names = deloop_formats::hooks::HOOK_AGENTS.iter().map(|a| a.name());
        let forced: Vec<&str> = names.filter(|name| !ends_by_itself(name)).collect();
        assert_eq!(forced, ["codex", "cursor"]);
        assert!(ends_by_itself("opencode"));
    }
}
