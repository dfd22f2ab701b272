use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Detector, Happening, Look, Moment, Wait, short_hash};

/// Finds waiting that costs too much: looks that come too fast, or that each cost a lot.
pub(crate) struct WaitingDetector;

/// Parameters of [`WaitingDetector`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WaitingParams {
    /// Number of looks in a row without anything new that make a finding, if they come too fast or cost too much; 0 turns
    /// this rule off.
    looks: u64,
    /// Mean number of seconds between two looks below which they come too fast.
    pause: f64,
    /// Dollars from which these looks cost too much, if each costs at least `each`; ten times as many otherwise.
    costs: f64,
    /// Dollars of a look.
    each: f64,
    /// Dollars that waiting may cost until a person asks for something else; 0 means no limit. For models without a price,
    /// 800,000 tokens count as a dollar, weighted like input tokens.
    usd: f64,
}

impl Default for WaitingParams {
    fn default() -> Self {
        Self { looks: 15, pause: 5.0, costs: 0.6, each: 0.03, usd: 12.0 }
    }
}

/// Looks whose times aren't known must be this many times as many.
const TIMELESS: u64 = 4;
/// How many times the first finding's looks and dollars make a second one.
const SECOND: u64 = 4;
/// The shares of the limit at which the agent gets a message in any case, so that no run ends without one.
const FIRST_SHARE: f64 = 0.5;
const SECOND_SHARE: f64 = 0.75;
/// How many times as much cheap looks may cost.
const CHEAP: f64 = 10.0;

impl Detector for WaitingDetector {
    type Params = WaitingParams;
    type Memory = ();

    fn name(&self) -> &'static str {
        "waiting"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(WaitingParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("waiting.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        let looks = match &moment.event {
            Happening::Turn(turn) => turn.calls.is_empty(),
            Happening::Result(result) => result.record.look == Look::Waiting,
            Happening::User(_) | Happening::Usage => true,
            _ => false,
        };
        let wait = moment.history.wait();
        let (severity, rule) = severity(params, wait).filter(|_| looks)?;
        Some({
            let history = moment.history;
            let cost = if wait.run.dollars() * 2.0 < wait.all.dollars() { wait.all } else { wait.run };
            let record = history.recent().iter().rev().find(|r| r.signature == wait.call);
            let mut found = Finding::new(self.name(), u64::from(wait.looks.max(cost.requests))).by_rule(rule);
            (found.period, found.score) = (1, 1.0);
            found.since = wait.since.into();
            found.repeats = Repeats::Wait;
            if let Some(record) = record {
                found.tool = Some(history.tool(record).to_owned());
                found.calls = vec![history.short(record)];
            }
            let minutes = wait.minutes().filter(|m| *m >= 1.0).map_or(String::new(), |m| format!("{m:.0}"));
            let spent = match (cost.usd, cost.tokens) {
                (usd, tokens) if usd < 0.005 && tokens < 1000.0 => String::new(),
                (usd, tokens) if usd < 0.005 && tokens < 1e6 => {
                    format!("about {:.0},000 tokens, weighted by price", tokens / 1000.0)
                }
                (usd, tokens) if usd < 0.005 => {
                    format!("about {:.1} million tokens, weighted by price", tokens / 1e6)
                }
                (usd, _) => format!("${usd:.2}"),
            };
            found.pattern = (short_hash(b"waiting") ^ u64::from(history.requests())).into();
            found.evidence = Evidence {
                at: history.turns(),
                severity,
                fields: vec![("minutes", minutes), ("cost", spent)],
                hard: severity >= 3,
                ..Evidence::default()
            };
            found
        })
    }
}

/// Returns 1 and 2 for looks that deserve a message, and 3 if the limit is reached, each with its rule.
fn severity(params: &WaitingParams, wait: &Wait) -> Option<(u64, &'static str)> {
    let looks = u64::from(wait.looks);
    let fast = |at: u64| match wait.pause() {
        Some(pause) => looks >= at && pause < params.pause,
        None => looks >= at.saturating_mul(TIMELESS),
    };
    let dear = wait.run.dollars() >= params.each * f64::from(wait.run.requests);
    let most = |usd: f64| if dear { usd } else { usd * CHEAP };
    let costs = |at: u64, usd: f64| usd > 0.0 && looks >= at && wait.run.dollars() >= most(usd);
    let reached = |times: u64, usd: f64| {
        let at = params.looks.saturating_mul(times);
        match () {
            () if params.looks == 0 => None,
            () if fast(at) => Some("looks"),
            () => costs(at, usd).then_some("costs"),
        }
    };
    let share = if params.usd > 0.0 { wait.all.dollars() / params.usd } else { 0.0 };
    match (share, reached(SECOND, params.costs * SECOND as f64)) {
        (1.0.., _) => Some((3, "usd")),
        (SECOND_SHARE.., _) => Some((2, "usd")),
        (_, Some(rule)) => Some((2, rule)),
        (FIRST_SHARE.., _) => Some((1, "usd")),
        _ => reached(1, params.costs).map(|rule| (1, rule)),
    }
}
