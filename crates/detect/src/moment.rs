use std::borrow::Cow;
use std::cell::OnceCell;

use deloop_types::{Call, Millis, ToolResult, Turn, UserText};

use crate::reading::redacted;
use crate::{CallRecord, Fingerprint, History, Ledger, ToolKind, Tools, Words, normalise, target};

/// What a detector looks at: the history up to and including what just happened.
pub struct Moment<'a> {
    /// What is remembered of this agent.
    pub history: &'a History,
    /// What the whole session has used.
    pub ledger: &'a Ledger,
    /// What is known about tools.
    pub tools: &'a Tools,
    /// The step's index in its session.
    pub step: u64,
    /// The step's time, if it has one.
    pub ts: Option<Millis>,
    /// What just happened.
    pub event: Happening<'a>,
}

/// What just happened. A turn with calls is a turn and then, one by one, its calls.
pub enum Happening<'a> {
    /// The model spoke.
    Turn(&'a Turn),
    /// One call of the turn before.
    Call(CallView<'a>),
    /// A call came back.
    Result(ResultView<'a>),
    /// A message to the agent.
    User(&'a UserText),
    /// A request to the model was paid for.
    Usage,
    /// A piece of a message that still streams.
    Chunk(&'a str),
    /// The agent's context was cut.
    Compact,
}

/// A call, with what can be derived from it. Each derived form is made once, when a detector first asks for it.
pub struct CallView<'a> {
    /// The call.
    pub call: &'a Call,
    /// The tool and its arguments.
    pub signature: Fingerprint,
    /// Its entry in the history.
    pub record: CallRecord,
    /// How its swarm stands, if it is in one.
    pub swarm: Option<SwarmCount>,
    normalised: OnceCell<String>,
    words: OnceCell<Words>,
}

/// How often the whole swarm made a call, and how many workers did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwarmCount {
    /// Calls with this structural fingerprint.
    pub calls: u64,
    /// Workers that made them.
    pub workers: u64,
    /// Calls with these very arguments that failed or found nothing.
    pub in_vain: u64,
    /// Workers that made those.
    pub in_vain_workers: u64,
}

/// A result and the call it belongs to.
pub struct ResultView<'a> {
    /// The result.
    pub result: &'a ToolResult,
    /// The call, as it stands in the history now.
    pub record: CallRecord,
}

impl<'a> CallView<'a> {
    /// A call that is already in the history.
    #[must_use]
    pub fn new(
        call: &'a Call,
        signature: Fingerprint,
        record: CallRecord,
        swarm: Option<SwarmCount>,
    ) -> Self {
        Self { call, signature, record, swarm, normalised: OnceCell::new(), words: OnceCell::new() }
    }

    /// What the call is about; see [`target`].
    #[must_use]
    pub fn target(&self) -> Fingerprint {
        target(&self.call.tool, &self.call.args, self.record.kind)
    }

    /// The normalised arguments; see [`normalise`].
    #[must_use]
    pub fn normalised(&self) -> &str {
        self.normalised.get_or_init(|| normalise(&self.call.args))
    }

    /// The normalised arguments without secrets: what may be kept and shown of them.
    #[must_use]
    pub fn shown_normalised(&self) -> Cow<'_, str> {
        match redacted(&self.call.args) {
            Some(args) => Cow::Owned(normalise(&args)),
            None => Cow::Borrowed(self.normalised()),
        }
    }

    /// The words of the normalised arguments.
    #[must_use]
    pub fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of_json(self.normalised()))
    }

    /// Whether the tool is a shell.
    #[must_use]
    pub fn is_shell(&self) -> bool {
        self.record.kind == ToolKind::Run
    }
}
