use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::awaited::Awaited;
use crate::reading::{PatternOf, PlanTouch, Touch, file_edits, plan_items, plan_sections};
use crate::{CallView, Detector, Happening, Moment, Ring};

/// Number of sections and items that are remembered: those touched last.
const PARTS: usize = 64;

/// Finds sections of a plan that are rewritten again and again.
pub(crate) struct PlanRewrite;

/// Parameters of [`PlanRewrite`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PlanRewriteParams {
    /// Number of rewrites of one section that make a finding.
    at: u64,
}

impl Default for PlanRewriteParams {
    fn default() -> Self {
        Self { at: 3 }
    }
}

/// The parts of the plans, as hashes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PlanRewriteMemory {
    parts: Ring<PlanPart>,
    awaited: Awaited<(u64, Vec<PlanTouch>)>,
}

/// A section or an item, and how often it was rewritten.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct PlanPart {
    plan: u32,
    part: u32,
    /// Hash of its text; 0 when only a part of it was seen.
    text: u32,
    /// Whether it is an item that is over. Another text in its place is a new item.
    done: bool,
    count: u64,
    /// The step of the first rewrite.
    since: u64,
}

impl Detector for PlanRewrite {
    type Params = PlanRewriteParams;
    type Memory = PlanRewriteMemory;

    fn name(&self) -> &'static str {
        "plan-rewrite"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(PlanRewriteParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("plan-rewrite.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        if let Happening::Call(call) = &moment.event {
            let touched = touched(call, moment);
            if !touched.is_empty() {
                memory.awaited.add(call.record.ordinal, (moment.step, touched));
            }
            return None;
        }
        let mut best: Option<(PlanPart, u32)> = None;
        for (ordinal, (step, touched)) in memory.awaited.settled(moment) {
            for part in memory.apply(&touched, step) {
                if best.is_none_or(|(most, _)| part.count > most.count) {
                    best = Some((part, ordinal));
                }
            }
        }
        let (part, ordinal) = best.filter(|(part, _)| part.count >= params.at)?;
        let mut found = Finding::new(self.name(), part.count).by_rule("at");
        found.period = 1;
        found.score = 1.0;
        found.since = part.since;
        found.repeats = Repeats::PlanSection;
        if let Some(record) = moment.history.recent().iter().rev().find(|r| r.ordinal == ordinal) {
            found.tool = Some(moment.history.tool(record).to_owned());
            found.calls = vec![moment.history.short(record)];
        }
        found.pattern = (u64::from(part.plan) << 32 | u64::from(part.part)).into();
        found.evidence = Evidence { at: ordinal.into(), ..Evidence::default() };
        Some(found)
    }
}

/// Returns what a call touches of plan files and of a plan tool's list.
fn touched(call: &CallView<'_>, moment: &Moment<'_>) -> Vec<PlanTouch> {
    let vocabulary = moment.tools.vocabulary();
    if vocabulary.is_a(PatternOf::PlanTool, &call.call.tool) {
        let items = plan_items(call.call, vocabulary);
        let mut touched: Vec<PlanTouch> = items.iter().filter(|i| i.says).map(|i| i.touch).collect();
        touched.truncate(PARTS);
        return touched;
    }
    let edits = file_edits(call.call, call.record.kind);
    let plans = edits.iter().filter(|edit| vocabulary.is_a(PatternOf::PlanFile, &edit.path));
    plans.flat_map(plan_sections).take(PARTS).collect()
}

impl PlanRewriteMemory {
    /// Applies what one call touched. Returns the parts that it rewrote.
    fn apply(&mut self, touched: &[PlanTouch], step: u64) -> Vec<PlanPart> {
        let before: Vec<PlanPart> = self.parts.iter().copied().collect();
        if let Some(list) = touched.first().filter(|t| t.how == Touch::Listed) {
            let listed = |p: &PlanPart| touched.iter().any(|t| t.part == p.part);
            self.parts.retain(|p| p.plan != list.plan || listed(p));
        }
        let mut rewritten = Vec::new();
        for touch in touched {
            let of_plan = |p: &&PlanPart| p.plan == touch.plan;
            let known = before.iter().filter(of_plan).find(|p| p.part == touch.part);
            let differs = known.is_some_and(|p| p.text != 0 && p.text != touch.text);
            // An item that only moved is in both lists.
            let moved = || {
                before.iter().filter(of_plan).any(|p| p.text == touch.text)
                    || known.is_some_and(|p| touched.iter().any(|t| t.text == p.text))
            };
            let again = match touch.how {
                Touch::Replaced => true,
                Touch::Added => false,
                Touch::Written => differs,
                Touch::Listed => differs && !known.is_some_and(|p| p.done) && !moved(),
                Touch::Item => known.is_none() || differs,
            };
            let mut part = known.copied().unwrap_or(PlanPart {
                plan: touch.plan,
                part: touch.part,
                text: 0,
                done: false,
                count: 0,
                since: step,
            });
            part.text = if matches!(touch.how, Touch::Replaced | Touch::Added) { 0 } else { touch.text };
            if part.done && differs {
                part.count = 0;
            }
            part.done = touch.done;
            if again {
                part.count += 1;
                part.since = if part.count == 1 { step } else { part.since };
                rewritten.push(part);
            }
            self.parts.retain(|p| p.plan != part.plan || p.part != part.part);
            self.parts.push(part, PARTS);
        }
        rewritten
    }
}
