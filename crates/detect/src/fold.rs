//! The fold: how a Step becomes part of a [`History`], and what the detectors see of it.

use deloop_types::{Body, Call, Outcome, Step, ToolResult};
use serde_json::Value;

use crate::command::{command_line, is_file_operation};
use crate::effect::{Effect, main_program};
use crate::fingerprint::half;
use crate::fruitless::fruitless;
use crate::history::{Came, Nature, Size};
use crate::mask::mask_into;
use crate::shell::Script;
use crate::test_runs::is_test_command;
use crate::{
    CallRecord, CallView, Exchange, Fingerprint, Happening, History, Ledger, Moment, ResultView, SwarmCount,
    ToolKind, Tools, short_hash,
};

/// What a step is seen with, beside the history of its agent.
pub struct Around<'a> {
    /// What all agents of the session said lately; a turn is entered into it.
    pub exchange: &'a mut Exchange,
    /// What the whole session has used.
    pub ledger: &'a Ledger,
    /// What is known about tools.
    pub tools: &'a Tools,
}

/// Enters a step into the history and shows each thing that happened in it to `look`: a turn, then its calls one
/// by one; a result with its call; everything else as it is. `swarm` says how the swarm stands on each call.
pub fn fold(
    history: &mut History,
    around: Around<'_>,
    step: &Step,
    index: u64,
    swarm: &[Option<SwarmCount>],
    look: &mut dyn FnMut(&Moment<'_>),
) {
    let Around { exchange, ledger, tools } = around;
    match &step.body {
        Body::Turn(turn) => exchange.push(step.agent.as_deref(), turn, tools, index),
        Body::User(user) => exchange.heard(user),
        _ => {}
    }
    let mut show = |history: &History, event| {
        look(&Moment { history, exchange, ledger, tools, step: index, ts: step.ts, event });
    };
    match &step.body {
        Body::Turn(turn) => {
            history.push_turn();
            show(history, Happening::Turn(turn));
            for (i, call) in turn.calls.iter().enumerate() {
                let record = history.push_call(&call.tool, record_of(call, tools, index));
                let count = swarm.get(i).copied().flatten();
                show(history, Happening::Call(CallView::new(call, record, count)));
            }
        }
        Body::Result(result) => {
            let id = result.id.as_ref().map(|id| half(short_hash(id.as_bytes())));
            let came = |record: &CallRecord| {
                // What deloop refused was called off: it says nothing about the call.
                let outcome =
                    if refused_by_deloop(result) { Some(Outcome::Cancelled) } else { result.ended() };
                let (output, size) = output_print(result, record.nature == Nature::Measures);
                Came { outcome, output, size, fruitless: half(fruitless(record, result, outcome)) }
            };
            if let Some(record) = history.answer(id, came) {
                show(history, Happening::Result(ResultView { result, record }));
            }
        }
        Body::User(user) => show(history, Happening::User(user)),
        Body::Usage(_) => show(history, Happening::Usage),
        Body::Chunk(text) => show(history, Happening::Chunk(text)),
        Body::Compact => show(history, Happening::Compact),
        Body::Delivery(_) | Body::End => {}
    }
}

fn record_of(call: &Call, tools: &Tools, step: u64) -> CallRecord {
    let kind = tools.kind(&call.tool);
    let (mut tests, mut file_operation) = (kind == ToolKind::Test, false);
    let mut effect = Effect {
        writes: kind == ToolKind::Write,
        waits: kind == ToolKind::Poll,
        searches: kind == ToolKind::Search,
        moves: false,
        measures: false,
        switches: false,
    };
    let mut program = short_hash(call.tool.as_bytes());
    if kind == ToolKind::Run
        && let Some(line) = command_line(&call.args)
    {
        let script = Script::parse(&line);
        tests = is_test_command(&script);
        effect = Effect::of(&script);
        program = main_program(&script).map_or(program, |p| short_hash(p.as_bytes()));
        file_operation = script.commands.first().is_some_and(|c| is_file_operation(c.program()));
    }
    CallRecord {
        ordinal: 0,
        step,
        turn: 0,
        id: call.id.as_ref().map_or(0, |id| half(short_hash(id.as_bytes()))),
        signature: signature(call, tools),
        tool: 0,
        kind,
        tests,
        file_operation,
        waits: effect.waits,
        searches: effect.searches,
        moves: effect.moves,
        writes: effect.writes,
        nature: match (effect.measures, effect.switches) {
            (true, _) => Nature::Measures,
            (false, true) => Nature::Switches,
            (false, false) => Nature::Plain,
        },
        program: half(program),
        changes: 0,
        outcome: None,
        answered: false,
        output: 0,
        size: Size::Short,
        fruitless: 0,
    }
}

/// The tool and its arguments; only those that the user named for it, if any.
fn signature(call: &Call, tools: &Tools) -> Fingerprint {
    match (tools.rule(&call.tool), &call.args) {
        (Some(rule), Value::Object(args)) if !rule.key.is_empty() => {
            let named = rule.key.iter().filter_map(|k| Some((k.clone(), args.get(k)?.clone())));
            Fingerprint::of_call(&call.tool, &Value::Object(named.collect()))
        }
        _ => Fingerprint::of_call(&call.tool, &call.args),
    }
}

/// Whether a result holds words of deloop: every message of it begins so.
pub(crate) fn speaks_deloop(result: &ToolResult) -> bool {
    result.output.as_str().is_some_and(|text| text.contains("[deloop]"))
}

/// Whether a result is deloop's own refusal. One without a word is taken for it.
fn refused_by_deloop(result: &ToolResult) -> bool {
    match &result.output {
        Value::String(text) if !text.is_empty() => {
            speaks_deloop(result) && result.ended() != Some(Outcome::Ok)
        }
        Value::String(_) | Value::Null => result.outcome == Some(Outcome::Denied),
        _ => false,
    }
}

/// What came back with its volatile parts masked, hashed, and how long it is. Of what measures, nothing is volatile.
fn output_print(result: &ToolResult, measures: bool) -> (u64, Size) {
    let written = match &result.output {
        Value::String(_) => None,
        other => {
            let mut text = String::new();
            crate::canonical::write_canonical(other, &mut text);
            Some(text)
        }
    };
    let text = written.as_deref().or_else(|| result.output.as_str()).unwrap_or_default();
    if measures {
        let text = text.trim().as_bytes();
        return (short_hash(text), Size::of(text.len()));
    }
    let mut masked = Vec::with_capacity(2048);
    mask_into(text, &mut masked);
    let masked = masked.trim_ascii();
    (short_hash(masked), Size::of(masked.len()))
}
