#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A pattern that a detector found, as data. Messages for people and agents are built from these fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Finding {
    /// The detector that found it.
    pub detector: String,
    /// The rule of the detector that found it, named after the parameter that is its threshold: `at`, `despite`. Empty if
    /// the detector has one rule without a parameter.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// The value of that parameter, if it is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<serde_json::Number>,
    /// Identifies the pattern among those of the same detector. On the wire, 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "PatternId::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub pattern: PatternId,
    /// What repeats.
    #[serde(default)]
    pub repeats: Repeats,
    /// Number of occurrences, including the first.
    pub count: u64,
    /// Number of calls or turns in one cycle.
    pub period: u32,
    /// How similar the cycles are, 0 to 1.
    pub score: f64,
    /// The step where the pattern began.
    pub since: u64,
    /// The tool involved, if there is one.
    pub tool: Option<String>,
    /// How the calls ended each time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CameBack>,
    /// Whether anything that could affect the outcome changed in between, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// The steps of the calls that it counts, oldest first, as far as the session remembers them. Empty if it counts turns or
    /// rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<u64>,
    /// The calls involved, newest last, shortened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ShortCall>,
    /// A summary for people.
    pub summary: String,
    /// Data for the policy that isn't serialized.
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
    /// Different but similar calls.
    Variants,
    /// A sequence of calls.
    Cycle,
    /// A failure, whatever the calls are.
    Failure,
    /// Nothing in particular: almost no call brings anything new.
    Everything,
    /// Failing test runs.
    Tests,
    /// Failing shell commands.
    Commands,
    /// The same edit, made repeatedly.
    Edit,
    /// Searches that find nothing.
    Search,
    /// Turns with the same content.
    Turn,
    /// Turns without a call.
    Talk,
    /// Turns with neither text nor a call.
    EmptyTurn,
    /// Notes that the agent makes for itself, such as thoughts.
    Note,
    /// Sentences within one message.
    Message,
    /// A call that many workers of a swarm make.
    Swarm,
    /// Edits of the same file, without test progress in between.
    File,
    /// Changes of the same test file, with no passing test run in between.
    TestFile,
    /// Rewrites of the same section of a plan.
    PlanSection,
    /// Calls for the same task, without its completion.
    Task,
    /// Rounds between compactions that bring nothing new.
    Compaction,
    /// Automatic requests to continue that bring nothing new.
    Request,
    /// Subagents that start subagents.
    Spawns,
    /// The same task, given to a subagent again.
    SpawnedTask,
    /// A failure that other sessions of the project, or other subagents of the session, met before.
    KnownFailure,
    /// Money spent while nothing new came.
    IdleSpend,
    /// Looks at something that the agent waits for.
    Wait,
    /// The session's budget.
    Budget,
}

/// How repeated calls ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CameBack {
    /// Failed the same way each time.
    SameFailure,
    /// Failed each time with the same kind of error, in other words.
    SimilarFailure,
    /// Failed each time, with different errors.
    Failures,
    /// Refused each time.
    Refused,
    /// Timed out each time.
    TimedOut,
    /// Returned the same output each time.
    SameOutput,
    /// Found nothing.
    Nothing,
    /// No result was recorded.
    Unseen,
}

/// A call, shortened and sanitized: no control characters and no markup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ShortCall {
    /// The tool.
    pub tool: String,
    /// The most telling argument, shortened; empty when there is none.
    pub about: String,
}

/// Data that a detector passes to the policy and that isn't serialized.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// The index of the call or turn that led to the finding; used to measure the distance between occurrences.
    pub at: u64,
    /// The message variant of the rung to use.
    pub variant: Option<&'static str>,
    /// Additional placeholders for the message.
    pub fields: Vec<(&'static str, String)>,
    /// Details for a task update.
    pub details: Option<serde_json::Value>,
    /// Set when the call's outcome isn't known yet: a reason to refuse the call, not to message the agent.
    pub pending: bool,
    /// Set when the evidence is strong enough to block or stop: the same call failed, was refused or returned the same
    /// output at once, and nothing changed in between.
    pub hard: bool,
    /// How serious it is, for ladders with `by = "severity"`; 0 when the detector doesn't say.
    pub severity: u64,
    /// What the calls of a run show about its cause, if the detector counts a run.
    pub run: Option<RunEvidence>,
    /// Set when the pattern consists of rounds that may take many turns each, or none, and is found once a round. Nothing
    /// it does can be refused, so a person is warned instead of asked.
    pub rounds: bool,
    /// The message of its rung, if its ladder puts that before the message of a stronger finding.
    pub message: Option<String>,
    /// Set when the last call has no arguments, so that it can't be made with others.
    pub without_arguments: bool,
    /// Set when the profile gives the detector no ladder: the finding is listed, and no decision rests on it.
    pub advisory: bool,
}

/// What the calls of a run have in common, as far as the session shows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunEvidence {
    /// How the calls came back; `None` when they succeeded with different outputs, or without results.
    pub outcome: Option<CameBack>,
    /// Number of calls whose results were reported.
    pub results: usize,
    /// Whether anything was changed in between, if known.
    pub changed: Option<bool>,
    /// How their arguments differed.
    pub variation: ArgumentVariation,
    /// Number of other tools that the session used.
    pub other_tools: usize,
}

/// How the arguments of similar calls differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ArgumentVariation {
    /// Not at all.
    #[default]
    Identical,
    /// Only in what normalizing ignores: numbers, ids, times, folders and letter case.
    Details,
    /// In words.
    Words,
}

/// Tells a pattern from others of the same detector. Zero is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PatternId(pub u64);

impl PatternId {
    /// Returns whether nothing tells the patterns of the detector apart.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0 == 0
    }
}

impl From<u64> for PatternId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl std::fmt::Display for PatternId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for PatternId {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        ser.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PatternId {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(de)? {
            // How journals had it before it was on the wire.
            serde_json::Value::Number(number) => number.as_u64().map(Self),
            serde_json::Value::String(digits) => u64::from_str_radix(&digits, 16).ok().map(Self),
            _ => None,
        }
        .ok_or_else(|| D::Error::custom("a pattern has up to 16 hexadecimal digits"))
    }
}

impl std::fmt::Display for ShortCall {
    /// `tool(about)`, for tables and logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.tool, self.about)
    }
}

impl Finding {
    /// Creates a finding of this detector with this count; set the other fields as needed.
    pub fn new(detector: impl Into<String>, count: u64) -> Self {
        Self { detector: detector.into(), count, ..Self::default() }
    }

    /// Sets the rule, by the name of the parameter that is its threshold.
    #[must_use]
    pub fn by_rule(mut self, rule: &str) -> Self {
        rule.clone_into(&mut self.rule);
        self
    }

    /// Returns whether the finding is about the session's budget, not about a loop.
    #[must_use]
    pub fn is_budget(&self) -> bool {
        self.repeats == Repeats::Budget
    }
}
