use deloop_types::{Evidence, Finding, Repeats, Turn};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Detector, Happening, Moment, Ring, Words, write_canonical};

/// Finds turns in a row that are similar to one of the last few.
pub(crate) struct SimilarTurn;

/// Parameters of [`SimilarTurn`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SimilarTurnParams {
    /// Number of similar turns in a row that make a finding.
    at: u64,
    /// Minimum similarity of the words, 0 to 1.
    similarity: f64,
    /// Number of earlier turns that a turn is compared with.
    window: usize,
}

impl Default for SimilarTurnParams {
    fn default() -> Self {
        Self { at: 3, similarity: 0.85, window: 5 }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SimilarTurnMemory {
    window: Ring<(u64, Words)>,
    similar: u64,
    since: u64,
}

impl Detector for SimilarTurn {
    type Params = SimilarTurnParams;
    type Memory = SimilarTurnMemory;

    fn name(&self) -> &'static str {
        "similar-turn"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(SimilarTurnParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("similar-turn.md")
    }

    fn reads_words(&self) -> bool {
        true
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        let Happening::Turn(turn) = &moment.event else { return None };
        let words = Words::of_text(&content(turn)?);
        let (score, nearest) = memory
            .window
            .iter()
            .map(|(step, before)| (before.jaccard(&words), *step))
            .fold((0.0_f64, moment.step), |best, next| if next.0 > best.0 { next } else { best });
        memory.window.push((moment.step, words), params.window);
        if score >= params.similarity {
            if memory.similar == 0 {
                memory.since = nearest;
            }
            memory.similar += 1;
        } else {
            memory.similar = 0;
        }
        (memory.similar >= params.at).then(|| {
            let mut found = Finding::new(self.name(), memory.similar);
            found.period = 1;
            found.score = score;
            found.since = memory.since;
            found.repeats = Repeats::Turn;
            found.evidence = Evidence { at: moment.history.turns(), ..Evidence::default() };
            found
        })
    }
}

/// Returns the text of a turn, or its calls if it has no text.
fn content(turn: &Turn) -> Option<std::borrow::Cow<'_, str>> {
    if let Some(text) = turn.said() {
        return Some(text.into());
    }
    let mut text = String::new();
    for call in &turn.calls {
        text.push_str(&call.tool);
        text.push(' ');
        write_canonical(&call.args, &mut text);
        text.push('\n');
    }
    (!text.is_empty()).then(|| text.into())
}
