use deloop_types::Action;
use serde::Serialize;

use crate::{LadderState, Profile, RungUnit, Watch};

/// The rung of a ladder that an agent has reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReachedRung {
    /// The detector.
    pub detector: String,
    /// The rung, from 1.
    pub level: u32,
    /// Number of rungs of the ladder.
    pub rungs: usize,
    /// The rung's action.
    pub action: Action,
    /// The rung's name, if the profile sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rung: Option<String>,
}

impl ReachedRung {
    /// Returns the rung that this count reaches on a detector's ladder.
    #[must_use]
    pub fn at_count(watch: &Watch, count: u64) -> Option<Self> {
        watch.ladder.reach(count).and_then(|(level, _)| Self::at_level(watch, level))
    }

    fn at_level(watch: &Watch, level: u32) -> Option<Self> {
        let rung = watch.ladder.rungs.get(level.checked_sub(1)? as usize)?;
        Some(Self {
            detector: watch.detector.name().to_owned(),
            level,
            rungs: watch.ladder.rungs.len(),
            action: rung.action,
            rung: rung.name.clone(),
        })
    }
}

impl LadderState {
    /// Returns the rungs of the current episodes and of the patterns that still count.
    #[must_use]
    pub fn reached(&self, profile: &Profile) -> Vec<ReachedRung> {
        let watch = |number: u16| profile.watches.get(usize::from(number));
        let episodes = self.episodes.iter().filter_map(|e| ReachedRung::at_level(watch(e.watch)?, e.rung));
        let occurrences = self.occurrences.iter().filter_map(|occurrence| {
            let watch = watch(occurrence.watch).filter(|w| w.ladder.by == RungUnit::Occurrence)?;
            ReachedRung::at_count(watch, occurrence.count())
        });
        episodes.chain(occurrences).collect()
    }
}
