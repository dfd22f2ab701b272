//! The last calls of an agent in short, sanitised forms: the evidence that people are shown later.

use deloop_detect::{CallRecord, Fingerprint, mask, quote, short_call, short_hash};
use deloop_types::{Body, Call, Outcome, Step};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many calls are kept.
const MOST: usize = 16;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Crumb {
    /// The step's index in its session.
    pub(crate) step: u64,
    /// The tool.
    pub(crate) tool: String,
    /// The call in a short form.
    pub(crate) call: String,
    /// Tells the call from others.
    pub(crate) print: String,
    /// How it ended, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) came: Option<Outcome>,
    /// Tells what came back from other results, volatile parts apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    /// What it is evidence of, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<String>,
    /// The id that its result names, hashed.
    #[serde(default)]
    id: u64,
}

/// Enters a step that has this index.
pub(super) fn enter(trail: &mut Vec<Crumb>, step: &Step, index: u64, judged: Option<&CallRecord>) {
    match &step.body {
        Body::Turn(turn) => trail.extend(turn.calls.iter().map(|call| crumb(call, index))),
        Body::Result(result) => {
            let id = hash(result.id.as_deref());
            if let Some(crumb) = trail.iter_mut().rev().find(|c| c.id == id) {
                crumb.evidence = judged.map(|record| deloop_policy::evidence(record).to_owned());
                crumb.came = result.ended();
                let text = match &result.output {
                    Value::String(text) => mask(text),
                    other => mask(&other.to_string()),
                };
                crumb.output = Some(format!("{:08x}", short_hash(text.trim().as_bytes()) >> 32));
            }
        }
        _ => {}
    }
    let over = trail.len().saturating_sub(MOST);
    trail.drain(..over);
}

/// The calls that a step is about, by their fingerprints.
pub(super) fn about<'a>(trail: &'a [Crumb], step: &Step, index: u64) -> Vec<&'a str> {
    let mine = |crumb: &&Crumb| match &step.body {
        Body::Turn(_) => crumb.step == index,
        Body::Result(result) => crumb.id == hash(result.id.as_deref()),
        _ => false,
    };
    trail.iter().filter(mine).map(|crumb| crumb.print.as_str()).collect()
}

/// The calls that a trail repeats, and its last one, by their fingerprints.
pub(crate) fn repeated(trail: &[Crumb]) -> Vec<&str> {
    let again = |c: &&Crumb| trail.iter().filter(|o| o.print == c.print).count() > 1;
    let mut prints: Vec<&str> = trail.iter().filter(again).map(|c| c.print.as_str()).collect();
    prints.extend(trail.last().map(|c| c.print.as_str()));
    prints.sort_unstable();
    prints.dedup();
    prints
}

/// The trail as it is written down with a decision.
pub(super) fn json(trail: &[Crumb]) -> String {
    serde_json::to_string(trail).unwrap_or_default()
}

fn crumb(call: &Call, step: u64) -> Crumb {
    Crumb {
        step,
        tool: quote(&call.tool, 40),
        call: short_call(&call.tool, &call.args).to_string(),
        print: format!("{:08x}", Fingerprint::of_call(&call.tool, &call.args).short() >> 32),
        came: None,
        output: None,
        evidence: None,
        id: hash(call.id.as_deref()),
    }
}

fn hash(id: Option<&str>) -> u64 {
    id.map_or(0, |id| short_hash(id.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_find_their_calls_and_the_oldest_go() {
        let mut trail = Vec::new();
        for n in 0..40 {
            let call = Call::new("Bash", Value::Null).with_id(format!("c{n}"));
            let turn = deloop_types::Turn::new("", vec![call]);
            enter(&mut trail, &Step::new("s", Body::Turn(turn)), n, None);
        }
        let result = {
            let mut made = deloop_types::ToolResult::default();
            made.id = Some("c38".to_owned());
            made.ok = Some(false);
            made
        };
        enter(&mut trail, &Step::new("s", Body::Result(result)), 40, None);
        assert_eq!((trail.len(), trail[0].step), (MOST, 24));
        assert_eq!((trail[14].came, trail[15].came), (Some(Outcome::Error), None));
    }
}
