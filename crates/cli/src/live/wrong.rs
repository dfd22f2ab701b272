//! `deloop wrong`: a mistaken decision becomes a redacted label of the user's own.

use std::io::Write;
use std::path::{Path, PathBuf};

use deloop_live::RecordedDecision;
use deloop_types::{Body, Call, Millis, PatternId, Step, ToolResult, Turn};
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{Was, WrongArgs};
use super::explain::read;
use super::named::{self, told};
use super::redact::Redact;
use super::words::{short, summary};
use crate::exit::{self, Failure};
use crate::redaction::Redaction;
use crate::sessions::load;
use crate::state::{State, now};
use deloop_live::CALL;
use deloop_live::{RecentCall, repeated};

/// A longer transcript is not read.
const LONGEST: u64 = 256 << 20;

/// What tells a pattern from others.
#[derive(Debug, Deserialize)]
struct RecordedPattern {
    detector: String,
    #[serde(default)]
    pattern: PatternId,
}

pub(crate) fn run(args: &WrongArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let (store, row) = named::decision(&args.id)?;
    let wrong = !matches!(args.was, Was::Loop | Was::Borderline);
    store.mark_wrong(&row.id, wrong).map_err(told)?;
    if wrong {
        let recent_calls: Vec<RecentCall> = read(row.recent_calls.as_deref());
        for print in repeated(&recent_calls).into_iter().filter_map(|p| u64::from_str_radix(p, 16).ok()) {
            store.pardon(&row.session, CALL, print, now()).map_err(told)?;
        }
        for RecordedPattern { detector, pattern } in read(row.findings.as_deref()) {
            store.pardon(&row.session, &detector, pattern.0, now()).map_err(told)?;
        }
    } else {
        store.unpardon(&row.session).map_err(told)?;
    }
    let transcript = store.source(&row.session).map_err(told)?.and_then(|source| source.transcript);
    let (steps, from) = match transcript.as_deref().and_then(|path| written(Path::new(path), &row.session)) {
        Some(steps) => (steps, "the transcript"),
        None => (remembered(&row), "the recorded calls"),
    };
    let state = State::here()?;
    let file = keep(&state, args, &row, &steps)?;
    if wrong {
        writeln!(
            out,
            "Marked {} as wrong. deloop ignores this pattern in session {} from now on.",
            row.id,
            short(&row.session)
        )?;
    } else {
        writeln!(out, "Marked {} as {}.", row.id, args.was.as_str())?;
    }
    writeln!(out, "Saved a label: {} (from {from}; every word is replaced)", file.display())?;
    Ok(exit::OK)
}

/// The session as its agent wrote it down, if that can be read.
fn written(path: &Path, session: &str) -> Option<Vec<Step>> {
    let size = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    if size > LONGEST {
        return None;
    }
    load(path, session).ok()
}

/// The calls that were kept with the decision.
fn remembered(row: &RecordedDecision) -> Vec<Step> {
    let recent_calls: Vec<RecentCall> = read(row.recent_calls.as_deref());
    let mut steps = Vec::new();
    for (n, recent) in recent_calls.into_iter().enumerate() {
        let id = Some(format!("c{n}"));
        let mut call = Call::new(recent.tool, json!({"print": recent.print}));
        call.id = id.clone();
        steps.push(Step::new("s", Body::Turn(Turn::new("", vec![call]))));
        if recent.came.is_some() || recent.output.is_some() {
            let output = recent.output.map_or(Value::Null, Value::String);
            let mut result = ToolResult::default();
            result.id = id;
            result.outcome = recent.came;
            result.output = output;
            steps.push(Step::new("s", Body::Result(result)));
        }
    }
    steps.into_iter().map(|step| step.at(row.ts)).collect()
}

/// Writes the redacted session and its label; the session's file.
fn keep(state: &State, args: &WrongArgs, row: &RecordedDecision, steps: &[Step]) -> Result<PathBuf, Failure> {
    let redact = Redact::new(&row.id);
    let name = format!("sessions/{}.jsonl", row.id);
    let mut text = String::new();
    for step in steps.iter().filter_map(|step| redact.step(step)) {
        text.push_str(&serde_json::to_string(&step)?);
        text.push('\n');
    }
    let file = state.write(&name, text.as_bytes())?;
    let redaction = Redaction::new(false);
    let mut label = json!({
        "path": name, "label": args.was.as_str(), "kind": row.detector.as_deref().unwrap_or("other"),
        "why": args.note.clone().unwrap_or_else(|| format!("deloop reported: {}", summary(row, &redaction, 200))),
        "by": "a person", "decision": row.id, "action": row.action,
    });
    if args.was == Was::Loop {
        label["onset_turn"] = turn_at(steps, row.ts).into();
    }
    let _lock = state.lock("labels.jsonl")?;
    let labels = state.read("labels.jsonl").unwrap_or_default();
    let same =
        |line: &&str| !serde_json::from_str::<Value>(line).is_ok_and(|known| known["path"] == label["path"]);
    let mut kept: Vec<&str> = labels.lines().filter(same).collect();
    let line = label.to_string();
    kept.push(&line);
    state.write("labels.jsonl", format!("{}\n", kept.join("\n")).as_bytes())?;
    Ok(file)
}

/// The agent turn, from 0, that was the last one at this time.
fn turn_at(steps: &[Step], ts: Millis) -> usize {
    let turns = steps.iter().filter(|s| matches!(s.body, Body::Turn(_)));
    turns.filter(|s| s.ts.is_none_or(|t| t <= ts)).count().saturating_sub(1)
}
