use deloop_types::{Mode, Roles};

/// The mode, and what the caller can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The mode that caps decisions.
    pub mode: Mode,
    /// Whether a person is there to answer questions. Without one, deloop blocks calls instead of asking.
    pub attended: bool,
    /// Where the caller can put a message for the agent. A nudge's `role` is one of these.
    pub roles: Roles,
    /// Whether a limit that is reached is enforced in mode `nudge`, too. A limit is what the user set, not a judgement
    /// about the agent.
    pub limits_hold: bool,
    /// Whether the caller can take steps out of the conversation. A decision then has a `rollback` when the agent ignored
    /// two nudges.
    pub rollback: bool,
    /// Whether a stop outlasts what the caller sends: a person's message, an intervention and an end don't lift it.
    pub keeps_stops: bool,
}

impl Options {
    /// Creates options with this mode, for an attended or unattended run.
    #[must_use]
    pub fn new(mode: Mode, attended: bool) -> Self {
        Self {
            mode,
            attended,
            roles: Roles::default(),
            limits_hold: false,
            rollback: false,
            keeps_stops: false,
        }
    }

    /// Enforces limits that are reached in mode `nudge`, too.
    #[must_use]
    pub fn with_limits_held(mut self) -> Self {
        self.limits_hold = true;
        self
    }

    /// Limits where messages can be put.
    #[must_use]
    pub fn with_roles(mut self, roles: Roles) -> Self {
        self.roles = roles;
        self
    }

    /// Says that the caller can take steps out of the conversation, as [`rollback`](deloop_types::Decision::rollback) asks for.
    #[must_use]
    pub fn with_rollback(mut self) -> Self {
        self.rollback = true;
        self
    }

    /// Keeps stops until something other than a step lifts them. Use it for callers that may not speak for a person.
    #[must_use]
    pub fn with_stops_kept(mut self) -> Self {
        self.keeps_stops = true;
        self
    }
}
