//! V0: actions and observations, which name the action that caused them.

use std::collections::{HashMap, HashSet};

use deloop_types::{Body, Call, Origin, Outcome, Turn};
use serde_json::Value;

use super::event::OpenhandsEvent;
use super::usage_meters::UsageMeters;
use crate::Sink;
use crate::step_writer::StepWriter;

/// Arguments that are about the action, not of the call.
const NOT_OF_THE_CALL: [&str; 6] =
    ["thought", "reasoning_content", "security_risk", "confirmation_state", "hidden", "blocking"];

pub(super) fn read(writer: StepWriter, mut events: Vec<OpenhandsEvent<'_>>, out: &mut Sink<'_>) {
    let mut turns = turns(&mut events);
    let mut reader =
        OpenhandsV0Reader { writer, ids: turns.ids, others: HashSet::new(), meters: UsageMeters::default() };
    for (event, turn) in events.iter().zip(turns.at.iter_mut()) {
        reader.event(event, turn.take(), out);
    }
}

/// The turns, each at the index of the action that began it.
struct Turns {
    at: Vec<Option<Turn>>,
    /// The call of each action.
    ids: HashMap<String, String>,
}

/// Gathers the calls of one response into one turn: their actions are apart, each followed by what it caused.
fn turns(events: &mut [OpenhandsEvent<'_>]) -> Turns {
    let mut turns = Turns { at: Vec::new(), ids: HashMap::new() };
    let mut open: Option<OpenhandsOpenResponse> = None;
    for (index, event) in events.iter_mut().enumerate() {
        turns.at.push(None);
        let Some(text) = said(event) else { continue };
        let Some(call) = call(event) else {
            turns.at[index] = Some(Turn::new(text, Vec::new()));
            open = None;
            continue;
        };
        if let (Some(action), Some(id)) = (event.id.get(), &call.id) {
            turns.ids.insert(action.to_owned(), id.clone());
        }
        let response = OpenhandsOpenResponse::of(event, index);
        match (&mut open, response) {
            (Some(open), Some(response)) if open.left > 0 && open.id == response.id => {
                open.left -= 1;
                if let Some(Some(turn)) = turns.at.get_mut(open.turn) {
                    turn.calls.push(call);
                }
            }
            (_, response) => {
                turns.at[index] = Some(Turn::new(text, vec![call]));
                open = response;
            }
        }
    }
    turns
}

/// A response of the model, of which calls are yet to come.
struct OpenhandsOpenResponse {
    id: String,
    /// Where its turn is.
    turn: usize,
    /// How many calls are yet to come.
    left: u64,
}

impl OpenhandsOpenResponse {
    fn of(event: &OpenhandsEvent<'_>, turn: usize) -> Option<Self> {
        let metadata = event.tool_call_metadata.0.as_ref()?;
        let id = metadata.model_response.0.as_ref()?.id.get()?.to_owned();
        Some(Self { id, turn, left: metadata.total_calls_in_response.0.saturating_sub(1) })
    }
}

/// What the agent said with an action, perhaps nothing; `None` if it is no action by which it speaks or works.
fn said(event: &OpenhandsEvent<'_>) -> Option<String> {
    let field = |name| event.args.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let text = match event.action.0.as_str().filter(|_| by_agent(event))? {
        "message" => field("content"),
        "finish" | "reject" => field("final_thought").or_else(|| field("thought")),
        "think" => None,
        name if works(name) => field("thought"),
        _ => return None,
    };
    Some(text.unwrap_or_default().to_owned())
}

/// The call that an action is; takes its arguments. An action that says nothing of calls is named by its id.
fn call(event: &mut OpenhandsEvent<'_>) -> Option<Call> {
    let name = event.action.0.as_str().filter(|name| *name == "think" || works(name))?;
    let metadata = event.tool_call_metadata.0.as_ref();
    let id = metadata.and_then(|m| m.tool_call_id.get()).or(event.id.get()).map(str::to_owned);
    let tool = metadata.and_then(|m| m.function_name.get()).unwrap_or(name).to_owned();
    let thinks = name == "think";
    Some({
        let mut made = Call::new(tool, of_the_call(std::mem::take(&mut event.args.0), thinks));
        made.id = id;
        made
    })
}

fn of_the_call(args: Value, thinks: bool) -> Value {
    let Value::Object(mut fields) = args else { return args };
    fields.retain(|name, _| (thinks && name == "thought") || !NOT_OF_THE_CALL.contains(&name.as_str()));
    Value::Object(fields)
}

fn by_agent(event: &OpenhandsEvent<'_>) -> bool {
    !matches!(event.source.as_str(), "user" | "environment")
}

/// Returns whether an action of this name is a call of a tool.
fn works(name: &str) -> bool {
    matches!(
        name,
        "read"
            | "write"
            | "edit"
            | "run"
            | "run_ipython"
            | "browse"
            | "browse_interactive"
            | "call_tool_mcp"
            | "delegate"
            | "task_tracking"
            | "push"
            | "send_pr"
    )
}

struct OpenhandsV0Reader {
    writer: StepWriter,
    ids: HashMap<String, String>,
    /// Actions that are not the agent's.
    others: HashSet<String>,
    meters: UsageMeters,
}

impl OpenhandsV0Reader {
    fn event(&mut self, event: &OpenhandsEvent<'_>, turn: Option<Turn>, out: &mut Sink<'_>) {
        let ts = event.timestamp.0;
        if let Some(turn) = turn {
            self.writer.at(ts).turn(turn.text, turn.calls, out);
        }
        if let Some(metrics) = &event.llm_metrics.0 {
            let usage = self.meters.since("", metrics);
            self.writer.at(ts).usage(usage, None, out);
        }
        if let Some(name) = event.action.0.as_str() {
            self.action(name, event, out);
        } else if let Some(name) = &event.observation.name {
            self.observation(name, event, out);
        } else {
            out.unknown("(neither action nor observation)");
        }
    }

    fn action(&mut self, name: &str, event: &OpenhandsEvent<'_>, out: &mut Sink<'_>) {
        match name {
            "message" if !by_agent(event) => {
                let text = event.args.0.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
                let origin = if event.source.as_str() == "user" { Origin::Human } else { Origin::Harness };
                self.writer.at(event.timestamp.0).user(text, origin, out);
            }
            "condensation" => self.writer.at(event.timestamp.0).write(Body::Compact, out),
            "message" | "finish" | "reject" | "think" => {}
            name if works(name) => {
                if !by_agent(event) {
                    self.others.extend(event.id.get().map(str::to_owned));
                }
            }
            "system"
            | "start"
            | "null"
            | "pause"
            | "resume"
            | "stop"
            | "change_agent_state"
            | "recall"
            | "condensation_request"
            | "loop_recovery" => {}
            other => out.unknown(other),
        }
    }

    fn observation(&mut self, name: &str, event: &OpenhandsEvent<'_>, out: &mut Sink<'_>) {
        let known = matches!(
            name,
            "read"
                | "write"
                | "edit"
                | "browse"
                | "run"
                | "run_ipython"
                | "delegate"
                | "error"
                | "success"
                | "think"
                | "user_rejected"
                | "mcp"
                | "task_tracking"
                | "download"
        );
        let quiet =
            ["null", "chat", "message", "agent_state_changed", "condense", "recall", "loop_detection"];
        if !known {
            if !quiet.contains(&name) {
                out.unknown(name);
            }
            return;
        }
        if event.cause.get().is_some_and(|cause| self.others.contains(cause)) {
            return;
        }
        let (ts, content) = (event.timestamp.0, event.content.joined());
        let caused = event.cause.get().and_then(|cause| self.ids.get(cause).cloned());
        let named = || event.tool_call_metadata.0.as_ref()?.tool_call_id.get().map(str::to_owned);
        let Some(id) = caused.or_else(named) else {
            // What no call caused, such as an answer that could not be read, is told to the model as a message.
            self.writer.at(ts).user(content, Origin::Harness, out);
            return;
        };
        let ended = ended(name, event, &content);
        let terminal = event.extras.0.as_ref().and_then(|extras| extras.metadata.0.as_ref());
        let output =
            if name == "run" { terminal.map_or(content.clone(), |t| t.shown(&content)) } else { content };
        self.writer.at(ts).result(Some(id), ended, output, out);
    }
}

fn ended(name: &str, event: &OpenhandsEvent<'_>, content: &str) -> Option<Outcome> {
    let extras = event.extras.0.as_ref();
    let exit = extras.and_then(|e| e.metadata.0.as_ref().and_then(|m| m.exit_code.0).or(e.exit_code.0));
    match name {
        "user_rejected" => Some(Outcome::Denied),
        "error" => Some(Outcome::Error),
        "run" => exit.map(of_exit_code),
        "run_ipython" if content.contains("Traceback (most recent call last)") => Some(Outcome::Error),
        "mcp" => None,
        _ if extras.is_some_and(|e| e.error.0 == Some(true)) || content.starts_with("ERROR:") => {
            Some(Outcome::Error)
        }
        _ => Some(Outcome::Ok),
    }
}

/// -1 is the code of a command that still runs.
pub(super) fn of_exit_code(code: f64) -> Outcome {
    if code == 0.0 {
        Outcome::Ok
    } else if code == -1.0 {
        Outcome::Running
    } else {
        Outcome::Error
    }
}
