use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// What became of the alerts of one route since the start.
#[derive(Debug, Default)]
pub(super) struct RouteCounts {
    pub(super) sent: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// Adds one, or more.
pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// What became of the alerts of one route since the server started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertStats {
    /// The route.
    pub route: String,
    /// Alerts that arrived.
    pub sent: u64,
    /// Alerts that were given up.
    pub failed: u64,
    /// Alerts that were dropped because too many waited.
    pub dropped: u64,
    /// Alerts that wait now, also from before the start.
    pub backlog: u64,
}

impl AlertStats {
    pub(super) fn of(route: &str, counts: &RouteCounts, backlog: u64) -> Self {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (sent, failed, dropped) = (get(&counts.sent), get(&counts.failed), get(&counts.dropped));
        Self { route: route.to_owned(), sent, failed, dropped, backlog }
    }
}

/// Returns the counts in the text format of Prometheus. `errors` is how often the backlog's file failed.
pub(super) fn prometheus(stats: &[AlertStats], errors: u64) -> String {
    let mut out = String::new();
    let mut family = |name: &str, kind: &str, help: &str, value: fn(&AlertStats) -> u64| {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for one in stats {
            // Names of routes have no characters that need escaping.
            let _ = writeln!(out, "{name}{{route=\"{}\"}} {}", one.route, value(one));
        }
    };
    family("deloop_alerts_sent_total", "counter", "Alerts that arrived.", |one| one.sent);
    family("deloop_alerts_failed_total", "counter", "Alerts that were given up.", |one| one.failed);
    family("deloop_alerts_dropped_total", "counter", "Alerts dropped from a full backlog.", |one| {
        one.dropped
    });
    family("deloop_alerts_backlog", "gauge", "Alerts that wait.", |one| one.backlog);
    let name = "deloop_alert_backlog_errors_total";
    let _ = writeln!(out, "# HELP {name} Failures of the file with waiting alerts.\n# TYPE {name} counter");
    let _ = writeln!(out, "{name} {errors}");
    out
}
