use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use deloop_types::{Action, Decision};

/// The upper ends of the buckets of request times, in seconds.
const BUCKETS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0];

const ACTIONS: [(Action, &str); 6] = [
    (Action::Continue, "continue"),
    (Action::Warn, "warn"),
    (Action::Nudge, "nudge"),
    (Action::Ask, "ask"),
    (Action::Block, "block"),
    (Action::Stop, "stop"),
];

/// Counts what the server does, for `GET /metrics`.
#[derive(Default)]
pub(crate) struct ServerMetrics {
    decisions: [AtomicU64; ACTIONS.len()],
    malformed: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    /// Requests by the first bucket that they fit into; the last counts the rest.
    requests: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
}

impl ServerMetrics {
    /// Counts the answer to a request.
    pub(crate) fn request(&self, took: Duration, status: StatusCode) {
        let seconds = took.as_secs_f64();
        let bucket = BUCKETS.iter().position(|end| seconds <= *end).unwrap_or(BUCKETS.len());
        add(&self.requests[bucket], 1);
        add(&self.micros, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        if status.is_client_error() {
            add(&self.refused, 1);
        } else if status.is_server_error() {
            add(&self.failed, 1);
        }
    }

    /// Counts the answers to a batch of steps.
    pub(crate) fn steps(&self, decisions: &[Decision], malformed: usize) {
        for decision in decisions {
            let action = ACTIONS.iter().position(|(action, _)| *action == decision.action);
            action.into_iter().for_each(|index| add(&self.decisions[index], 1));
        }
        add(&self.malformed, malformed as u64);
    }

    /// Returns the counts in the text format of Prometheus.
    pub(crate) fn text(&self, sessions: u64, audit_failures: u64) -> String {
        let mut out = String::new();
        let mut head = |name: &str, kind: &str, help: &str, rows: &str| {
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{rows}");
        };
        let counts = self.decisions.iter().map(get);
        let steps: u64 = counts.clone().sum();
        head(
            "deloop_steps_total",
            "counter",
            "Steps that got a decision.",
            &format!("deloop_steps_total {steps}\n"),
        );
        let rows: String = ACTIONS
            .iter()
            .zip(counts)
            .map(|((_, name), count)| format!("deloop_decisions_total{{action=\"{name}\"}} {count}\n"))
            .collect();
        head("deloop_decisions_total", "counter", "Decisions by action.", &rows);
        let rows = format!("deloop_malformed_steps_total {}\n", get(&self.malformed));
        head("deloop_malformed_steps_total", "counter", "Items of batches that aren't steps.", &rows);
        let rows = format!(
            "deloop_request_errors_total{{class=\"4xx\"}} {}\ndeloop_request_errors_total{{class=\"5xx\"}} {}\n",
            get(&self.refused),
            get(&self.failed)
        );
        head("deloop_request_errors_total", "counter", "Requests answered with an error.", &rows);
        let rows = self.request_rows();
        head("deloop_request_seconds", "histogram", "How long requests took, in seconds.", &rows);
        let rows = format!("deloop_audit_failures_total {audit_failures}\n");
        head("deloop_audit_failures_total", "counter", "Audit records that couldn't be written.", &rows);
        head("deloop_sessions", "gauge", "Stored sessions.", &format!("deloop_sessions {sessions}\n"));
        out
    }

    fn request_rows(&self) -> String {
        let (mut rows, mut total) = (String::new(), 0);
        for (index, count) in self.requests.iter().enumerate() {
            total += get(count);
            let end = BUCKETS.get(index).map_or("+Inf".to_owned(), f64::to_string);
            let _ = writeln!(rows, "deloop_request_seconds_bucket{{le=\"{end}\"}} {total}");
        }
        let micros = get(&self.micros);
        let _ = writeln!(rows, "deloop_request_seconds_sum {}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let _ = writeln!(rows, "deloop_request_seconds_count {total}");
        rows
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
