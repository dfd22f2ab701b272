use std::borrow::Cow;
use std::cell::OnceCell;

use deloop_types::{Call, Millis, ToolResult, Turn, TurnEmbedding, UserText};

use crate::reading::redacted;
use crate::{
    CallRecord, FailureView, Fingerprint, History, Ledger, SpawnView, ToolKind, Tools, Words, failed_tests,
    normalise, target, test_verdict,
};

/// The input of a detector: the history up to and including what just happened.
pub struct Moment<'a> {
    /// The agent's history.
    pub history: &'a History,
    /// The usage of the whole session.
    pub ledger: &'a Ledger,
    /// Tool kinds and word lists.
    pub tools: &'a Tools,
    /// The step's index in its session.
    pub step: u64,
    /// The step's time, if it has one.
    pub ts: Option<Millis>,
    /// The step's time, or when it arrived; `None` if neither is known.
    pub arrived: Option<Millis>,
    /// The task that the step belongs to, if it names one.
    pub task: Option<&'a str>,
    /// The failures that other sessions of the project, or other agents of the session, met.
    pub failures: FailureView<'a>,
    /// What just happened.
    pub event: Happening<'a>,
}

/// What just happened. A turn with calls comes as a turn, followed by its calls one by one.
pub enum Happening<'a> {
    /// A turn of the model.
    Turn(&'a Turn),
    /// A call of the preceding turn.
    Call(CallView<'a>),
    /// The result of a call.
    Result(ResultView<'a>),
    /// A message to the agent.
    User(&'a UserText),
    /// The usage of a request to the model.
    Usage,
    /// A piece of a message that is still streaming.
    Chunk(&'a str),
    /// The agent's context was cut.
    Compact,
    /// The embedding of an earlier turn.
    Embedding(&'a TurnEmbedding),
}

/// A call with its derived forms. Each form is computed once, when a detector first needs it.
pub struct CallView<'a> {
    /// The call.
    pub call: &'a Call,
    /// The tool and its arguments.
    pub signature: Fingerprint,
    /// Its entry in the history.
    pub record: CallRecord,
    /// The swarm's tallies, if the session is in one.
    pub swarm: Option<SwarmCount>,
    /// Its place among the session's subagents, if it starts one.
    pub spawn: Option<SpawnView>,
    normalised: OnceCell<String>,
    words: OnceCell<Words>,
}

/// How often the whole swarm made a call, and how many workers did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwarmCount {
    /// Number of calls with this structural fingerprint.
    pub calls: u64,
    /// Number of workers that made them.
    pub workers: u64,
    /// Number of calls with exactly these arguments that failed or found nothing.
    pub in_vain: u64,
    /// Number of workers that made those.
    pub in_vain_workers: u64,
}

/// A result and the call it belongs to.
pub struct ResultView<'a> {
    /// The result.
    pub result: &'a ToolResult,
    /// The call's current entry in the history.
    pub record: CallRecord,
    verdict: OnceCell<Option<bool>>,
    failed: OnceCell<Option<u64>>,
}

impl<'a> ResultView<'a> {
    /// Creates a view of a result that is already in the history.
    #[must_use]
    pub fn new(result: &'a ToolResult, record: CallRecord) -> Self {
        Self { result, record, verdict: OnceCell::new(), failed: OnceCell::new() }
    }

    /// Returns whether the output says that all tests passed; see [`test_verdict`]. Read once for all detectors.
    #[must_use]
    pub fn test_verdict(&self) -> Option<bool> {
        *self.verdict.get_or_init(|| self.result.output.as_str().and_then(test_verdict))
    }

    /// Returns the number of failed tests that the output gives; see [`failed_tests`]. Read once for all detectors.
    #[must_use]
    pub fn failed_tests(&self) -> Option<u64> {
        *self.failed.get_or_init(|| self.result.output.as_str().and_then(failed_tests))
    }
}

impl<'a> CallView<'a> {
    /// Creates a view of a call that is already in the history.
    #[must_use]
    pub fn new(
        call: &'a Call,
        signature: Fingerprint,
        record: CallRecord,
        swarm: Option<SwarmCount>,
        spawn: Option<SpawnView>,
    ) -> Self {
        Self { call, signature, record, swarm, spawn, normalised: OnceCell::new(), words: OnceCell::new() }
    }

    /// Returns the target of the call; see [`target`].
    #[must_use]
    pub fn target(&self) -> Fingerprint {
        target(&self.call.tool, &self.call.args, self.record.kind)
    }

    /// Returns the normalized arguments; see [`normalise`].
    #[must_use]
    pub fn normalised(&self) -> &str {
        self.normalised.get_or_init(|| normalise(&self.call.args))
    }

    /// Returns the normalized arguments without secrets, for storing and display.
    #[must_use]
    pub fn shown_normalised(&self) -> Cow<'_, str> {
        match redacted(&self.call.args) {
            Some(args) => Cow::Owned(normalise(&args)),
            None => Cow::Borrowed(self.normalised()),
        }
    }

    /// Returns the words of the normalized arguments.
    #[must_use]
    pub fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of_json(self.normalised()))
    }

    /// Returns whether the tool is a shell.
    #[must_use]
    pub fn is_shell(&self) -> bool {
        self.record.kind == ToolKind::Run
    }
}
