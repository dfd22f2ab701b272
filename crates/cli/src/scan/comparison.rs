//! The same sessions under two sets of rules, as `compare --json` prints it.

use deloop_types::Action;
use schemars::JsonSchema;
use serde::Serialize;

use crate::replay::Spend;
use crate::scan::report::{LoopRow, SessionRow};
use crate::sessions::Problem;

/// The same sessions under two sets of rules.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "Comparison")]
pub(crate) struct Comparison {
    /// The version of this shape; a new one only when a field changes its meaning or goes.
    pub(super) version: u32,
    /// What `--a` names.
    pub(super) a: Side,
    /// What `--b` names.
    pub(super) b: Side,
    /// Sessions, or parts of them, that were read.
    pub(super) sessions: u64,
    /// Loops that both found.
    pub(super) both: u64,
    /// Loops that only `a` found.
    pub(super) only_a: u64,
    /// Loops that only `b` found.
    pub(super) only_b: u64,
    /// Of those that both found: `a` stepped in at an earlier turn.
    pub(super) earlier_a: u64,
    /// Of those that both found: `b` stepped in at an earlier turn.
    pub(super) earlier_b: u64,
    /// Every loop that either found; those that only one found first, the costliest of them first.
    pub(super) loops: Vec<LoopPair>,
    /// Files that could not be read, or not completely.
    pub(super) problems: Vec<Problem>,
}

/// What one set of rules came to.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Side {
    /// The profile or configuration, as it was named.
    pub(super) name: String,
    /// Loops that it found.
    pub(super) loops: u64,
    /// Sessions with loops.
    pub(super) sessions: u64,
    /// Turns that repeat in its loops.
    pub(super) repeated_turns: u64,
    /// How long these took.
    pub(super) minutes: f64,
    /// What these used.
    pub(super) spend: Spend,
    /// The part of it that was used after its first action on a loop.
    pub(super) spend_after: Spend,
}

/// One loop as both sides see it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LoopPair {
    /// The session's id.
    pub(super) session: String,
    /// The file it is in.
    pub(super) file: String,
    /// The format of the file.
    pub(super) format: String,
    /// The worker or subagent, if it is not the session's own agent.
    pub(super) agent: Option<String>,
    /// What repeats and how often, in words.
    pub(super) pattern: String,
    /// The turn at which it begins, from 1.
    pub(super) first_turn: u32,
    /// What its repeated turns used.
    pub(super) spend: Spend,
    /// What `a` would have done; nothing if it did not find it.
    pub(super) a: Option<LoopView>,
    /// What `b` would have done; nothing if it did not find it.
    pub(super) b: Option<LoopView>,
}

/// What one side makes of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct LoopView {
    /// The detector that says most about it.
    pub(super) detector: String,
    /// The turn at which it would first have stepped in.
    pub(super) first_turn: u32,
    /// What it would have done then.
    pub(super) first_action: Action,
    /// The strongest action.
    pub(super) action: Action,
    /// The turn of that.
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

    /// Adds what each side found in one session. Loops of one agent that overlap are the same.
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

/// Returns the turn at which a side would first have stepped in.
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

    /// Returns it in words: "nudge at turn 4, block at turn 8".
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

    /// Compares: loops that only one side found first, then by cost, then by place.
    pub(super) fn order(a: &Self, b: &Self) -> std::cmp::Ordering {
        let both = |p: &Self| p.a.is_some() && p.b.is_some();
        both(a)
            .cmp(&both(b))
            .then_with(|| b.spend.usd.total_cmp(&a.spend.usd))
            .then_with(|| b.spend.tokens().cmp(&a.spend.tokens()))
            .then_with(|| (&a.file, &a.session, a.first_turn).cmp(&(&b.file, &b.session, b.first_turn)))
    }
}
