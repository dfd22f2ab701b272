//! The steps of the sessions, as the page's script reads them.

use deloop_types::Outcome;
use serde::Serialize;

use super::sessions::SessionCard;
use crate::replay::{StepKind, StepView, TranscriptEntry};
use crate::scan::numbers::minute;

/// One step, or what was left out before the next; fields that are empty are left out.
#[derive(Serialize, Default)]
struct StepData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u32>,
    turn: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<CallData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repeats: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<ActionData<'a>>,
}

#[derive(Serialize)]
struct CallData<'a> {
    tool: &'a str,
    args: &'a str,
}

#[derive(Serialize)]
struct ActionData<'a> {
    turn: u32,
    action: &'a str,
    level: u32,
    message: Option<&'a str>,
}

/// Returns the steps of each session, in the order of the cards, as JSON that cannot end the element it stands in.
pub(super) fn json(cards: &[SessionCard<'_>]) -> String {
    let all: Vec<Vec<StepData<'_>>> =
        cards.iter().map(|card| card.transcript.entries.iter().map(data).collect()).collect();
    let json = serde_json::to_string(&all).unwrap_or_else(|_| "[]".to_owned());
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn data(entry: &TranscriptEntry) -> StepData<'_> {
    match entry {
        TranscriptEntry::Step(step) => step_data(step),
        TranscriptEntry::LeftOut(left_out) => {
            StepData { left_out: Some(left_out.to_string()), kind: "gap", ..StepData::default() }
        }
    }
}

fn step_data(view: &StepView) -> StepData<'_> {
    let mut data = StepData {
        step: Some(view.step),
        turn: view.turn,
        time: view.ts.map(|ts| minute(&ts.to_string())),
        agent: view.agent.as_deref(),
        action: view.action.as_ref().map(|a| ActionData {
            turn: a.turn,
            action: a.action.as_str(),
            level: a.level,
            message: a.message.as_deref(),
        }),
        ..StepData::default()
    };
    match &view.kind {
        StepKind::Turn { text, calls } => {
            data.calls = calls.iter().map(|c| CallData { tool: &c.tool, args: &c.args }).collect();
            (data.kind, data.text, data.repeats) = ("turn", text, view.repeats);
        }
        StepKind::Result { outcome, text, again, .. } => {
            (data.kind, data.text, data.outcome) = ("result", text, *outcome);
            data.repeats = view.repeats && *again;
        }
        StepKind::User { text, human } => {
            (data.kind, data.text) = (if *human { "user" } else { "harness" }, text);
        }
        StepKind::Compact => data.kind = "compact",
        StepKind::Other => data.kind = "other",
    }
    data
}
