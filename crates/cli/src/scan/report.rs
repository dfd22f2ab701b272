//! The result of a scan, as printed by `--json`.

use deloop_types::{Action, Millis};
use schemars::JsonSchema;
use serde::Serialize;

use crate::replay::{Intervention, Spend};
use crate::sessions::Problem;

/// The result of a scan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Scan")]
pub(crate) struct ScanReport {
    /// Version of this format. It changes only when a field is removed or changes its meaning.
    pub(crate) version: u32,
    /// The profile used to judge the sessions.
    pub(crate) profile: String,
    /// Sessions that ended before this time were skipped.
    pub(crate) since: Option<String>,
    /// Number of files or sessions skipped because they are older than that.
    pub(crate) older: u64,
    /// Whether these are the example sessions, because no others were found.
    pub(crate) examples: bool,
    /// Date of the price list.
    pub(crate) prices: String,
    /// The totals.
    pub(crate) totals: ScanTotals,
    /// The loops, most expensive first.
    pub(crate) loops: Vec<LoopRow>,
    /// Every session that was read, latest first.
    pub(crate) sessions: Vec<SessionRow>,
    /// Files that couldn't be read, or not completely.
    pub(crate) problems: Vec<Problem>,
}

/// The totals.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct ScanTotals {
    /// Number of files with a session that counts.
    pub(crate) files: u64,
    /// Uncompressed size of these files, in bytes.
    pub(crate) bytes: u64,
    /// Number of files of which nothing was read. Folders also contain files that aren't sessions: only if nothing else
    /// was read are these problems.
    pub(crate) unread_files: u64,
    /// Number of sessions. A session's subagents may have files of their own.
    pub(crate) sessions: u64,
    /// Number of sessions with at least one loop.
    pub(crate) sessions_with_loops: u64,
    /// Number of loops, including those that `--top` leaves out.
    pub(crate) loops: u64,
    /// Number of turns in all sessions.
    pub(crate) turns: u64,
    /// Number of turns that repeat in a loop.
    pub(crate) repeated_turns: u64,
    /// Duration of the repeated turns.
    pub(crate) minutes: f64,
    /// Usage of all sessions.
    pub(crate) spend: Spend,
    /// Usage of the repeated turns.
    pub(crate) loop_spend: Spend,
    /// The models without a price, those with the most tokens first.
    pub(crate) unpriced_models: Vec<String>,
}

/// One loop.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct LoopRow {
    /// The session's id.
    pub(crate) session: String,
    /// The session's file.
    pub(crate) file: String,
    /// The file's format, named after the agent that wrote it.
    pub(crate) format: String,
    /// The worker or subagent, unless it is the session's main agent.
    pub(crate) agent: Option<String>,
    /// The model used most in the repeated turns, or else in the session.
    pub(crate) model: Option<String>,
    /// The folder the session worked in.
    pub(crate) project: Option<String>,
    /// When the loop began.
    pub(crate) started: Option<String>,
    /// When its last turn happened.
    pub(crate) ended: Option<String>,
    /// A summary: what repeats and how often.
    pub(crate) pattern: String,
    /// The detector that describes the loop best.
    pub(crate) detector: String,
    /// Other detectors that found it.
    pub(crate) also: Vec<String>,
    /// The tool involved, if there is one.
    pub(crate) tool: Option<String>,
    /// Number of occurrences, including the first.
    pub(crate) count: u64,
    /// Number of calls or turns in one cycle.
    pub(crate) period: u32,
    /// The step where it begins, from 0.
    pub(crate) step: u32,
    /// Its last step.
    pub(crate) last_step: u32,
    /// The turn where it begins. Turns are numbered across the whole session, from 1.
    pub(crate) first_turn: u32,
    /// The turn where it ends.
    pub(crate) last_turn: u32,
    /// Number of turns in the session.
    pub(crate) of_turns: u64,
    /// The turns that repeat earlier work. Excludes the first occurrence and other work in between.
    pub(crate) repeated: Vec<u32>,
    /// The line of the file where it begins; 0 when the file has no lines.
    pub(crate) line: u32,
    /// The strongest action.
    pub(crate) action: Action,
    /// The rung of the ladder for that action.
    pub(crate) level: u32,
    /// Everything deloop would have done about it, in order.
    pub(crate) actions: Vec<ActionRow>,
    /// Duration of the repeated turns.
    pub(crate) minutes: f64,
    /// Usage of the repeated turns.
    pub(crate) spend: Spend,
    /// The part of that usage after the turn of deloop's first action.
    pub(crate) spend_after: Spend,
    /// The session's row, and the loop's index in it.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) place: (SessionPlace, usize),
}

/// An action that deloop would have taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ActionRow {
    /// The step, from 0.
    pub(crate) step: u32,
    /// The turn, from 1; 0 before the first.
    pub(crate) turn: u32,
    /// The action.
    pub(crate) action: Action,
    /// The rung of the ladder.
    pub(crate) level: u32,
    /// The detector behind it.
    pub(crate) detector: String,
}

/// The index of the file and of the session in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionPlace {
    pub(crate) file: usize,
    pub(crate) session: usize,
}

/// One session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SessionRow {
    /// The session's id.
    pub(crate) session: String,
    /// The session's file.
    pub(crate) file: String,
    /// The file's format, named after the agent that wrote it.
    pub(crate) format: String,
    /// The model used most.
    pub(crate) model: Option<String>,
    /// The folder the session worked in.
    pub(crate) project: Option<String>,
    /// Time of the first step.
    pub(crate) started: Option<String>,
    /// Time of the last step.
    pub(crate) ended: Option<String>,
    /// Number of steps.
    pub(crate) steps: u64,
    /// Number of turns.
    pub(crate) turns: u64,
    /// Number of tool calls.
    pub(crate) calls: u64,
    /// Number of loops.
    pub(crate) loops: u64,
    /// Number of turns that repeat in a loop.
    pub(crate) repeated_turns: u64,
    /// Duration of the repeated turns.
    pub(crate) minutes: f64,
    /// Usage of the session.
    pub(crate) spend: Spend,
    /// Usage of the repeated turns.
    pub(crate) loop_spend: Spend,
    /// Everything deloop would have done, in order.
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
    /// Compares by cost, most expensive first: by dollars, then by turns and tokens, then by position.
    pub(crate) fn costlier(a: &Self, b: &Self) -> std::cmp::Ordering {
        let size = |l: &Self| (l.repeated.len(), l.spend.tokens());
        b.spend
            .usd
            .total_cmp(&a.spend.usd)
            .then_with(|| size(b).cmp(&size(a)))
            .then_with(|| (&a.file, &a.session, a.step).cmp(&(&b.file, &b.session, b.step)))
    }
}
