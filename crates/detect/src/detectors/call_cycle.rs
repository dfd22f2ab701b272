use deloop_types::{Evidence, Finding, Repeats, ShortCall};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallView, Detector, Fingerprint, Happening, Moment, Ring, short_call, short_hash};

/// Finds a sequence of calls repeated back to back.
pub(crate) struct CallCycle;

/// Parameters of [`CallCycle`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CallCycleParams {
    /// Number of laps (rounds of the cycle) that make a finding, including the first.
    laps: u64,
    /// Shortest cycle to look for, in calls.
    shortest: usize,
    /// Longest cycle to look for, in calls; 0 means any that the history can hold `laps` of.
    longest: usize,
}

impl Default for CallCycleParams {
    fn default() -> Self {
        Self { laps: 2, shortest: 1, longest: 0 }
    }
}

impl CallCycleParams {
    fn longest(&self) -> usize {
        let held = WINDOW / usize::try_from(self.laps.max(2)).unwrap_or(WINDOW);
        if self.longest == 0 { held } else { self.longest.min(held) }
    }
}

/// For each period, how many calls in a row equal the call one period before. Costs one comparison per period and
/// call, whatever the number of laps.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct CallCycleMemory {
    runs: Vec<u32>,
    /// The last calls: their signatures and steps.
    calls: Ring<(Fingerprint, u64)>,
    /// Short forms of earlier calls, to describe a cycle.
    names: Ring<(u64, ShortCall)>,
}

const NAMES: usize = 16;
/// Number of calls compared: enough for three laps of a cycle of thirteen.
const WINDOW: usize = 40;

impl Detector for CallCycle {
    type Params = CallCycleParams;
    type Memory = CallCycleMemory;

    fn name(&self) -> &'static str {
        "call-cycle"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(CallCycleParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("call-cycle.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        let Happening::Call(call) = &moment.event else { return None };
        memory.calls.push((call.signature, moment.step), WINDOW);
        let recent = &memory.calls;
        let longest = params.longest();
        let mut again = false;
        for period in 1..=longest.min(recent.len().saturating_sub(1)) {
            if memory.runs.len() < period {
                memory.runs.push(0);
            }
            let same = recent.back(period).is_some_and(|(s, _)| *s == call.signature);
            again |= same;
            let run = &mut memory.runs[period - 1];
            *run = if same { run.saturating_add(1) } else { 0 };
        }
        if again {
            memory.remember(call);
        }
        let laps = |period: usize, run: u32| u64::from(run) / period as u64 + 1;
        let (period, count) = memory
            .runs
            .iter()
            .enumerate()
            .map(|(i, run)| (i + 1, laps(i + 1, *run)))
            .skip(params.shortest.saturating_sub(1))
            .find(|(_, count)| *count >= params.laps.max(2))?;
        let recent = &memory.calls;
        let lap: Vec<Fingerprint> =
            (0..period).rev().filter_map(|back| recent.back(back)).map(|c| c.0).collect();
        let calls: Vec<ShortCall> = lap.iter().map(|call| memory.name(*call)).collect();
        let run = u64::from(memory.runs[period - 1]);
        let first =
            usize::try_from(run).unwrap_or(usize::MAX).saturating_add(period - 1).min(recent.len() - 1);
        Some({
            let mut found = Finding::new(self.name(), count).by_rule("laps");
            found.period = u32::try_from(period).unwrap_or(u32::MAX);
            found.score = 1.0;
            found.since = recent.back(first).map_or(moment.step, |(_, step)| *step);
            found.tool = Some(call.call.tool.clone());
            found.calls = calls;
            found.repeats = Repeats::Cycle;
            found.pattern = pattern_of(lap.into_iter()).into();
            found.evidence = Evidence {
                at: call.record.ordinal.into(),
                without_arguments: is_empty(&call.call.args),
                ..Evidence::default()
            };
            found
        })
    }
}

impl CallCycleMemory {
    fn remember(&mut self, call: &CallView<'_>) {
        let key = call.signature.short();
        if !self.names.iter().any(|(k, _)| *k == key) {
            self.names.push((key, short_call(&call.call.tool, &call.call.args)), NAMES);
        }
    }

    fn name(&self, signature: Fingerprint) -> ShortCall {
        let known = self.names.iter().find(|(k, _)| *k == signature.short());
        known.map_or_else(ShortCall::default, |(_, name)| name.clone())
    }
}

fn is_empty(args: &Value) -> bool {
    match args {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.trim().is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Identifies the set of calls in a lap, wherever the lap begins.
fn pattern_of(signatures: impl Iterator<Item = Fingerprint>) -> u64 {
    let mut set: Vec<u64> = signatures.map(Fingerprint::short).collect();
    set.sort_unstable();
    set.dedup();
    let bytes: Vec<u8> = set.iter().flat_map(|s| s.to_le_bytes()).collect();
    short_hash(&bytes)
}
