#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A pattern that a detector found, as data. The words for people and agents are made from these fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Finding {
    /// Which detector found it.
    pub detector: String,
    /// What repeats.
    #[serde(default)]
    pub repeats: Repeats,
    /// How often, the first time included.
    pub count: u64,
    /// How many calls or turns make up one lap.
    pub period: u32,
    /// How alike the laps are, 0 to 1.
    pub score: f64,
    /// The step at which the pattern began.
    pub since: u64,
    /// The tool concerned, if it is one.
    pub tool: Option<String>,
    /// How it came back each time, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CameBack>,
    /// Whether anything that could change the outcome was changed in between, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// The calls concerned, newest last, shortened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ShortCall>,
    /// What was found, in words for people.
    pub summary: String,
    /// What the policy needs and the wire does not show.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub evidence: Evidence,
}

/// What a [`Finding`] is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Repeats {
    /// The same call.
    #[default]
    Call,
    /// Calls on the same target, whatever their other arguments.
    Target,
    /// Different calls that are alike.
    Variants,
    /// A sequence of calls.
    Cycle,
    /// A failure, whatever the calls.
    Failure,
    /// Nothing in particular: nearly everything brings nothing new.
    Everything,
    /// Test runs that fail.
    Tests,
    /// Shell commands that fail.
    Commands,
    /// An edit that is made again and again.
    Edit,
    /// Searches that find nothing.
    Search,
    /// Turns that say the same.
    Turn,
    /// Turns without a call.
    Talk,
    /// Words within one message.
    Message,
    /// A call that many workers make.
    Swarm,
    /// What the session may use.
    Budget,
}

/// How what repeats came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CameBack {
    /// It failed the same way each time.
    SameFailure,
    /// It failed each time, in different words.
    Failures,
    /// It was refused each time.
    Refused,
    /// It ran into a time limit each time.
    TimedOut,
    /// It brought the same output each time.
    SameOutput,
    /// It found nothing.
    Nothing,
    /// No result was seen.
    Unseen,
}

/// A call in a few safe words: no control characters, no markup, and short.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ShortCall {
    /// The tool.
    pub tool: String,
    /// The argument that says most, shortened; empty when there is none.
    pub about: String,
}

/// What a detector tells the policy beyond what is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// Tells one pattern from another of the same detector.
    pub pattern: u64,
    /// The ordinal of the call or turn at which the finding was made; occurrences are spaced by it.
    pub at: u64,
    /// Which of a rung's message variants fits.
    pub variant: Option<&'static str>,
    /// More placeholders for the message.
    pub fields: Vec<(&'static str, String)>,
    /// The run that a task update tells of.
    pub details: Option<serde_json::Value>,
    /// Made at a call whose outcome is not known yet: a reason to refuse it, not to tell the agent.
    pub pending: bool,
    /// Strong enough for a block or a stop: the same call, in vain or read again at once, and nothing changed.
    pub hard: bool,
}

impl std::fmt::Display for ShortCall {
    /// `tool(about)`, for tables and logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.tool, self.about)
    }
}

impl Finding {
    /// Creates a finding of this detector, seen so often; set the other fields as needed.
    pub fn new(detector: impl Into<String>, count: u64) -> Self {
        Self { detector: detector.into(), count, ..Self::default() }
    }

    /// Whether it is about what the session may use, not about a loop.
    #[must_use]
    pub fn is_budget(&self) -> bool {
        self.repeats == Repeats::Budget
    }
}
