use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reading::{SimilarityMeasure, TurnContent};
use crate::{Detector, Happening, Moment, Ring};

/// Finds turns in a row that are similar to one of the last few.
pub(crate) struct SimilarTurn;

/// Parameters of [`SimilarTurn`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SimilarTurnParams {
    /// Number of similar turns in a row that make a finding.
    at: u64,
    /// What turns are compared by.
    by: SimilarityMeasure,
    /// Minimum similarity, 0 to 1.
    similarity: f64,
    /// Number of earlier turns that a turn is compared with.
    window: usize,
}

impl Default for SimilarTurnParams {
    fn default() -> Self {
        Self { at: 3, by: SimilarityMeasure::Words, similarity: 0.85, window: 5 }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SimilarTurnMemory {
    /// The latest turn and those it was compared with.
    window: Ring<(u64, TurnContent)>,
    run: SimilarRun,
    /// The run before the latest turn, in case its embedding arrives later.
    before: SimilarRun,
}

/// A run of similar turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct SimilarRun {
    similar: u64,
    since: u64,
}

impl SimilarRun {
    /// Returns the run after a turn whose nearest neighbour is at step `nearest`.
    fn after(self, is_similar: bool, nearest: u64) -> Self {
        match (is_similar, self.similar) {
            (false, _) => Self::default(),
            (true, 0) => Self { similar: 1, since: nearest },
            (true, similar) => Self { similar: similar + 1, ..self },
        }
    }
}

impl SimilarTurnMemory {
    /// Compares the latest turn with the `window` turns before it. Returns the highest similarity.
    fn judge(&mut self, params: &SimilarTurnParams) -> f64 {
        let Some((step, latest)) = self.window.back(0) else { return 0.0 };
        let earlier = (1..=params.window).filter_map(|back| self.window.back(back));
        let (score, nearest) = earlier
            .map(|(step, content)| (content.similarity(latest), *step))
            .fold((0.0_f64, *step), |best, next| if next.0 >= best.0 { next } else { best });
        self.run = self.before.after(score >= params.similarity, nearest);
        score
    }
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
        let score = match &moment.event {
            Happening::Turn(turn) => {
                let content = TurnContent::of(turn, params.by)?;
                memory.window.push((moment.step, content), params.window + 1);
                memory.before = memory.run;
                memory.judge(params)
            }
            Happening::Embedding(late) if params.by == SimilarityMeasure::Embeddings => {
                let turn = (0..=params.window)
                    .find(|back| memory.window.back(*back).is_some_and(|(step, _)| *step == late.step))?;
                memory.window.back_mut(turn)?.1.embed(&late.vector);
                let known = memory.run;
                // Only the latest turn can be judged again: later ones have been counted.
                let score = if turn == 0 { memory.judge(params) } else { return None };
                if memory.run == known {
                    return None;
                }
                score
            }
            _ => return None,
        };
        let SimilarRun { similar, since } = memory.run;
        (similar >= params.at).then(|| {
            let mut found = Finding::new(self.name(), similar).by_rule("at");
            found.period = 1;
            found.score = score;
            found.since = since;
            found.repeats = Repeats::Turn;
            found.evidence = Evidence { at: moment.history.turns(), ..Evidence::default() };
            found
        })
    }
}
