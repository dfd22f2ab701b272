//! The calls whose results are still to come, and what is known about how they ended.

use deloop_types::{Call, Outcome};
use serde_json::Value;

use crate::json::tolerant::Shaped;
use crate::recent::RecentMap;

use super::call::{call, code};
use super::code_mode::{self, CodexScript, ScriptOutput};
use super::outcome::{
    answers_with_json, is_foreign, leaves_running, outcome_from_answer, outcome_from_event,
    outcome_from_output, printed,
};
use super::record::{CodexPart, Payload, output, shown_parts};

/// A call whose result is read in its own way.
enum Special {
    /// A script of code mode, or waiting for one.
    Script(CodexScript),
    /// A tool that answers with JSON.
    Json,
    /// A tool that runs commands, which may still run when it answers.
    Command,
    /// A tool that isn't Codex's own: its answer is a server's, word for word.
    Foreign,
}

#[derive(Default)]
pub(super) struct PendingCalls {
    /// How calls ended, from events before their results.
    ended: RecentMap<String, Outcome>,
    /// Calls whose results are read in their own way.
    special: RecentMap<String, Special>,
    /// Scripts that still run, by their cells.
    cells: RecentMap<String, CodexScript>,
    /// How calls of MCP tools ended that scripts made, and which others failed, since the last script's result.
    nested: Vec<Outcome>,
}

impl PendingCalls {
    /// Returns the call that an item is, and notes how its result is to be read.
    pub(super) fn called(&mut self, item: Payload<'_>) -> Call {
        if let Some(code) = code(&item) {
            let (call, script) = code_mode::call(item.call_id.get().map(str::to_owned), code);
            self.expect(&call, Special::Script(script));
            return call;
        }
        let call = call(item);
        match (call.tool.as_str(), call.args.get("cell_id")) {
            ("wait", Some(cell)) => {
                let script = self.cells.remove(&cell_name(cell)).unwrap_or_default();
                self.expect(&call, Special::Script(script));
            }
            (tool, _) if answers_with_json(tool) => self.expect(&call, Special::Json),
            (tool, _) if leaves_running(tool) => self.expect(&call, Special::Command),
            (tool, _) if is_foreign(tool) => self.expect(&call, Special::Foreign),
            _ => {}
        }
        call
    }

    fn expect(&mut self, call: &Call, special: Special) {
        if let Some(id) = &call.id {
            self.special.insert(id.clone(), special);
        }
    }

    /// Returns the id of the call that a result answers, how it ended and its text.
    pub(super) fn answered(
        &mut self,
        item: Payload<'_>,
    ) -> (Option<String>, Option<Outcome>, Option<String>) {
        let id = item.call_id.take();
        let known = id.as_deref().and_then(|id| self.ended.remove(id));
        let special = id.as_deref().and_then(|id| self.special.remove(id));
        let (told, text) = match (item.tools, special) {
            (Shaped::List(tools), _) => {
                let names: Vec<_> = tools.iter().filter_map(|tool| tool.name.get()).collect();
                let completed = item.status.get() == Some("completed");
                (completed.then_some(Outcome::Ok), Some(names.join("\n")))
            }
            (_, Some(Special::Script(script))) => self.shown(script, item.output),
            // Only an event says how such a call ended.
            (_, Some(Special::Foreign)) => (None, output(item.output).map(printed)),
            (_, special) => {
                let text = output(item.output);
                let is_json = matches!(special, Some(Special::Json));
                let json = text.as_deref().filter(|_| is_json).and_then(outcome_from_answer);
                let is_command = matches!(special, Some(Special::Command));
                let told = || text.as_deref().and_then(outcome_from_output);
                let told = json.or_else(|| told().filter(|told| is_command || *told != Outcome::Running));
                (told, text.map(printed))
            }
        };
        let ended = match told {
            // An event knows of refusals that the output does not tell.
            None | Some(Outcome::Error) => known.or(told),
            told => told,
        };
        (id.map(Into::into), ended, text)
    }

    /// Notes how a call ended that an event is about.
    pub(super) fn reported(&mut self, event: Payload<'_>) {
        let is_mcp = event.kind.get() == Some("mcp_tool_call_end");
        let Some((id, outcome)) = outcome_from_event(event) else { return };
        // The calls of a script have ids that no result refers to.
        if id.starts_with("exec-") {
            self.nested.extend((is_mcp || outcome != Outcome::Ok).then_some(outcome));
        } else {
            self.ended.insert(id, outcome);
        }
    }

    /// How a script's calls ended, and what it showed of them.
    fn shown(
        &mut self,
        script: CodexScript,
        shown: Shaped<'_, CodexPart<'_>>,
    ) -> (Option<Outcome>, Option<String>) {
        let parts = shown_parts(shown);
        let nested = std::mem::take(&mut self.nested);
        let Some(shown) = ScriptOutput::read(&script, &parts, &nested) else {
            let text = (!parts.is_empty()).then(|| parts.join("\n"));
            let told = text.as_deref().and_then(outcome_from_output);
            return (told.filter(|told| *told != Outcome::Running), text);
        };
        if let Some(cell) = shown.cell {
            self.cells.insert(cell, script);
        }
        (shown.outcome, Some(shown.output))
    }
}

/// A cell's name, written as a number or as a string.
fn cell_name(cell: &Value) -> String {
    cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)
}
