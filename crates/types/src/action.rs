#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What deloop does about a step, weakest first: a later one outranks an earlier one.
///
/// ```
/// use deloop_types::Action;
/// assert!(Action::Stop > Action::Nudge);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Nothing is done.
    #[default]
    Continue,
    /// People are told, the agent is not.
    Warn,
    /// The agent is given a message.
    Nudge,
    /// A person decides about the calls.
    Ask,
    /// The calls are refused, with the message as the reason.
    Block,
    /// The run ends.
    Stop,
}

impl Action {
    /// Every action, weakest first.
    pub const ALL: [Self; 6] = [Self::Continue, Self::Warn, Self::Nudge, Self::Ask, Self::Block, Self::Stop];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Warn => "warn",
            Self::Nudge => "nudge",
            Self::Ask => "ask",
            Self::Block => "block",
            Self::Stop => "stop",
        }
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far deloop may go, whatever a profile asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Decide and record, do nothing: the action is `continue` and `would` holds the decision.
    Shadow,
    /// Nudge at most; `would` holds what was capped.
    Nudge,
    /// Do what the profile says.
    #[default]
    Enforce,
}

impl Mode {
    /// The strongest action this mode lets through.
    #[must_use]
    pub fn cap(self) -> Action {
        match self {
            Self::Shadow => Action::Continue,
            Self::Nudge => Action::Nudge,
            Self::Enforce => Action::Stop,
        }
    }
}

/// The places where a caller can put a message to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// Anywhere.
    pub const ALL: Self = Self(u8::MAX);

    /// Returns whether a message can be put there.
    #[must_use]
    pub fn contains(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }
}

impl Default for Roles {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |set, role| set | 1 << role as u8))
    }
}

/// In whose name a message is put into the conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// A user message: the model sees it on its next turn.
    #[default]
    User,
    /// A system message.
    System,
    /// A developer message, where the API has one.
    Developer,
    /// Appended to the result of the tool call.
    Tool,
}
