use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use super::session_money::SessionTally;
use super::verdict::BudgetLevel;

/// Counts what money does, for `GET /metrics`.
#[derive(Default)]
pub(crate) struct MoneyCounters {
    spent: AtomicU64,
    wasted: AtomicU64,
    unpriced: AtomicU64,
    exceeded: AtomicU64,
    warnings_announced: AtomicU64,
    stops_announced: AtomicU64,
    over_limit: AtomicU64,
    unknown: AtomicU64,
    failures: AtomicU64,
}

impl MoneyCounters {
    pub(super) fn charged(&self, tally: &SessionTally) {
        let add = |counter: &AtomicU64, amount: i64| {
            counter.fetch_add(u64::try_from(amount).unwrap_or(0), Ordering::Relaxed);
        };
        add(&self.spent, tally.cost);
        add(&self.wasted, tally.waste);
        add(&self.unpriced, tally.unpriced);
    }

    /// Counts what a request reported beyond what one can cost, in millionths of a dollar.
    pub(super) fn over_limit(&self, amount: i64) {
        self.over_limit.fetch_add(u64::try_from(amount).unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn stopped(&self, level: BudgetLevel) {
        if level == BudgetLevel::Exceeded {
            self.exceeded.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn announced(&self, level: BudgetLevel) {
        let is_warning = level == BudgetLevel::Warning;
        let counter = if is_warning { &self.warnings_announced } else { &self.stops_announced };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unknown(&self) {
        self.unknown.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts in the text format of Prometheus. `waiting` and `lost` are the backlog.
    pub(crate) fn text(&self, (waiting, lost): (usize, u64)) -> String {
        let mut out = String::new();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let dollars = |counter| format!("{}.{:06}", get(counter) / 1_000_000, get(counter) % 1_000_000);
        for (name, kind, help, value) in [
            ("deloop_spend_usd_total", "counter", "Cost of requests to models.", dollars(&self.spent)),
            ("deloop_loop_waste_usd_total", "counter", "Cost of requests in loops.", dollars(&self.wasted)),
            (
                "deloop_usage_over_limit_usd_total",
                "counter",
                "Reported cost that didn't count, because one request can't cost that much.",
                dollars(&self.over_limit),
            ),
            (
                "deloop_unpriced_requests_total",
                "counter",
                "Requests to models without a price.",
                get(&self.unpriced).to_string(),
            ),
            (
                "deloop_budget_stops_total",
                "counter",
                "Steps stopped because a budget is used up.",
                get(&self.exceeded).to_string(),
            ),
            (
                "deloop_budget_unknown_total",
                "counter",
                "Steps judged while the spend was unknown.",
                get(&self.unknown).to_string(),
            ),
            (
                "deloop_money_failures_total",
                "counter",
                "Times that the shared totals couldn't be read or written.",
                get(&self.failures).to_string(),
            ),
            (
                "deloop_money_waiting",
                "gauge",
                "Tables with amounts that aren't in the shared totals yet.",
                waiting.to_string(),
            ),
            (
                "deloop_money_lost_total",
                "counter",
                "Amounts dropped because too many waited.",
                lost.to_string(),
            ),
        ] {
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        let name = "deloop_budget_announced_total";
        let (warnings, stops) = (get(&self.warnings_announced), get(&self.stops_announced));
        let _ = write!(
            out,
            "# HELP {name} Budgets that were announced as nearly or completely used up.\n# TYPE {name} counter\n\
             {name}{{level=\"warning\"}} {warnings}\n{name}{{level=\"exceeded\"}} {stops}\n"
        );
        out
    }
}
