#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What deloop does about a step, from weakest to strongest.
///
/// ```
/// use deloop_types::Action;
/// assert!(Action::Stop > Action::Nudge);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Do nothing.
    #[default]
    Continue,
    /// Notify people, but not the agent.
    Warn,
    /// Send the agent a message.
    Nudge,
    /// Ask a person to approve the calls.
    Ask,
    /// Refuse the calls, with the message as the reason.
    Block,
    /// End the run.
    Stop,
}

impl Action {
    /// All actions, weakest first.
    pub const ALL: [Self; 6] = [Self::Continue, Self::Warn, Self::Nudge, Self::Ask, Self::Block, Self::Stop];

    /// Returns the name used in JSON.
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

/// The upper limit on what deloop does, whatever the profile says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Decide and record, but don't act: the action is `continue` and `would` holds the decision.
    Shadow,
    /// Nudge at most; `would` holds what was capped.
    Nudge,
    /// Carry out everything the profile decides.
    #[default]
    Enforce,
}

impl Mode {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::Nudge => "nudge",
            Self::Enforce => "enforce",
        }
    }

    /// Returns the strongest action that this mode allows.
    #[must_use]
    pub fn cap(self) -> Action {
        match self {
            Self::Shadow => Action::Continue,
            Self::Nudge => Action::Nudge,
            Self::Enforce => Action::Stop,
        }
    }
}

/// The places where a caller can put a message for the agent.
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

/// The role under which a message is added to the conversation.
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
    /// Text appended to the result of the tool call.
    Tool,
}
