use deloop_types::{Evidence, Finding, Millis, Origin, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::asked::{Asked, asked};
use crate::fold::speaks_deloop;
use crate::{
    CallRecord, CallView, Detector, Happening, Moment, ResultView, Ring, Size, ToolKind, clean, short_call,
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
    /// How often the same poll may come back the same, when nothing says how long that took.
    polls: u64,
    /// How long it may, in minutes.
    minutes: u64,
    /// From how many different calls of one tool with the same long output on; one more when it is not so long.
    echoes: u64,
    /// From how many identical calls in a row on, when no results are seen at all.
    unseen: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { at: 3, changed: 4, stale: 2, polls: 30, minutes: 60, echoes: 4, unseen: 6 }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// How many calls in a row brought nothing new, and where that began.
    stale: u64,
    since: u64,
    /// The signature of the last of them.
    last: u64,
    /// How often a person asked for a thing to be done.
    #[serde(default)]
    asked: u64,
    /// The poll that is waited with, what it said and since when.
    #[serde(default)]
    poll: Option<(u64, Millis)>,
    /// Calls that were made before, in their short form.
    names: Ring<(u64, String)>,
    /// How many calls there were when the agent's context was last cut.
    #[serde(default)]
    cut: u64,
}

impl Memory {
    /// What was read before the context was cut has to be read again. How things ended counts on.
    fn forgives(&self, record: &CallRecord) -> bool {
        let reads = matches!(record.kind, ToolKind::Read | ToolKind::Search | ToolKind::Page)
            || record.kind == ToolKind::Run && (record.file_operation || record.searches);
        let ended_well = record.fruitless == 0 && !record.outcome.is_some_and(Outcome::failed);
        record.ordinal < self.cut && reads && ended_well && !record.writes && !record.tests
    }
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
                memory.asked = match asked(&user.text) {
                    Some(Asked::Times(n)) => n + 1,
                    Some(Asked::Again) => params.polls,
                    None => 0,
                };
                None
            }
            Happening::Compact => {
                memory.cut = moment.history.calls();
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
        // A refusal says nothing about the call: what came back when it was last made does. Only of a call that
        // was never made, what people said to it is all there is.
        let denied = |r: &CallRecord| r.outcome == Some(Outcome::Denied);
        let came = |r: &&CallRecord| r.answered && r.outcome != Some(Outcome::Cancelled);
        let latest = earlier().find(|r| came(r) && !denied(r));
        let latest = latest.or_else(|| earlier().find(came)).or_else(|| earlier().next())?;
        if !memory.names.iter().any(|(k, _)| *k == key) {
            memory.names.push((key, short_call(&call.call.tool, &call.call.args)), NAMES);
        }
        if record.waits && !latest.outcome.is_some_and(Outcome::failed) {
            return None;
        }
        if !latest.answered {
            return self.unseen(params, moment, record, memory);
        }
        let same = |r: &&CallRecord| alike(r, latest) && r.changes == moment.history.changes();
        // Another outcome in between is news.
        let judged = earlier().filter(|r| came(r) && denied(r) == denied(latest) && !memory.forgives(r));
        let count = turns(judged.take_while(same).chain([latest]), record.turn) + 1;
        let tool_at = at_of(params.at, moment, call.call.tool.as_str()).max(memory.asked);
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
        let count = turns(run, u32::MAX);
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
        // deloop's own words are never evidence, and end nothing.
        let own = speaks_deloop(result.result);
        if own || matches!(record.outcome, Some(Outcome::Running | Outcome::Cancelled)) {
            return None;
        }
        let nothing_moved =
            record.moves && !record.outcome.is_some_and(Outcome::failed) && record.fruitless == 0;
        let earlier = moment.history.recent().iter().filter(|r| r.ordinal < record.ordinal && r.answered);
        let earlier = earlier.filter(|r| !memory.forgives(r));
        let again = |r: &&CallRecord| {
            r.signature == record.signature
                && !nothing_moved
                && (alike(r, record) || record.kind == ToolKind::Write)
        };
        let same: Vec<&CallRecord> = earlier.filter(again).collect();
        if waiting(result) {
            return self.poll(params, moment, record, &same, memory);
        }
        if same.is_empty() && record.outcome == Some(Outcome::Denied) {
            // That a person said no is no progress either.
            return None;
        }
        if same.is_empty() {
            memory.stale = 0;
            return self.echo(params, moment, record);
        }
        if memory.stale == 0 {
            memory.since = record.ordinal;
        }
        memory.stale += 1;
        let unchanged = |r: &&CallRecord| r.changes == record.changes || record.kind == ToolKind::Write;
        let in_vain = turns(same.iter().copied().filter(unchanged), record.turn) + 1;
        let all = turns(same.iter().copied(), record.turn) + 1;
        let at = at_of(params.at, moment, moment.history.tool(record)).max(memory.asked);
        let stuck = memory.stale >= params.stale && (in_vain >= at || all >= params.changed.max(at));
        let finding = stuck.then(|| {
            let mut finding = self.finding(moment, record, memory, all);
            finding.evidence.hard = in_vain >= at && same.iter().all(|r| alike(r, record));
            finding
        });
        memory.last = record.signature.short();
        finding
    }

    /// A poll says that it goes on: that is fine while its budget lasts, in time if that is known.
    fn poll(
        &self,
        params: &Params,
        moment: &Moment<'_>,
        record: &CallRecord,
        same: &[&CallRecord],
        memory: &mut Memory,
    ) -> Option<Finding> {
        let count = turns(same.iter().copied(), record.turn) + 1;
        let most = at_of(params.polls, moment, moment.history.tool(record)).max(memory.asked);
        let what = record.signature.short() ^ record.output;
        let since = memory.poll.filter(|(w, _)| *w == what && count > 1).map(|(_, since)| since);
        memory.poll = since.or(moment.ts).map(|since| (what, since));
        let declared = moment.tools.rule(moment.history.tool(record)).is_some_and(|rule| rule.max.is_some());
        let over = match (since, moment.ts) {
            (Some(since), Some(now)) if !declared => {
                now.since(since) > params.minutes.saturating_mul(60_000) && count > params.at
            }
            _ => count > most,
        };
        over.then(|| self.finding(moment, record, memory, count))
    }

    /// Different calls of one tool, one after the other, that all come back with the same long output.
    fn echo(&self, params: &Params, moment: &Moment<'_>, record: &CallRecord) -> Option<Finding> {
        let needed = match record.size {
            Size::Long => params.echoes,
            Size::Sentence => params.echoes + 1,
            Size::Short => return None,
        };
        if record.writes || record.fruitless != 0 || record.outcome.is_some_and(Outcome::failed) {
            return None;
        }
        let of_tool = |r: &&CallRecord| r.tool == record.tool && r.program == record.program && r.answered;
        let recent = moment.history.recent().iter().rev().filter(|r| r.ordinal < record.ordinal);
        let mut first = record;
        let echoes = recent.filter(of_tool).take_while(|r| alike(r, record) && r.changes == record.changes);
        let count = turns(echoes.inspect(|r| first = r), record.turn) + 1;
        let tool = clean(moment.history.tool(record), 40);
        (count >= needed).then(|| Finding {
            detector: self.name().to_owned(),
            count,
            period: 1,
            score: 0.9,
            since: first.step,
            tool: Some(tool.clone()),
            summary: format!("{count} different calls of {tool} came back with the same output"),
            evidence: Evidence {
                pattern: record.output,
                at: record.ordinal,
                outcome: Some("the same output".to_owned()),
                ..Evidence::default()
            },
        })
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
fn turns<'a>(records: impl Iterator<Item = &'a CallRecord>, turn: u32) -> u64 {
    let mut seen: Vec<u32> = records.map(|r| r.turn).filter(|t| *t < turn).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len() as u64
}

/// What the user allows this tool, or else the general rule.
fn at_of(general: u64, moment: &Moment<'_>, tool: &str) -> u64 {
    moment.tools.rule(tool).and_then(|rule| rule.max).unwrap_or(general)
}

/// Whether a call waits for something, and what came back does not say that this has ended.
fn waiting(result: &ResultView<'_>) -> bool {
    let record = &result.record;
    // A list of things to do says of them that they are pending.
    if record.outcome.is_some_and(Outcome::failed) || record.writes || record.kind == ToolKind::Talk {
        return false;
    }
    let text = result.result.output.as_str().filter(|text| text.len() <= LONGEST_STATE);
    let lower = text.map(str::to_ascii_lowercase).unwrap_or_default();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    says(GOES_ON) || record.waits && !says(IS_OVER)
}

/// Longer results are more than the state of something, in bytes.
const LONGEST_STATE: usize = 1000;

/// What results say of something that goes on, in lower case.
const GOES_ON: &[&str] = &[
    "still running",
    "in progress",
    "in_progress",
    "pending",
    "queued",
    "waiting for",
    "not ready",
    "running…",
    "\"running\"",
    "containercreating",
    "provisioning",
    "initializing",
    "deploying",
    "processing",
];

/// What results of polls say of something that has ended, in lower case.
const IS_OVER: &[&str] = &[
    "failed",
    "failure",
    "\"error\"",
    "completed",
    "succeeded",
    "finished",
    "exited",
    "terminated",
    "cancelled",
    "canceled",
    "unknown process",
    "no such",
    "does not exist",
    "\"done\"",
];

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
