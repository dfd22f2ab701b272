use deloop_types::{Evidence, Finding, LoopDetails, Repeats, Snapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallView, Detector, Happening, Moment, Ring, Words, short_call};

/// The same tool with nearly the same arguments, in a row.
pub(crate) struct SimilarCall;

/// How [`SimilarCall`] is tuned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// From how many similar calls in a row on it is a finding.
    at: u64,
    /// How alike the words of the normalised arguments must be, 0 to 1.
    similarity: f64,
    /// How many calls are kept as evidence.
    window: usize,
}

impl Default for Params {
    fn default() -> Self {
        Self { at: 3, similarity: 0.75, window: 20 }
    }
}

/// The run is measured against its first action, so that slow drift ends it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    tool: String,
    first: String,
    words: Words,
    count: u64,
    since: u64,
    window: Ring<Snapshot>,
}

impl Memory {
    fn similarity(&self, call: &CallView<'_>) -> f64 {
        if self.count == 0 || self.tool != call.call.tool {
            return 0.0;
        }
        if self.words.is_empty() && call.words().is_empty() { 1.0 } else { self.words.jaccard(call.words()) }
    }
}

impl Detector for SimilarCall {
    type Params = Params;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "similar-call"
    }

    fn page(&self) -> &'static str {
        include_str!("similar-call.md")
    }

    fn look(&self, params: &Params, moment: &Moment<'_>, memory: &mut Memory) -> Option<Finding> {
        let Happening::Call(call) = &moment.event else { return None };
        let shown = call.shown_normalised();
        let entry = Snapshot {
            tool_name: call.call.tool.clone(),
            normalized_args: shown.clone().into_owned(),
            timestamp: moment.ts,
            step_index: moment.step,
        };
        memory.window.push(entry, params.window);
        let score = memory.similarity(call);
        if memory.count > 0 && memory.tool == call.call.tool && score >= params.similarity {
            memory.count += 1;
        } else {
            memory.tool.clone_from(&call.call.tool);
            memory.first = shown.into_owned();
            memory.words = call.words().clone();
            memory.count = 1;
            memory.since = moment.step;
        }
        (memory.count >= params.at).then(|| Finding {
            detector: self.name().to_owned(),
            count: memory.count,
            period: 1,
            score,
            since: memory.since,
            tool: Some(memory.tool.clone()),
            repeats: Repeats::Variants,
            calls: vec![short_call(&call.call.tool, &call.call.args)],
            evidence: Evidence {
                pattern: crate::short_hash(memory.first.as_bytes()),
                at: call.record.ordinal.into(),
                details: Some(LoopDetails {
                    run_length: memory.count,
                    last_action: memory.first.clone(),
                    buffer_snapshot: {
                        let skip = memory.window.len().saturating_sub(5);
                        memory.window.iter().skip(skip).cloned().collect()
                    },
                }),
                ..Evidence::default()
            },
            ..Finding::default()
        })
    }
}
