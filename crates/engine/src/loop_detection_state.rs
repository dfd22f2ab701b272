use deloop_detect::Streak;
use deloop_policy::Profile;
use serde::{Deserialize, Serialize};

use crate::session::Agent;

/// What the detectors `repeated-call` and `repeated-target` know of an agent's last calls.
///
/// As JSON its fields are `doomLoopDetected`, `lastTool`, `consecutiveCount`, `threshold`, `fuzzyThreshold` and
/// `lastWarningTime`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopDetectionState {
    /// Whether the last calls are a loop: one of the thresholds is reached.
    pub doom_loop_detected: bool,
    /// The tool of the last call; `None` before the first call.
    pub last_tool: Option<String>,
    /// Number of identical calls in a row, the last one included. In a loop, it is the larger count of the two
    /// detectors.
    pub consecutive_count: u64,
    /// The number of identical calls in a row that is a loop; 0 if the profile doesn't use `repeated-call`.
    pub threshold: u64,
    /// The number of calls with the same target in a row that is a loop; 0 if the profile doesn't use
    /// `repeated-target`.
    pub fuzzy_threshold: u64,
    /// When a loop of this kind last led to a nudge or a block, in milliseconds since 1970: by the step's own time,
    /// else by the clock that the engine was given; 0 if it never did, or if there was neither.
    pub last_warning_time: i64,
}

impl LoopDetectionState {
    /// Returns the state of an agent, which is the default one before its first step; `None` if the profile uses neither of
    /// the two detectors.
    pub(crate) fn of(agent: Option<&Agent>, profile: &Profile) -> Option<Self> {
        let streak = |name: &str| {
            let at = profile.watches.iter().position(|watch| watch.detector.name() == name)?;
            let detector = &profile.watches[at].detector;
            match agent.and_then(|agent| agent.memories.get(at)) {
                Some(memory) => detector.streak(memory),
                None => detector.streak(&detector.fresh()),
            }
        };
        let (exact, fuzzy) = (streak("repeated-call"), streak("repeated-target"));
        let both = [exact, fuzzy].into_iter().flatten();
        let looping = both.clone().filter(|s| s.count >= s.at).map(|s| s.count).max();
        let last = agent.and_then(|agent| Some(agent.history.tool(agent.history.recent().back(0)?)));
        exact.or(fuzzy).map(|first: Streak| Self {
            doom_loop_detected: looping.is_some(),
            last_tool: last.map(str::to_owned),
            consecutive_count: looping.unwrap_or(first.count),
            threshold: exact.map_or(0, |s| s.at),
            fuzzy_threshold: fuzzy.map_or(0, |s| s.at),
            last_warning_time: both.filter_map(|s| s.warned).max().map_or(0, |at| at.0),
        })
    }
}
