//! The comparison of two sets of rules on the same sessions, as printed by `compare --json`.

use deloop_types::Action;
use schemars::JsonSchema;
use serde::Serialize;

use crate::replay::Spend;
use crate::scan::report::{LoopRow, SessionRow};
use crate::sessions::Problem;

/// The comparison of two sets of rules on the same sessions.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "Comparison")]
pub(crate) struct Comparison {
    /// Version of this format. It changes only when a field is removed or changes its meaning.
    pub(super) version: u32,
    /// The results of `--a`.
    pub(super) a: Side,
    /// The results of `--b`.
    pub(super) b: Side,
    /// Number of sessions, or parts of sessions, that were read.
    pub(super) sessions: u64,
    /// Number of loops that both found.
    pub(super) both: u64,
    /// Number of loops that only `a` found.
    pub(super) only_a: u64,
    /// Number of loops that only `b` found.
    pub(super) only_b: u64,
    /// Number of loops found by both where `a` stepped in at an earlier turn.
    pub(super) earlier_a: u64,
    /// Number of loops found by both where `b` stepped in at an earlier turn.
    pub(super) earlier_b: u64,
    /// Every loop that either found: those found by only one side first, most expensive first.
    pub(super) loops: Vec<LoopPair>,
    /// Files that couldn't be read, or not completely.
    pub(super) problems: Vec<Problem>,
}

/// The results of one set of rules.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Side {
    /// The profile or configuration, as given on the command line.
    pub(super) name: String,
    /// Number of loops found.
    pub(super) loops: u64,
    /// Number of sessions with loops.
    pub(super) sessions: u64,
    /// Number of turns that repeat in its loops.
    pub(super) repeated_turns: u64,
    /// Duration of these turns.
    pub(super) minutes: f64,
    /// Usage of these turns.
    pub(super) spend: Spend,
    /// The part of that usage after its first action on a loop.
    pub(super) spend_after: Spend,
}

/// One loop, as judged by both sides.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LoopPair {
    /// The session's id.
    pub(super) session: String,
    /// The session's file.
    pub(super) file: String,
    /// The file's format.
    pub(super) format: String,
    /// The worker or subagent, unless it is the session's main agent.
    pub(super) agent: Option<String>,
    /// A summary: what repeats and how often.
    pub(super) pattern: String,
    /// The turn where it begins, from 1.
    pub(super) first_turn: u32,
    /// Usage of its repeated turns.
    pub(super) spend: Spend,
    /// What `a` would have done; null if it didn't find the loop.
    pub(super) a: Option<LoopView>,
    /// What `b` would have done; null if it didn't find the loop.
    pub(super) b: Option<LoopView>,
}

/// One side's judgement of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct LoopView {
    /// The detector that describes the loop best.
    pub(super) detector: String,
    /// The turn where it would first have stepped in.
    pub(super) first_turn: u32,
    /// The action at that turn.
    pub(super) first_action: Action,
    /// The strongest action.
    pub(super) action: Action,
    /// The turn of the strongest action.
    pub(super) turn: u32,
}

impl Comparison {
    pub(super) fn new(names: [&String; 2]) -> Self {
        let side = |name: &String| Side {
            name: name.clone(),
            loops: 0,
            sessions: 0,
            repeated_turns: 0,
            minutes: 0.0,
            spend: Spend::default(),
            spend_after: Spend::default(),
        };
        Self {
            version: 2,
            a: side(names[0]),
            b: side(names[1]),
            sessions: 0,
            both: 0,
            only_a: 0,
            only_b: 0,
            earlier_a: 0,
            earlier_b: 0,
            loops: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds the loops each side found in one session. Overlapping loops of one agent count as the same.
    pub(super) fn add(
        &mut self,
        (row_a, a): (SessionRow, Vec<LoopRow>),
        (row_b, mut b): (SessionRow, Vec<LoopRow>),
    ) {
        self.sessions += 1;
        self.a.add(&row_a, &a);
        self.b.add(&row_b, &b);
        for one in a {
            let overlaps = |other: &LoopRow| {
                other.agent == one.agent && one.step <= other.last_step && other.step <= one.last_step
            };
            let other = b.iter().position(overlaps).map(|index| b.remove(index));
            match &other {
                None => self.only_a += 1,
                Some(other) => {
                    self.both += 1;
                    let (a, b) = (first(&one), first(other));
                    self.earlier_a += u64::from(a < b);
                    self.earlier_b += u64::from(b < a);
                }
            }
            self.loops.push(LoopPair::new(&one, LoopView::of(&one), other.as_ref().and_then(LoopView::of)));
        }
        for other in b {
            self.only_b += 1;
            self.loops.push(LoopPair::new(&other, None, LoopView::of(&other)));
        }
    }
}

/// Returns the turn where a side would first have stepped in.
fn first(one: &LoopRow) -> u32 {
    one.actions.first().map_or(u32::MAX, |a| a.turn)
}

impl Side {
    fn add(&mut self, row: &SessionRow, loops: &[LoopRow]) {
        self.loops += row.loops;
        self.sessions += u64::from(row.loops > 0);
        self.repeated_turns += row.repeated_turns;
        self.minutes += row.minutes;
        self.spend.merge(&row.loop_spend);
        loops.iter().for_each(|one| self.spend_after.merge(&one.spend_after));
    }
}

impl LoopView {
    fn of(one: &LoopRow) -> Option<Self> {
        let first = one.actions.first()?;
        let strongest = one.actions.iter().find(|a| (a.action, a.level) == (one.action, one.level))?;
        Some(Self {
            detector: one.detector.clone(),
            first_turn: first.turn,
            first_action: first.action,
            action: strongest.action,
            turn: strongest.turn,
        })
    }

    /// Describes the actions: "nudge at turn 4, block at turn 8".
    pub(super) fn text(&self) -> String {
        let mut text = format!("{} at turn {}", self.first_action, self.first_turn);
        if self.turn != self.first_turn {
            text.push_str(&format!(", {} at turn {}", self.action, self.turn));
        }
        format!("{text}\n{}", self.detector)
    }
}

impl LoopPair {
    fn new(one: &LoopRow, a: Option<LoopView>, b: Option<LoopView>) -> Self {
        Self {
            session: one.session.clone(),
            file: one.file.clone(),
            format: one.format.clone(),
            agent: one.agent.clone(),
            pattern: one.pattern.clone(),
            first_turn: one.first_turn,
            spend: one.spend,
            a,
            b,
        }
    }

    /// Compares: loops found by only one side first, then by cost, then by position.
    pub(super) fn order(a: &Self, b: &Self) -> std::cmp::Ordering {
        let both = |p: &Self| p.a.is_some() && p.b.is_some();
        both(a)
            .cmp(&both(b))
            .then_with(|| b.spend.usd.total_cmp(&a.spend.usd))
            .then_with(|| b.spend.tokens().cmp(&a.spend.tokens()))
            .then_with(|| (&a.file, &a.session, a.first_turn).cmp(&(&b.file, &b.session, b.first_turn)))
    }
}
