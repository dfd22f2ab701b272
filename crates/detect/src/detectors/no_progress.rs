use deloop_types::{Evidence, Finding, Origin, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    CallRecord, CallView, Detector, Happening, Moment, ResultView, Ring, ToolKind, clean, short_call,
    short_hash,
};

/// Calls that bring nothing new: each was made before, came back the same, and nothing changed in between.
pub(crate) struct NoProgress;

/// How [`NoProgress`] is tuned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// From how many times the same call with the same outcome, with nothing changed in between, it is a finding.
    at: u64,
    /// The same, when something was changed in between.
    changed: u64,
    /// How many calls in a row must bring nothing new.
    stale: u64,
    /// How often the same poll may come back the same.
    polls: u64,
    /// From how many identical calls in a row on, when no results are seen at all.
    unseen: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { at: 3, changed: 4, stale: 2, polls: 30, unseen: 6 }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// How many calls in a row brought nothing new, and where that began.
    stale: u64,
    since: u64,
    /// The signature of the last of them.
    last: u64,
    /// Calls that were made before, in their short form.
    names: Ring<(u64, String)>,
}

const NAMES: usize = 8;

impl Detector for NoProgress {
    type Params = Params;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "no-progress"
    }

    fn page(&self) -> &'static str {
        include_str!("no-progress.md")
    }

    fn look(&self, params: &Params, moment: &Moment<'_>, memory: &mut Memory) -> Option<Finding> {
        match &moment.event {
            Happening::Call(call) => self.before(params, moment, call, memory),
            Happening::Result(result) => self.after(params, moment, result, memory),
            Happening::User(user) if user.origin == Origin::Human => {
                memory.stale = 0;
                None
            }
            _ => None,
        }
    }
}

impl NoProgress {
    /// A call is about to be made: was it made before, again and again, to the same end?
    fn before(
        &self,
        params: &Params,
        moment: &Moment<'_>,
        call: &CallView<'_>,
        memory: &mut Memory,
    ) -> Option<Finding> {
        let record = &call.record;
        let key = record.signature.short();
        let recent = moment.history.recent();
        let earlier = || recent.iter().rev().skip(1).filter(|r| r.signature == record.signature);
        // A refusal says nothing about the call: what came back when it was last made does.
        let ran = |r: &&CallRecord| r.outcome != Some(Outcome::Denied);
        let latest = earlier().find(ran).or_else(|| earlier().next())?;
        if !memory.names.iter().any(|(k, _)| *k == key) {
            memory.names.push((key, short_call(&call.call.tool, &call.call.args)), NAMES);
        }
        if record.waits {
            return None;
        }
        if !latest.answered {
            return self.unseen(params, moment, record, memory);
        }
        let same = |r: &&CallRecord| r.answered && alike(r, latest) && r.changes == moment.history.changes();
        let count = turns(earlier().filter(same).chain([latest]), record.turn) + 1;
        let tool_at = at_of(params.at, moment, call.call.tool.as_str());
        let stuck = latest.changes == moment.history.changes() && memory.stale >= params.stale;
        (stuck && count > tool_at).then(|| {
            // What is told is what came back so far; what is counted includes the call that is about to be made.
            let mut finding = self.finding(moment, latest, memory, count - 1);
            finding.count = count;
            finding.evidence.at = record.ordinal;
            finding.evidence.pending = true;
            finding.evidence.hard = true;
            finding
        })
    }

    /// No result of this call was ever seen: all there is to go by is that it is made again and again.
    fn unseen(
        &self,
        params: &Params,
        moment: &Moment<'_>,
        record: &CallRecord,
        memory: &Memory,
    ) -> Option<Finding> {
        let recent = moment.history.recent();
        let run = recent.iter().rev().take_while(|r| r.signature == record.signature && !r.answered);
        let count = turns(run, u64::MAX);
        (count >= params.unseen).then(|| self.finding(moment, record, memory, count))
    }

    /// A call came back: did it bring anything new?
    fn after(
        &self,
        params: &Params,
        moment: &Moment<'_>,
        result: &ResultView<'_>,
        memory: &mut Memory,
    ) -> Option<Finding> {
        let record = &result.record;
        if own_words(result) || matches!(record.outcome, Some(Outcome::Running | Outcome::Cancelled)) {
            return None;
        }
        let nothing_moved =
            record.moves && !record.outcome.is_some_and(Outcome::failed) && record.fruitless == 0;
        let earlier = moment.history.recent().iter().filter(|r| r.ordinal < record.ordinal && r.answered);
        let again = |r: &&CallRecord| {
            r.signature == record.signature
                && !nothing_moved
                && (alike(r, record) || record.kind == ToolKind::Write)
        };
        let same: Vec<&CallRecord> = earlier.filter(again).collect();
        if record.waits || still_running(result) {
            let count = turns(same.iter().copied(), record.turn) + 1;
            let most = at_of(params.polls, moment, moment.history.tool(record));
            return (count > most).then(|| self.finding(moment, record, memory, count));
        }
        if same.is_empty() {
            memory.stale = 0;
            return None;
        }
        if memory.stale == 0 {
            memory.since = record.ordinal;
        }
        memory.stale += 1;
        let unchanged = |r: &&CallRecord| r.changes == record.changes || record.kind == ToolKind::Write;
        let in_vain = turns(same.iter().copied().filter(unchanged), record.turn) + 1;
        let all = turns(same.iter().copied(), record.turn) + 1;
        let at = at_of(params.at, moment, moment.history.tool(record));
        let stuck = memory.stale >= params.stale && (in_vain >= at || all >= params.changed.max(at));
        let finding = stuck.then(|| {
            let mut finding = self.finding(moment, record, memory, all);
            finding.evidence.hard = in_vain >= at && same.iter().all(|r| alike(r, record));
            finding
        });
        memory.last = record.signature.short();
        finding
    }

    fn finding(&self, moment: &Moment<'_>, record: &CallRecord, memory: &Memory, count: u64) -> Finding {
        let key = record.signature.short();
        let tool = moment.history.tool(record);
        let known = memory.names.iter().find(|(k, _)| *k == key);
        let short = known.map_or_else(|| clean(tool, 40), |(_, name)| name.clone());
        let outcome = outcome_of(record);
        // One call again and again is one pattern; a cycle is one pattern for as long as it goes on.
        let alone = memory.last == key || memory.stale <= 1;
        let pattern = if alone { key } else { short_hash(&memory.since.to_le_bytes()) };
        let first = moment.history.recent().iter().find(|r| r.signature == record.signature);
        Finding {
            detector: self.name().to_owned(),
            count,
            period: 1,
            score: 1.0,
            since: first.map_or(moment.step, |r| r.step),
            tool: Some(tool.to_owned()),
            summary: format!("{short} came back {count} times with {outcome}"),
            evidence: Evidence {
                pattern,
                at: record.ordinal,
                calls: vec![short],
                outcome: Some(outcome.to_owned()),
                ..Evidence::default()
            },
        }
    }
}

/// Whether two calls came back the same.
fn alike(a: &CallRecord, b: &CallRecord) -> bool {
    let failed = |r: &CallRecord| r.outcome.is_some_and(Outcome::failed);
    a.output == b.output && failed(a) == failed(b)
}

/// In how many turns before `turn` these calls were made: parallel calls count once.
fn turns<'a>(records: impl Iterator<Item = &'a CallRecord>, turn: u64) -> u64 {
    let mut seen: Vec<u64> = records.map(|r| r.turn).filter(|t| *t < turn).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len() as u64
}

/// What the user allows this tool, or else the general rule.
fn at_of(general: u64, moment: &Moment<'_>, tool: &str) -> u64 {
    moment.tools.rule(tool).and_then(|rule| rule.max).unwrap_or(general)
}

/// deloop's own messages and refusals are never evidence, and end nothing. A refusal without a word is taken for one.
fn own_words(result: &ResultView<'_>) -> bool {
    match &result.result.output {
        Value::String(text) if !text.is_empty() => text.contains("[deloop]"),
        Value::String(_) | Value::Null => result.record.outcome == Some(Outcome::Denied),
        _ => false,
    }
}

/// Whether a short result says that what was asked about goes on.
fn still_running(result: &ResultView<'_>) -> bool {
    let Some(text) = result.result.output.as_str() else { return false };
    if text.len() > 400 || result.record.outcome.is_some_and(Outcome::failed) || result.record.writes {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    [
        "still running",
        "in progress",
        "in_progress",
        "pending",
        "queued",
        "waiting for",
        "not ready",
        "running…",
        "\"running\"",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

fn outcome_of(record: &CallRecord) -> &'static str {
    match record.outcome {
        _ if !record.answered => "no result",
        Some(Outcome::Timeout) => "a time-out",
        Some(Outcome::Denied) => "a refusal",
        Some(outcome) if outcome.failed() => "the same error",
        _ if record.fruitless != 0 => "the same lack of a result",
        _ => "the same output",
    }
}
