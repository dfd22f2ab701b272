use deloop_types::{ArgumentVariation, Evidence, Finding, Millis, Repeats, RunEvidence};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::counting::{came_back, changed};
use crate::{CallRecord, CallView, Detector, Happening, Moment, Ring, Words, short_call};

/// Finds the same tool called with similar arguments in a row.
pub(crate) struct SimilarCall;

/// Parameters of [`SimilarCall`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SimilarCallParams {
    /// Number of similar calls in a row that make a finding.
    at: u64,
    /// Minimum similarity of the words of the normalized arguments, 0 to 1.
    similarity: f64,
    /// Number of calls kept as evidence.
    window: usize,
}

impl Default for SimilarCallParams {
    fn default() -> Self {
        Self { at: 3, similarity: 0.75, window: 20 }
    }
}

/// Number of the run's actions that are looked up in the history, which holds no more.
const STEPS: usize = 44;

/// The current run. Calls are compared with its first action, so slow drift ends it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SimilarCallMemory {
    tool: String,
    first: String,
    words: Words,
    count: u64,
    since: u64,
    window: Ring<RecordedAction>,
    /// Number of actions so far.
    #[serde(default)]
    actions: u64,
    /// The steps of the run's last actions.
    #[serde(default)]
    steps: Ring<u64>,
    /// Hash of the first action's tool and arguments, and how the later ones differ from it.
    #[serde(default)]
    signature: u64,
    #[serde(default)]
    variation: ArgumentVariation,
}

/// The run that ended a task, in the form the behavioral hook reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoopDetails {
    /// Number of similar actions in a row.
    pub run_length: u64,
    /// The normalized action that the run is compared with.
    pub last_action: String,
    /// The last five actions.
    pub buffer_snapshot: Vec<RecordedAction>,
}

/// One action kept as evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecordedAction {
    /// The tool.
    pub tool_name: String,
    /// The normalized arguments.
    pub normalized_args: String,
    /// The time, in milliseconds since 1970; 0 if neither its step nor the program that runs deloop gave one.
    #[serde(deserialize_with = "time_or_zero")]
    #[cfg_attr(feature = "schema", schemars(with = "i64"))]
    pub timestamp: Millis,
    /// Its index among the actions of the buffer, from 0.
    pub step_index: u64,
}

/// Earlier releases stored null for an unknown time.
fn time_or_zero<'de, D: Deserializer<'de>>(stored: D) -> Result<Millis, D::Error> {
    Ok(Option::<Millis>::deserialize(stored)?.unwrap_or(Millis(0)))
}

impl SimilarCallMemory {
    fn details(&self) -> LoopDetails {
        let skip = self.window.len().saturating_sub(5);
        LoopDetails {
            run_length: self.count,
            last_action: self.first.clone(),
            buffer_snapshot: self.window.iter().skip(skip).cloned().collect(),
        }
    }

    /// Returns what the run's calls before `record` show. Calls that left the history aren't considered.
    fn evidence(&self, moment: &Moment<'_>, record: &CallRecord) -> RunEvidence {
        let history = moment.history;
        let of_step = |r: &CallRecord| self.steps.iter().any(|step| *step == u64::from(r.step));
        let in_run = |r: &&CallRecord| of_step(r) && history.tool(r) == self.tool;
        let run: Vec<&CallRecord> = history.recent().iter().filter(in_run).collect();
        let ended: Vec<&CallRecord> = run.iter().copied().filter(|r| r.ending.tells()).collect();
        RunEvidence {
            outcome: ended.last().and_then(|last| came_back(last, ended.iter().copied())),
            results: ended.len(),
            changed: run.first().and_then(|first| changed(history, first, record)),
            variation: self.variation,
            other_tools: history.tools().iter().filter(|t| t.name != self.tool).count(),
        }
    }

    /// Returns the similarity of the arguments to those of the run's first action, whatever the tool.
    fn similarity(&self, call: &CallView<'_>) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        if self.words.is_empty() && call.words().is_empty() { 1.0 } else { self.words.jaccard(call.words()) }
    }
}

impl Detector for SimilarCall {
    type Params = SimilarCallParams;
    type Memory = SimilarCallMemory;

    fn name(&self) -> &'static str {
        "similar-call"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(SimilarCallParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("similar-call.md")
    }

    fn follows_tasks(&self) -> bool {
        true
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        let Happening::Call(call) = &moment.event else { return None };
        let shown = call.shown_normalised();
        let entry = RecordedAction {
            tool_name: call.call.tool.clone(),
            normalized_args: shown.clone().into_owned(),
            timestamp: moment.arrived.unwrap_or(Millis(0)),
            step_index: memory.actions,
        };
        memory.actions += 1;
        memory.window.push(entry, params.window);
        let score = memory.similarity(call);
        if memory.count > 0 && memory.tool == call.call.tool && score >= params.similarity {
            memory.count += 1;
            let variation = match shown == memory.first {
                true if call.signature.short() == memory.signature => ArgumentVariation::Identical,
                true => ArgumentVariation::Details,
                false => ArgumentVariation::Words,
            };
            memory.variation = memory.variation.max(variation);
        } else {
            memory.tool.clone_from(&call.call.tool);
            memory.first = shown.into_owned();
            memory.words = call.words().clone();
            memory.count = 1;
            memory.since = moment.step;
            (memory.signature, memory.variation) = (call.signature.short(), ArgumentVariation::Identical);
            memory.steps = Ring::default();
        }
        memory.steps.push(moment.step, STEPS);
        (memory.count >= params.at).then(|| {
            let mut found = Finding::new(self.name(), memory.count).by_rule("at");
            found.period = 1;
            found.score = score;
            found.since = memory.since;
            found.tool = Some(memory.tool.clone());
            found.repeats = Repeats::Variants;
            found.calls = vec![short_call(&call.call.tool, &call.call.args)];
            found.pattern = crate::short_hash(memory.first.as_bytes()).into();
            found.evidence = Evidence {
                at: call.record.ordinal.into(),
                details: serde_json::to_value(memory.details()).ok(),
                run: Some(memory.evidence(moment, &call.record)),
                ..Evidence::default()
            };
            found
        })
    }
}
