use deloop_types::{Finding, Origin, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::{about_to_be, allowed_by_user, finding, proven, stale_share, turns};
use crate::reading::{Effect, requested_times};
use crate::{CallRecord, Detector, Happening, Look, Moment, Progress, ToolKind, short_hash};

/// Finds calls that bring nothing new: one call with the same output, or nearly all recent calls.
pub(crate) struct NoProgress;

/// Parameters of [`NoProgress`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NoProgressParams {
    /// Number of times the same call must return the same output, with no change in between, to make a finding; 0 turns
    /// this rule off.
    at: u64,
    /// Share of the calls since the first of them that must have brought nothing new, 0 to 1.
    share: f64,
    /// Number of calls in a row of which nearly all must bring nothing new; 0 turns this rule off.
    window: usize,
    /// Share of those calls that must bring nothing new, 0 to 1.
    window_share: f64,
    /// Number of identical calls in a row that make a finding when the agent records no results; 0 turns this rule off.
    unseen: u64,
    /// Number of times the same call must be made, with no change in between, to make a finding although its outputs differ:
    /// in their numbers only, or between two outputs in turn; 0 turns this rule off.
    identical: u64,
    /// Number of times the same call must return the same output, in a stretch without any progress, to be refused
    /// whatever it is; 0 turns this rule off.
    persists: u64,
}

impl Default for NoProgressParams {
    fn default() -> Self {
        Self { at: 4, share: 0.7, window: 10, window_share: 0.9, unseen: 6, identical: 10, persists: 12 }
    }
}

/// A repetition that a person asked for.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NoProgressMemory {
    /// How many times.
    times: u64,
    /// The call that implements it: the first one made again.
    call: u64,
}

impl Detector for NoProgress {
    type Params = NoProgressParams;
    type Memory = NoProgressMemory;

    fn name(&self) -> &'static str {
        "no-progress"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(NoProgressParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("no-progress.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        match &moment.event {
            Happening::Call(call) => {
                let record = &call.record;
                let again = |r: &CallRecord| r.signature == record.signature && r.ordinal < record.ordinal;
                if memory.times > 0 && memory.call == 0 && moment.history.of_this_request().any(again) {
                    memory.call = record.signature;
                }
                self.before(params, moment, record, memory)
            }
            Happening::Result(result) => self.after(params, moment, &result.record, memory),
            Happening::User(user) if user.origin == Origin::Human => {
                *memory = NoProgressMemory { times: requested_times(&user.text), call: 0 };
                None
            }
            _ => None,
        }
    }
}

impl NoProgress {
    /// Checks a call before it is made.
    fn before(
        &self,
        params: &NoProgressParams,
        moment: &Moment<'_>,
        record: &CallRecord,
        memory: &NoProgressMemory,
    ) -> Option<Finding> {
        let unseen = moment.history.recent().iter().rev();
        let unseen: Vec<&CallRecord> =
            unseen.take_while(|r| r.signature == record.signature && !r.answered()).collect();
        if params.unseen > 0 && turns(unseen.iter().copied()) >= params.unseen && !record.waits() {
            return Some(self.found("unseen", moment, record, &unseen));
        }
        let last = moment.history.of_this_request().find(|r| r.signature == record.signature)?;
        let mut group = self.same_call(params, moment, last, memory)?;
        // The first time it may have changed something; since then it hasn't.
        group.pop_if(|first| first.progress == Progress::Changed);
        // Only what reads, and answers at once, may be refused although it succeeds.
        let reads = matches!(last.kind, ToolKind::Read | ToolKind::Search) || last.effect.reads();
        let at_once = group.iter().all(|r| r.at_once());
        let mut found = about_to_be(self.found("at", moment, last, &group), record);
        found.evidence.hard &= reads && at_once && proven(&group);
        found.evidence.hard |= found.changed != Some(true) && self.persists(params, moment, &group);
        found.evidence.hard.then_some(found)
    }

    /// Returns whether weak evidence has become strong: these calls, newest first, are many, all with the same output,
    /// in a stretch in which nothing else brought progress either and that nobody asked to continue.
    fn persists(&self, params: &NoProgressParams, moment: &Moment<'_>, group: &[&CallRecord]) -> bool {
        let stretch = moment.history.stretch();
        let same = || group.windows(2).all(|pair| pair[0].came_back_as(pair[1]));
        params.persists > 0
            && u64::from(stretch.calls) >= params.persists
            && stretch.prompts == 0
            && turns(group.iter().copied()) >= params.persists
            && group.iter().all(|r| r.look == Look::Stuck)
            && same()
    }

    /// Checks a call after its result.
    fn after(
        &self,
        params: &NoProgressParams,
        moment: &Moment<'_>,
        record: &CallRecord,
        memory: &NoProgressMemory,
    ) -> Option<Finding> {
        let requested = memory.call == record.signature;
        if let Some(group) = self.identical(params, moment, record).filter(|_| !requested) {
            return Some(self.found("identical", moment, record, &group));
        }
        if !record.progress.nothing_new() {
            return None;
        }
        if let Some(group) = self.same_call(params, moment, record, memory) {
            return Some(self.found("at", moment, record, &group));
        }
        let window = self.window(params, moment, record);
        let stale = !window.is_empty()
            && !window.iter().any(|r| r.signature == memory.call)
            && stale_share(window.iter().copied()) >= params.window_share;
        stale.then(|| {
            // For as long as it lasts it is one pattern, whichever calls it is made of.
            let pattern = short_hash(b"everything") ^ u64::from(moment.history.requests());
            let mut found = finding((self.name(), "window"), moment, record, &window, pattern);
            found.repeats = Repeats::Everything;
            found.outcome = None;
            found.count = window.iter().filter(|r| r.progress.nothing_new()).count() as u64;
            found
        })
    }

    /// Returns the last calls with evidence: at least this many, from at least half as many turns. Empty when there
    /// aren't enough.
    fn window<'a>(
        &self,
        params: &NoProgressParams,
        moment: &Moment<'a>,
        record: &CallRecord,
    ) -> Vec<&'a CallRecord> {
        let reach = 2 * u32::try_from(params.window).unwrap_or(u32::MAX / 2);
        let judged = moment.history.of_this_request().filter(|r| r.progress != Progress::None);
        let mut window: Vec<&CallRecord> = Vec::with_capacity(params.window);
        let (mut turns, mut last) = (0, u32::MAX);
        for one in judged.take_while(|r| r.turn.saturating_add(reach) > record.turn) {
            turns += usize::from(one.turn != last);
            last = one.turn;
            window.push(one);
            if window.len() >= params.window && turns * 2 >= params.window {
                return if params.window > 0 { window } else { Vec::new() };
            }
        }
        Vec::new()
    }

    /// Returns the latest calls equal to this one with the same result, if there are enough and little else brought
    /// anything new in between.
    fn same_call<'a>(
        &self,
        params: &NoProgressParams,
        moment: &Moment<'a>,
        record: &CallRecord,
        memory: &NoProgressMemory,
    ) -> Option<Vec<&'a CallRecord>> {
        if record.ending.in_vain() || record.waits() || record.kind == ToolKind::Talk {
            return None;
        }
        let history = moment.history;
        let changes = if record.effect >= Effect::Changes { None } else { Some(history.changes()) };
        let group: Vec<&CallRecord> = history
            .of_this_request()
            .filter(|r| r.signature == record.signature)
            .take_while(|r| r.ending == record.ending && changes.is_none_or(|c| r.changes == c))
            .take_while(|r| changes.is_none() || r.output == record.output)
            .collect();
        let mut at = allowed_by_user(moment, record).unwrap_or(params.at);
        if memory.call == record.signature {
            at = at.max(memory.times + 1);
        }
        let first = group.last()?.ordinal;
        let since = history.recent().iter().filter(|r| r.ordinal > first);
        let enough = params.at > 0 && turns(group.iter().copied()) >= at;
        (enough && stale_share(since) >= params.share).then_some(group)
    }

    /// Returns the latest calls equal to this one, if there are many and their outputs differ only in numbers that don't move
    /// in one direction, or come in turn.
    fn identical<'a>(
        &self,
        params: &NoProgressParams,
        moment: &Moment<'a>,
        record: &CallRecord,
    ) -> Option<Vec<&'a CallRecord>> {
        let judged = matches!(record.progress, Progress::New | Progress::Same)
            && record.effect < Effect::Waits
            && !record.tests
            && !matches!(record.kind, ToolKind::Talk | ToolKind::Page);
        if params.identical == 0 || !judged || record.shape == 0 {
            return None;
        }
        let history = moment.history;
        let unchanged = |r: &&CallRecord| r.changes == history.changes() && !r.ending.in_vain();
        let same =
            history.of_this_request().take_while(unchanged).filter(|r| r.signature == record.signature);
        let group: Vec<&CallRecord> = same.take_while(|r| r.progress != Progress::Moved).collect();
        let mut shapes: Vec<u8> = group.iter().map(|r| r.shape).filter(|shape| *shape != 0).collect();
        shapes.sort_unstable();
        shapes.dedup();
        let first = group.last()?.ordinal;
        let (mut all, mut stale) = (0.0, 0.0);
        for one in history.recent().iter().filter(|r| r.ordinal > first && r.progress != Progress::None) {
            all += 1.0;
            stale += f64::from(u8::from(one.signature == record.signature || one.progress.nothing_new()));
        }
        let enough = shapes.len() <= 2 && turns(group.iter().copied()) >= params.identical;
        (enough && stale >= params.share * all).then_some(group)
    }

    fn found(&self, rule: &str, moment: &Moment<'_>, record: &CallRecord, group: &[&CallRecord]) -> Finding {
        let mut found = finding((self.name(), rule), moment, record, group, record.signature);
        found.repeats = Repeats::Call;
        found.threshold = allowed_by_user(moment, record).filter(|_| rule == "at").map(Into::into);
        found
    }
}
