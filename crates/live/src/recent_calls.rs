//! The last calls of an agent, shortened and sanitized: the evidence that `deloop explain` shows.

use deloop_detect::{CallRecord, Fingerprint, mask, quote, short_call, short_hash};
use deloop_types::{Body, Call, Outcome, Step};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Number of calls kept.
const MOST: usize = 16;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentCall {
    /// The step's index in its session.
    pub step: u64,
    /// The tool.
    pub tool: String,
    /// The short form of the call.
    pub call: String,
    /// A fingerprint of the call.
    pub print: String,
    /// How it ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came: Option<Outcome>,
    /// A fingerprint of the output without its volatile parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Its evidence, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// Hash of the id that its result refers to.
    #[serde(default)]
    id: u64,
}

/// Adds the step at this index.
pub(crate) fn enter(calls: &mut Vec<RecentCall>, step: &Step, index: u64, judged: Option<&CallRecord>) {
    match &step.body {
        Body::Turn(turn) => calls.extend(turn.calls.iter().map(|call| short_form(call, index))),
        Body::Result(result) => {
            let id = hash(result.id.as_deref());
            if let Some(recent) = calls.iter_mut().rev().find(|c| c.id == id) {
                recent.evidence = judged.map(|record| deloop_policy::evidence(record).to_owned());
                recent.came = result.ended();
                let text = match &result.output {
                    Value::String(text) => mask(text),
                    other => mask(&other.to_string()),
                };
                recent.output = Some(format!("{:08x}", short_hash(text.trim().as_bytes()) >> 32));
            }
        }
        _ => {}
    }
    let over = calls.len().saturating_sub(MOST);
    calls.drain(..over);
}

/// Returns the fingerprints of the calls that a step is about.
pub(crate) fn about<'a>(calls: &'a [RecentCall], step: &Step, index: u64) -> Vec<&'a str> {
    let mine = |recent: &&RecentCall| match &step.body {
        Body::Turn(_) => recent.step == index,
        Body::Result(result) => recent.id == hash(result.id.as_deref()),
        _ => false,
    };
    calls.iter().filter(mine).map(|recent| recent.print.as_str()).collect()
}

/// Returns the fingerprints of calls made more than once, and of the last call.
pub fn repeated(calls: &[RecentCall]) -> Vec<&str> {
    let again = |c: &&RecentCall| calls.iter().filter(|o| o.print == c.print).count() > 1;
    let mut prints: Vec<&str> = calls.iter().filter(again).map(|c| c.print.as_str()).collect();
    prints.extend(calls.last().map(|c| c.print.as_str()));
    prints.sort_unstable();
    prints.dedup();
    prints
}

/// Serializes the calls, to be stored with a decision.
pub(crate) fn json(calls: &[RecentCall]) -> String {
    serde_json::to_string(calls).unwrap_or_default()
}

/// Returns the fingerprint of a call, as it is stored.
pub(crate) fn print(call: &Call) -> String {
    format!("{:08x}", Fingerprint::of_call(&call.tool, &call.args).short() >> 32)
}

fn short_form(call: &Call, step: u64) -> RecentCall {
    RecentCall {
        step,
        tool: quote(&call.tool, 40),
        call: short_call(&call.tool, &call.args).to_string(),
        print: print(call),
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
        let mut calls = Vec::new();
        for n in 0..40 {
            let call = Call::new("Bash", Value::Null).with_id(format!("c{n}"));
            let turn = deloop_types::Turn::new("", vec![call]);
            enter(&mut calls, &Step::new("s", Body::Turn(turn)), n, None);
        }
        let mut result = deloop_types::ToolResult::default();
        result.id = Some("c38".to_owned());
        result.ok = Some(false);
        enter(&mut calls, &Step::new("s", Body::Result(result)), 40, None);
        assert_eq!((calls.len(), calls[0].step), (MOST, 24));
        assert_eq!((calls[14].came, calls[15].came), (Some(Outcome::Error), None));
    }
}
