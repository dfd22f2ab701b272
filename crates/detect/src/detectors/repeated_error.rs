use deloop_types::{Evidence, Finding, Origin, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fold::speaks_deloop;
use crate::{Detector, Happening, Moment, ResultView, Ring, Sketch, clean};

/// The same failure, or the same emptiness, whatever the call.
pub(crate) struct RepeatedError;

/// How [`RepeatedError`] is tuned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// From which weight on it is a finding: a failing call counts 1 when it is like an earlier one, less when not.
    at: f64,
    /// Within how many calls.
    window: u64,
    /// How alike the words of two calls must be to count in full, 0 to 1.
    alike: f64,
    /// What a failing call counts that is not like an earlier one.
    other: f64,
    /// What a search counts that is not like an earlier one and finds nothing either.
    search: f64,
    /// What a call counts that was made before, after a change, and fails with other numbers.
    moved: f64,
    /// What a success of the same program or tool in between takes off.
    success: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { at: 4.0, window: 16, alike: 0.5, other: 0.9, search: 0.5, moved: 0.5, success: 0.5 }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Calls that have not come back yet.
    open: Ring<(u64, Sketch)>,
    /// How many calls there were when a person last wrote.
    human: u64,
    /// Calls that came back with nothing.
    failed: Ring<Failed>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Failed {
    ordinal: u64,
    step: u64,
    turn: u32,
    kind: u32,
    tool: u8,
    /// How many changes were made before it.
    changes: u32,
    /// What came back, with its volatile parts masked, hashed.
    output: u64,
    signature: u64,
    words: Sketch,
}

impl Failed {
    /// Whether this is the same call as an earlier one, after a change, and came back with something else.
    fn moved_on(&self, earlier: &Self) -> bool {
        self.signature == earlier.signature
            && self.changes != earlier.changes
            && self.output != earlier.output
    }
}

const OPEN: usize = 8;
/// With at most so many words in its arguments, there is nothing to vary.
const BARE: usize = 1;

impl Detector for RepeatedError {
    type Params = Params;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "repeated-error"
    }

    fn page(&self) -> &'static str {
        include_str!("repeated-error.md")
    }

    fn look(&self, params: &Params, moment: &Moment<'_>, memory: &mut Memory) -> Option<Finding> {
        match &moment.event {
            Happening::Call(call) => {
                memory.open.push((call.record.ordinal, Sketch::of(&call.call.args)), OPEN);
                None
            }
            Happening::Result(result) => self.after(params, moment, result, memory),
            Happening::User(user) if user.origin == Origin::Human => {
                memory.human = moment.history.calls();
                None
            }
            _ => None,
        }
    }
}

impl RepeatedError {
    fn after(
        &self,
        params: &Params,
        moment: &Moment<'_>,
        result: &ResultView<'_>,
        memory: &mut Memory,
    ) -> Option<Finding> {
        let record = &result.record;
        let words = memory
            .open
            .iter()
            .find(|(o, _)| *o == record.ordinal)
            .map(|(_, w)| w.clone())
            .unwrap_or_default();
        memory.open.retain(|(o, _)| *o != record.ordinal);
        memory.failed.retain(|f| f.ordinal + params.window > record.ordinal);
        let ours = speaks_deloop(result.result);
        let open_end =
            matches!(record.outcome, Some(Outcome::Running | Outcome::Denied | Outcome::Cancelled));
        let waits = record.waits && !record.outcome.is_some_and(Outcome::failed);
        if record.fruitless == 0 || waits || ours || open_end {
            return None;
        }
        let (ordinal, step, turn) = (record.ordinal, record.step, record.turn);
        let failed = Failed {
            ordinal,
            step,
            turn,
            kind: record.fruitless,
            tool: record.tool,
            changes: record.changes,
            output: record.output,
            signature: record.signature.short(),
            words,
        };
        memory.failed.push(failed, 16);
        let group: Vec<&Failed> = memory.failed.iter().filter(|f| f.kind == record.fruitless).collect();
        // One and the same call in a row is no-progress's business.
        let first = group.first()?;
        let in_a_row = record.ordinal.saturating_sub(first.ordinal) < group.len() as u64
            && first.ordinal >= memory.human;
        if in_a_row && group.iter().all(|f| f.signature == first.signature) {
            return None;
        }
        let lonely = if record.searches { params.search } else { params.other };
        let mut weight = 1.0;
        let mut likeness = 1.0_f64;
        for (i, one) in group.iter().enumerate().skip(1) {
            if group[..i].iter().any(|f| one.moved_on(f)) {
                weight += params.moved;
                continue;
            }
            let like = |f: &&&Failed| if f.tool == one.tool { f.words.likeness(&one.words) } else { 0.0 };
            let nearest = group[..i].iter().map(|f| like(&f)).fold(0.0, f64::max);
            weight += if nearest >= params.alike { 1.0 } else { lonely };
            likeness = likeness.min(nearest);
        }
        let fine = moment.history.recent().iter().filter(|r| {
            r.ordinal > first.ordinal && r.answered && r.fruitless == 0 && r.program == record.program
        });
        #[expect(clippy::cast_precision_loss, reason = "a handful of calls")]
        let weight = weight - params.success * fine.count() as f64;
        let turns = group.iter().map(|f| f.turn).collect::<std::collections::BTreeSet<_>>().len();
        // With next to nothing in their arguments, calls of one tool are one call in other words.
        let bare = group.iter().all(|f| f.tool == first.tool && f.words.len() <= BARE);
        (turns >= 3 && (weight >= params.at || bare && group.len() >= 3)).then(|| {
            let tool = moment.history.tool(record);
            let what = if record.outcome.is_some_and(Outcome::failed) || !record.searches {
                "the same error"
            } else {
                "nothing found"
            };
            Finding {
                detector: self.name().to_owned(),
                count: group.len() as u64,
                period: 1,
                score: likeness,
                since: first.step,
                tool: Some(tool.to_owned()),
                summary: format!("{what} {} times, lately from {}", group.len(), clean(tool, 40)),
                evidence: Evidence {
                    pattern: record.fruitless.into(),
                    at: record.ordinal,
                    outcome: Some(what.to_owned()),
                    ..Evidence::default()
                },
            }
        })
    }
}
