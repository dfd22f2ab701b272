use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallRecord, Detector, Happening, History, Moment, SpawnView, short_call};

/// Finds subagents that start subagents without end, and the same task given to subagents again and again.
pub(crate) struct SpawnTreeDetector;

/// Parameters of [`SpawnTreeDetector`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SpawnTreeParams {
    /// Number of agents above a new subagent that makes a finding; 0 turns this rule off.
    depth: u64,
    /// Number of subagents in a row that did nothing but start the next one; 0 turns this rule off.
    relays: u64,
    /// Number of times that the same task is given, with nothing changed in between; 0 turns this rule off.
    tasks: u64,
    /// Number of subagents that did nothing but start others, if they are at least half of all; 0 turns this rule off.
    idle: u64,
    /// Number of subagents that at least three other subagents started, that haven't come back, and with nothing changed in
    /// between; 0 turns this rule off.
    nested: u64,
}

impl Default for SpawnTreeParams {
    fn default() -> Self {
        Self { depth: 4, relays: 3, tasks: 5, idle: 8, nested: 12 }
    }
}

/// The pattern of all rules that look at who starts whom. They are about the same tree, so they climb one ladder.
const STRUCTURE: u64 = 1;

/// Why a spawn is a finding.
struct SpawnReason {
    pattern: u64,
    count: u64,
    severity: u64,
    repeats: Repeats,
    rule: &'static str,
}

impl Detector for SpawnTreeDetector {
    type Params = SpawnTreeParams;
    type Memory = ();

    fn name(&self) -> &'static str {
        "spawn-tree"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(SpawnTreeParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("spawn-tree.md")
    }

    fn whole_session(&self) -> bool {
        true
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        let Happening::Call(call) = &moment.event else { return None };
        let spawn = call.spawn?;
        let reasons = reasons(params, &spawn).into_iter().flatten();
        let SpawnReason { pattern, count, severity, repeats, rule } = reasons.max_by_key(|r| r.severity)?;
        let mut found = Finding::new(self.name(), count).by_rule(rule);
        found.period = 1;
        found.score = 1.0;
        found.since = if repeats == Repeats::SpawnedTask { spawn.since } else { moment.step };
        found.tool = Some(call.call.tool.clone());
        found.repeats = repeats;
        found.changed = (repeats == Repeats::SpawnedTask).then_some(false);
        found.calls = vec![short_call(&call.call.tool, &call.call.args)];
        let totals = spawn.totals;
        found.pattern = pattern.into();
        found.evidence = Evidence {
            at: call.record.ordinal.into(),
            severity: severity.max(insistence(moment, &call.record)),
            fields: vec![
                ("spawns", totals.spawns.to_string()),
                ("subagents", totals.subagents.to_string()),
                ("tokens", totals.tokens.to_string()),
            ],
            hard: true,
            ..Evidence::default()
        };
        Some(found)
    }
}

/// Number of further subagents started by subagents that make a finding more serious by one.
const NESTED_STEP: u64 = 3;
/// Number of subagents that must have started them. One that starts many coordinates them.
const SPAWNERS: u32 = 3;

fn reasons(params: &SpawnTreeParams, spawn: &SpawnView) -> [Option<SpawnReason>; 5] {
    let over = |count: u64, limit: u64| (limit > 0 && count >= limit).then(|| count - limit + 1);
    let reason = |pattern, count, severity: Option<u64>, repeats, rule| {
        severity.map(|severity| SpawnReason { pattern, count, severity, repeats, rule })
    };
    let depth = u64::from(spawn.nesting.depth);
    let relays = u64::from(spawn.nesting.relays);
    let times = u64::from(spawn.times);
    let [idle, nested] = [spawn.idle, spawn.nested].map(u64::from);
    let most_are_idle = spawn.idle.saturating_mul(2) >= spawn.remembered;
    let many = over(idle, params.idle).filter(|_| most_are_idle);
    [
        // A level below one that was refused is there although it was refused, so there is no rung in between.
        reason(STRUCTURE, depth, over(depth, params.depth).map(|n| 2 * n - 1), Repeats::Spawns, "depth"),
        reason(STRUCTURE, relays, over(relays, params.relays).map(|n| 2 * n - 1), Repeats::Spawns, "relays"),
        reason(STRUCTURE, idle, many, Repeats::Spawns, "idle"),
        reason(
            STRUCTURE,
            nested,
            over(nested, params.nested)
                .filter(|_| spawn.spawners >= SPAWNERS)
                .map(|n| 1 + (n - 1) / NESTED_STEP),
            Repeats::Spawns,
            "nested",
        ),
        reason(
            spawn.task.unwrap_or_default(),
            times,
            over(times, params.tasks),
            Repeats::SpawnedTask,
            "tasks",
        ),
    ]
}

/// The severity of a spawn that should be refused.
const REFUSE: u64 = 3;

/// Returns the severity of a spawn after deloop refused others of this agent in a row; 0 when it refused none.
fn insistence(moment: &Moment<'_>, record: &CallRecord) -> u64 {
    let history: &History = moment.history;
    let before = history.recent().iter().rev().filter(|r| r.turn < record.turn);
    let is_refused = |r: &&CallRecord| r.refused && moment.tools.spawns(history.tool(r));
    let mut turns: Vec<u32> = before.take_while(is_refused).map(|r| r.turn).collect();
    turns.dedup();
    match turns.len() as u64 {
        0 => 0,
        refused => REFUSE + refused,
    }
}
