//! A shell script in deloop's place: it counts calls and answers in the dialect of one agent. It proves the harness,
//! and that each agent does with an answer what we think it does.

use std::fmt::Write as _;

use serde_json::Value;

/// What the hooks shall do in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Nudge,
    Block,
    Stop,
    /// Nothing: the hook is called and has nothing to say.
    Quiet,
}

/// The call at which the stand-in speaks, from 1.
pub(super) const AT: usize = 3;
/// Seconds that an agent waits for the stand-in.
pub(super) const TIMEOUT: u32 = 2;
/// What an agent is told.
pub(super) const NUDGE: &str = "[deloop] the same command failed three times in the same way";
/// Why a call is refused.
pub(super) const BLOCK: &str = "[deloop] refused: this command failed before in the same way";
/// Why the run ends.
pub(super) const STOP: &str = "[deloop] stopped: the agent is in a loop";

/// What the stand-in says at an event.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    event: &'static str,
    /// At the call [`AT`] only, or at each from there on.
    once: bool,
    /// Shell commands.
    does: String,
}

impl Answer {
    /// This JSON, at the call [`AT`].
    pub(super) fn once(event: &'static str, reply: Value) -> Self {
        Self { event, once: true, does: print(&reply) }
    }

    /// This JSON, at the call [`AT`] and all that follow.
    pub(super) fn always(event: &'static str, reply: Value) -> Self {
        Self { event, once: false, does: print(&reply) }
    }

    /// Not an answer but a deed: these shell commands.
    pub(super) fn act(event: &'static str, commands: &str) -> Self {
        Self { event, once: false, does: commands.to_owned() }
    }
}

fn print(reply: &Value) -> String {
    format!("printf '%s\\n' '{reply}'")
}

/// The dialect of one agent for one case.
#[derive(Debug)]
pub(super) struct StandIn {
    /// The event before a call, which counts.
    pub(super) before: &'static str,
    /// Whether it is one process for the whole run that answers line by line.
    pub(super) stays: bool,
    pub(super) answers: Vec<Answer>,
}

impl StandIn {
    /// The script. Without a place for its count it has nothing to say, as deloop without its state.
    pub(super) fn script(&self) -> String {
        let mut answers = String::new();
        for Answer { event, once, does } in &self.answers {
            let test = if *once { "-eq" } else { "-ge" };
            let _ = writeln!(
                answers,
                "*'\"{event}\"'*) if [ \"${{calls:-0}}\" {test} {AT} ]; then {does}; fi ;;"
            );
        }
        let before = self.before;
        let answer = format!(
            "answer() {{\n\
             (printf '%s\\n' \"$input\" >> \"$state/events.jsonl\") 2>/dev/null || return\n\
             case \"$input\" in *'\"{before}\"'*) echo call >> \"$state/calls\" ;; esac\n\
             calls=$(grep -c call \"$state/calls\" 2>/dev/null)\n\
             case \"$input\" in\n{answers}esac\n}}\n"
        );
        let asked = if self.stays {
            // Exactly one line goes back for each that comes.
            "while IFS= read -r input; do printf '%s\\n' \"$(answer)\"; done\n"
        } else {
            "input=$(cat)\nanswer\n"
        };
        let state = "state=\"$HOME/.local/state/deloop\"\nmkdir -p \"$state\" 2>/dev/null\n";
        format!("#!/bin/sh\n{state}{answer}{asked}exit 0\n")
    }
}
