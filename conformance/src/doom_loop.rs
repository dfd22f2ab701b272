//! doom-loop: repeats, the swarm, failing tests, failing commands, talk.

use serde_json::{Map, Value};

use crate::canonical::{canonical, signature};
use crate::step::{Call, Turn};
use crate::swarm::Swarms;
use crate::test_run::{passed, runs_tests, succeeded};
use crate::{Answer, Judge, shell};

const PRIMARY_KEYS: [&str; 10] =
    ["path", "file_path", "command", "pattern", "query", "url", "content", "filename", "offset", "limit"];

/// A call, and whether its result has come.
struct Awaited {
    id: Option<String>,
    shell: bool,
    tests: bool,
    answered: bool,
    turn: u64,
}

/// Everything one worker did.
#[derive(Default)]
pub(crate) struct DoomLoop {
    exact: Vec<String>,
    fingerprints: Vec<String>,
    awaited: Vec<Awaited>,
    turns: u64,
    turn_id: Option<String>,
    failed_tests: u64,
    failed_commands: u64,
    talk: u64,
}

impl Judge for DoomLoop {
    fn turn(&mut self, turn: &Turn, swarms: &mut Swarms) -> Answer {
        if turn.is_empty() {
            return Answer::go_on();
        }
        // Pieces with the same id are one turn.
        if turn.id.is_none() || turn.id != self.turn_id {
            self.turns += 1;
        }
        self.turn_id.clone_from(&turn.id);
        let (mut own, mut first, mut last) = (Answer::go_on(), None, None);
        for call in &turn.calls {
            own = own.or(self.repeats(call));
            if let Some(global) = in_swarm(turn, call, swarms) {
                first.get_or_insert_with(|| global.clone());
                last = Some(global);
            }
            self.awaited.push(Awaited {
                id: call.id.clone(),
                shell: shell::is_shell(&call.tool),
                tests: shell::command(call).is_some_and(|command| runs_tests(&command)),
                answered: false,
                turn: self.turns,
            });
        }
        // The global text comes before the worker's own; action and level are the stronger one's.
        let mut answer = match (own.message.clone(), last) {
            (Some(text), Some(global)) => Answer { message: Some(format!("{global}\n\n{text}")), ..own },
            (None, Some(_)) => Answer::saying("nudge", 1, first.unwrap_or_default()),
            (_, None) => own,
        };
        self.talk = if turn.calls.is_empty() { self.talk + 1 } else { 0 };
        if self.talk >= 2 {
            answer = answer.or(Answer::silent("nudge", 1));
        }
        answer
    }

    fn result(&mut self, result: &Value) -> Answer {
        let call = match result["id"].as_str() {
            Some(id) => {
                let mut latest_first = self.awaited.iter_mut().rev();
                latest_first.find(|call| call.id.as_deref() == Some(id))
            }
            None => {
                let open = self.awaited.iter().rev().find(|call| !call.answered);
                let turn = open.map_or(0, |call| call.turn);
                self.awaited.iter_mut().find(|call| !call.answered && call.turn == turn)
            }
        };
        let Some(call) = call.filter(|call| !call.answered) else {
            return Answer::go_on();
        };
        call.answered = true;

        let mut answer = Answer::go_on();
        if call.tests && tally(&mut self.failed_tests, passed(result)) {
            answer = answer.or(Answer::saying("nudge", 1, rethink(self.failed_tests)));
        }
        if call.shell && tally(&mut self.failed_commands, succeeded(result)) {
            answer = answer.or(Answer::silent("nudge", 1));
        }
        answer
    }
}

impl DoomLoop {
    fn repeats(&mut self, call: &Call) -> Answer {
        self.exact.push(signature(call));
        self.fingerprints.push(fingerprint(call));
        let exact = run_length(&self.exact);
        let fuzzy = run_length(&self.fingerprints);
        let count = match (exact >= 3, fuzzy >= 4) {
            (true, true) => exact.max(fuzzy),
            (true, false) => exact,
            (false, true) => fuzzy,
            (false, false) => return Answer::go_on(),
        };
        let tool = &call.tool;
        match count {
            6.. => Answer::saying("block", 3, critical(tool, count)),
            4.. => Answer::saying("nudge", 2, warning(tool, count)),
            _ => Answer::saying("nudge", 1, initial(tool)),
        }
    }
}

fn in_swarm(turn: &Turn, call: &Call, swarms: &mut Swarms) -> Option<String> {
    let (calls, workers) = swarms.add(turn.swarm.as_ref()?, &turn.worker, &fingerprint(call));
    (calls >= 10 && workers >= 2).then(|| global(&call.tool, calls, workers))
}

/// Counts a failure, forgets all at a success; whether this failure is the third in a row or later.
fn tally(failures: &mut u64, success: Option<bool>) -> bool {
    match success {
        Some(true) => *failures = 0,
        Some(false) => *failures += 1,
        None => {}
    }
    success == Some(false) && *failures >= 3
}

/// How many of the latest entries are the same.
fn run_length(entries: &[String]) -> usize {
    let same = |entry: &&String| Some(*entry) == entries.last();
    entries.iter().rev().take_while(same).count()
}

/// What a call is aimed at: its tool, and its primary arguments or the file it reads.
fn fingerprint(call: &Call) -> String {
    if let Some(command) = shell::command(call) {
        if command.is_complex() {
            return signature(call);
        }
        if let Some(file) = command.file_read() {
            return format!("{}:file_read:{file}", call.tool);
        }
    }
    let members = call.args.as_object().into_iter().flatten();
    let primary: Map<String, Value> = members
        .filter(|(key, _)| PRIMARY_KEYS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if primary.is_empty() {
        signature(call)
    } else {
        format!("{}:{}", call.tool, canonical(&Value::Object(primary)))
    }
}

fn initial(tool: &str) -> String {
    format!(
        "[System] You've called {tool} with the same arguments 3 times.\n\
         This indicates a stuck state. Either:\n\
         1. Try a DIFFERENT approach or tool\n\
         2. If blocked, explain what's preventing progress\n\
         3. If the task is complete, say so explicitly"
    )
}

fn warning(tool: &str, count: usize) -> String {
    format!(
        "[System] WARNING: You've called {tool} {count} times with identical arguments.\n\
         This is a stuck state.\n\
         1. Try a DIFFERENT approach or tool\n\
         2. If blocked, explain the blocker"
    )
}

fn critical(tool: &str, count: usize) -> String {
    format!(
        "[System] CRITICAL: You've called {tool} with the same arguments {count} times.\n\
         You are in a doom loop. You MUST:\n\
         1. STOP calling {tool} immediately\n\
         2. Explain what you're stuck on\n\
         3. Try a completely different approach\n\
         Further identical calls will be rejected."
    )
}

fn rethink(failures: u64) -> String {
    format!(
        "[System] You've had {failures} consecutive test failures. Step back and rethink:\n\
         1. Re-read the error messages carefully\n\
         2. Consider whether your approach is fundamentally wrong\n\
         3. Try a DIFFERENT fix strategy instead of iterating on the same one"
    )
}

fn global(tool: &str, calls: usize, workers: usize) -> String {
    format!(
        "[System] GLOBAL DOOM LOOP: {calls} calls to {tool} across\n\
         {workers} workers. The entire swarm is stuck on this approach.\n\
         1. Try a fundamentally different strategy\n\
         2. Do NOT retry the same tool/parameters\n\
         3. Consider whether the task goal itself needs re-evaluation"
    )
}
