use deloop_types::{Evidence, Finding, Repeats, Turn};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Detector, Fingerprint, Happening, Moment, Ring, write_canonical};

/// Finds a turn that is identical to one of the last few.
pub(crate) struct DuplicateTurn;

/// Parameters of [`DuplicateTurn`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DuplicateTurnParams {
    /// Number of earlier turns that a turn is compared with.
    window: usize,
    /// Number of parts of a turn (its text and each of its calls) that are compared.
    parts: usize,
}

impl Default for DuplicateTurnParams {
    fn default() -> Self {
        Self { window: 20, parts: 64 }
    }
}

impl Detector for DuplicateTurn {
    type Params = DuplicateTurnParams;
    type Memory = Ring<(u64, u64)>;

    fn name(&self) -> &'static str {
        "duplicate-turn"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(DuplicateTurnParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("duplicate-turn.md")
    }

    fn reads_words(&self) -> bool {
        true
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, window: &mut Self::Memory) -> Option<Finding> {
        let Happening::Turn(turn) = &moment.event else { return None };
        let hash = hash_of(turn, params.parts)?;
        let before: Vec<u64> = window.iter().filter(|(h, _)| *h == hash).map(|(_, step)| *step).collect();
        window.push((hash, moment.step), params.window);
        let since = *before.first()?;
        let count = before.len() as u64 + 1;
        Some({
            let mut found = Finding::new(self.name(), count);
            found.period = 1;
            found.score = 1.0;
            found.since = since;
            found.tool = turn.calls.first().map(|c| c.tool.clone());
            found.repeats = Repeats::Turn;
            found.pattern = hash.into();
            found.evidence = Evidence { at: moment.history.turns(), ..Evidence::default() };
            found
        })
    }
}

fn hash_of(turn: &Turn, parts: usize) -> Option<u64> {
    let mut text = String::new();
    text.push_str(turn.said().unwrap_or_default());
    if text.is_empty() && turn.calls.is_empty() {
        return None;
    }
    for call in turn.calls.iter().take(parts.saturating_sub(1)) {
        text.push('\0');
        text.push_str(&call.tool);
        text.push('\0');
        write_canonical(&call.args, &mut text);
    }
    Some(Fingerprint::of_bytes(text.as_bytes()).short())
}
