use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A pattern that a detector saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Which detector saw it.
    pub detector: String,
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
    /// What was seen, in words for people.
    pub summary: String,
    /// What the policy needs and the wire does not show.
    #[serde(skip)]
    #[schemars(skip)]
    pub evidence: Evidence,
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
    /// The repeated calls of one lap in a short, sanitised form.
    pub calls: Vec<String>,
    /// More placeholders for the message.
    pub fields: Vec<(&'static str, String)>,
    /// The run that a task update tells of.
    pub details: Option<crate::LoopDetails>,
    /// Made at a call whose outcome is not known yet: a reason to refuse it, not to tell the agent.
    pub pending: bool,
    /// It is about what the session may use, not about a loop.
    pub budget: bool,
    /// Strong enough for a block or a stop: the same call with the same outcome and nothing changed.
    pub hard: bool,
    /// What is repeated came back each time with this, in words ("exit code 1", "the same output").
    pub outcome: Option<String>,
}
