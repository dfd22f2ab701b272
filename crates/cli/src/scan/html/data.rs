//! The steps of the sessions, as the page's script reads them.

use deloop_types::Outcome;
use serde::Serialize;

use super::sessions::Told;
use crate::scan::numbers::minute;
use crate::scan::story::{Kind, Scene};

/// One step; fields that are empty are left out.
#[derive(Serialize)]
struct Step<'a> {
    step: u32,
    turn: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repeats: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<Told2<'a>>,
}

#[derive(Serialize)]
struct Call<'a> {
    tool: &'a str,
    args: &'a str,
    repeats: bool,
}

#[derive(Serialize)]
struct Told2<'a> {
    action: &'a str,
    level: u32,
    message: Option<&'a str>,
}

/// The steps of each session, in the order of the cards, as JSON that cannot end the element it stands in.
pub(super) fn json(told: &[Told<'_>]) -> String {
    let all: Vec<Vec<Step<'_>>> = told.iter().map(|t| t.story.scenes.iter().map(step).collect()).collect();
    let json = serde_json::to_string(&all).unwrap_or_else(|_| "[]".to_owned());
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn step(scene: &Scene) -> Step<'_> {
    let (kind, text, calls, outcome, repeats) = match &scene.kind {
        Kind::Turn { text, calls } => {
            let calls: Vec<Call<'_>> =
                calls.iter().map(|c| Call { tool: &c.tool, args: &c.args, repeats: c.group > 0 }).collect();
            ("turn", text.as_str(), calls, None, false)
        }
        Kind::Result { outcome, text, repeats, .. } => {
            ("result", text.as_str(), Vec::new(), *outcome, *repeats)
        }
        Kind::User { text, human } => {
            (if *human { "user" } else { "harness" }, text.as_str(), Vec::new(), None, false)
        }
        Kind::Compact => ("compact", "", Vec::new(), None, false),
    };
    Step {
        step: scene.step,
        turn: scene.turn,
        time: scene.ts.map(|ts| minute(&ts.to_string())),
        agent: scene.agent.as_deref(),
        kind,
        text,
        calls,
        outcome,
        repeats,
        told: scene.told.as_ref().map(|t| Told2 {
            action: t.action.as_str(),
            level: t.level,
            message: t.message.as_deref(),
        }),
    }
}
