//! What a scan found, as `--json` prints it.

use deloop_types::{Action, Millis};
use schemars::JsonSchema;
use serde::Serialize;

use crate::replay::{Intervention, Spend};
use crate::sessions::Problem;

/// Everything that a scan found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Scan")]
pub(crate) struct ScanReport {
    /// The version of this shape; a new one only when a field changes its meaning or goes.
    pub(crate) version: u32,
    /// The profile that the sessions were judged by.
    pub(crate) profile: String,
    /// Sessions that ended before this were skipped.
    pub(crate) since: Option<String>,
    /// How many files or sessions were skipped because they are older than that.
    pub(crate) older: u64,
    /// These are the example sessions, because none were found.
    pub(crate) examples: bool,
    /// The day on which the price list was made.
    pub(crate) prices: String,
    /// Everything together.
    pub(crate) totals: ScanTotals,
    /// The loops, the costliest first.
    pub(crate) loops: Vec<LoopRow>,
    /// Every session that was read, the latest first.
    pub(crate) sessions: Vec<SessionRow>,
    /// Files that could not be read, or not completely.
    pub(crate) problems: Vec<Problem>,
}

/// Everything together.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct ScanTotals {
    /// Files with a session that counts.
    pub(crate) files: u64,
    /// Plain bytes of these files.
    pub(crate) bytes: u64,
    /// Sessions; a session's subagents may have files of their own.
    pub(crate) sessions: u64,
    /// Sessions with at least one loop.
    pub(crate) sessions_with_loops: u64,
    /// Loops, those that `--top` leaves out included.
    pub(crate) loops: u64,
    /// Turns of all sessions.
    pub(crate) turns: u64,
    /// Turns that repeat in a loop.
    pub(crate) repeated_turns: u64,
    /// How long the repeated turns took.
    pub(crate) minutes: f64,
    /// What all sessions used.
    pub(crate) spend: Spend,
    /// What the repeated turns used.
    pub(crate) loop_spend: Spend,
}

/// One loop.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct LoopRow {
    /// The session's id.
    pub(crate) session: String,
    /// The file it is in.
    pub(crate) file: String,
    /// The format of the file, which is named after the agent that wrote it.
    pub(crate) format: String,
    /// The worker or subagent, if it is not the session's own agent.
    pub(crate) agent: Option<String>,
    /// The model that was used most in the repeated turns, or else in the session.
    pub(crate) model: Option<String>,
    /// The folder the session worked in.
    pub(crate) project: Option<String>,
    /// When the loop began.
    pub(crate) started: Option<String>,
    /// When its last turn was.
    pub(crate) ended: Option<String>,
    /// What repeats and how often, in words.
    pub(crate) pattern: String,
    /// The detector that says most about it.
    pub(crate) detector: String,
    /// Other detectors that found it.
    pub(crate) also: Vec<String>,
    /// The tool concerned, if it is one.
    pub(crate) tool: Option<String>,
    /// How often, the first time included.
    pub(crate) count: u64,
    /// How many calls or turns make up one lap.
    pub(crate) period: u32,
    /// The step at which it begins, from 0.
    pub(crate) step: u32,
    /// Its last step.
    pub(crate) last_step: u32,
    /// The turn at which it begins. Turns are numbered over the whole session, from 1.
    pub(crate) first_turn: u32,
    /// The turn at which it ends.
    pub(crate) last_turn: u32,
    /// How many turns the session has.
    pub(crate) of_turns: u64,
    /// The turns that repeat what was done before. The first time is none of them, and neither is other work in between.
    pub(crate) repeated: Vec<u32>,
    /// The line of the file at which it begins; 0 when the file has no lines.
    pub(crate) line: u32,
    /// The strongest action.
    pub(crate) action: Action,
    /// The rung of the ladder for it.
    pub(crate) level: u32,
    /// Everything that deloop would have done about it, in order.
    pub(crate) actions: Vec<ActionRow>,
    /// How long the repeated turns took.
    pub(crate) minutes: f64,
    /// What the repeated turns used.
    pub(crate) spend: Spend,
    /// The part of it that was used after the turn of deloop's first action.
    pub(crate) spend_after: Spend,
    /// Where the session's row is, and which of its loops this is.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) place: (SessionPlace, usize),
}

/// Something that deloop would have done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ActionRow {
    /// At which step, from 0.
    pub(crate) step: u32,
    /// At which turn, from 1; 0 before the first.
    pub(crate) turn: u32,
    /// What.
    pub(crate) action: Action,
    /// On which rung of the ladder.
    pub(crate) level: u32,
    /// The detector it rests on.
    pub(crate) detector: String,
}

/// Which of the files, and which of its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionPlace {
    pub(crate) file: usize,
    pub(crate) session: usize,
}

/// One session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SessionRow {
    /// Its id.
    pub(crate) session: String,
    /// The file it is in.
    pub(crate) file: String,
    /// The format of the file, which is named after the agent that wrote it.
    pub(crate) format: String,
    /// The model it used most.
    pub(crate) model: Option<String>,
    /// The folder it worked in.
    pub(crate) project: Option<String>,
    /// Its first step's time.
    pub(crate) started: Option<String>,
    /// Its last step's time.
    pub(crate) ended: Option<String>,
    /// Its steps.
    pub(crate) steps: u64,
    /// Its turns.
    pub(crate) turns: u64,
    /// Its tool calls.
    pub(crate) calls: u64,
    /// Its loops.
    pub(crate) loops: u64,
    /// Turns that repeat in one of its loops.
    pub(crate) repeated_turns: u64,
    /// How long these took.
    pub(crate) minutes: f64,
    /// What it used.
    pub(crate) spend: Spend,
    /// What the repeated turns used.
    pub(crate) loop_spend: Spend,
    /// Everything that deloop would have done, in order.
    pub(crate) actions: Vec<ActionRow>,
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) place: SessionPlace,
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) at: Option<Millis>,
}

impl ActionRow {
    pub(crate) fn new(action: &Intervention) -> Self {
        Self {
            step: action.step,
            turn: action.turn,
            action: action.action,
            level: action.level,
            detector: action.detector.clone(),
        }
    }
}

impl LoopRow {
    /// Compares by cost, the costlier first: by dollars, then by turns and tokens, then by place.
    pub(crate) fn costlier(a: &Self, b: &Self) -> std::cmp::Ordering {
        let size = |l: &Self| (l.repeated.len(), l.spend.tokens());
        b.spend
            .usd
            .total_cmp(&a.spend.usd)
            .then_with(|| size(b).cmp(&size(a)))
            .then_with(|| (&a.file, &a.session, a.step).cmp(&(&b.file, &b.session, b.step)))
    }
}
