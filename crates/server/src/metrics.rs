use std::fmt::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use deloop_types::Action;

use crate::broker::{KeyLimit, StepAnswers};

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

/// How many threads count by themselves. Further ones share.
const THREADS: usize = 16;

/// Counts what the server does, for `GET /metrics`. Each thread has counts of its own, because threads that change the same
/// ones wait for each other.
#[derive(Default)]
pub(crate) struct ServerMetrics {
    threads: [ThreadMetrics; THREADS],
}

/// In cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct ThreadMetrics {
    decisions: [AtomicU64; ACTIONS.len()],
    malformed: AtomicU64,
    foreign: AtomicU64,
    failed_open: AtomicU64,
    limited: [AtomicU64; KeyLimit::ALL.len()],
    refused_listeners: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    /// Requests by the first bucket that they fit into; the last counts the rest.
    requests: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
}

impl ServerMetrics {
    /// Returns the counts of this thread.
    fn mine(&self) -> &ThreadMetrics {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % THREADS);
        &self.threads[MINE.with(|mine| *mine)]
    }

    /// Returns a count of all threads.
    fn sum(&self, of: impl Fn(&ThreadMetrics) -> &AtomicU64) -> u64 {
        self.threads.iter().map(|thread| of(thread).load(Ordering::Relaxed)).sum()
    }

    /// Counts the answer to a request.
    pub(crate) fn request(&self, took: Duration, status: StatusCode) {
        let (mine, seconds) = (self.mine(), took.as_secs_f64());
        let bucket = BUCKETS.iter().position(|end| seconds <= *end).unwrap_or(BUCKETS.len());
        add(&mine.requests[bucket], 1);
        add(&mine.micros, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        if status.is_client_error() {
            add(&mine.refused, 1);
        } else if status.is_server_error() {
            add(&mine.failed, 1);
        }
    }

    /// Counts the answers to a batch of steps.
    pub(crate) fn steps(&self, answers: &StepAnswers, malformed: usize) {
        let mine = self.mine();
        add(&mine.failed_open, answers.failed_open);
        for decision in &answers.decisions {
            let Ok(decision) = decision else {
                add(&mine.foreign, 1);
                continue;
            };
            let action = ACTIONS.iter().position(|(action, _)| *action == decision.action);
            action.into_iter().for_each(|index| add(&mine.decisions[index], 1));
        }
        add(&mine.malformed, malformed as u64);
        mine.limited.iter().zip(answers.limited).for_each(|(counter, count)| add(counter, count));
    }

    /// Counts a client that may not listen for events.
    pub(crate) fn listener_refused(&self) {
        add(&self.mine().refused_listeners, 1);
    }

    /// Returns the counts in the text format of Prometheus.
    pub(crate) fn text(&self, sessions: Option<u64>) -> String {
        let mut out = String::new();
        let mut head = |name: &str, kind: &str, help: &str, rows: &str| {
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{rows}");
        };
        let counts: [u64; ACTIONS.len()] =
            std::array::from_fn(|index| self.sum(|thread| &thread.decisions[index]));
        let steps: u64 = counts.iter().sum();
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
        let rows = format!("deloop_malformed_steps_total {}\n", self.sum(|thread| &thread.malformed));
        head("deloop_malformed_steps_total", "counter", "Items of batches that aren't steps.", &rows);
        let rows = format!("deloop_foreign_steps_total {}\n", self.sum(|thread| &thread.foreign));
        head("deloop_foreign_steps_total", "counter", "Steps of sessions that belong to another key.", &rows);
        let rows = format!(
            "deloop_request_errors_total{{class=\"4xx\"}} {}\ndeloop_request_errors_total{{class=\"5xx\"}} {}\n",
            self.sum(|thread| &thread.refused),
            self.sum(|thread| &thread.failed)
        );
        head("deloop_request_errors_total", "counter", "Requests answered with an error.", &rows);
        let rows = self.request_rows();
        head("deloop_request_seconds", "histogram", "How long requests took, in seconds.", &rows);
        if let Some(sessions) = sessions {
            head("deloop_sessions", "gauge", "Stored sessions.", &format!("deloop_sessions {sessions}\n"));
        }
        let rows = format!("deloop_failed_open_total {}\n", self.sum(|thread| &thread.failed_open));
        head(
            "deloop_failed_open_total",
            "counter",
            "Steps that weren't stored: the store was away, or their session can't be read.",
            &rows,
        );
        head(
            "deloop_limited_steps_total",
            "counter",
            "Steps beyond a limit of their key.",
            &self.limited_rows(),
        );
        let rows =
            format!("deloop_refused_listeners_total {}\n", self.sum(|thread| &thread.refused_listeners));
        head("deloop_refused_listeners_total", "counter", "Listeners for events that were refused.", &rows);
        out
    }

    fn limited_rows(&self) -> String {
        let row = |(index, limit): (usize, &KeyLimit)| {
            let count = self.sum(|thread| &thread.limited[index]);
            format!("deloop_limited_steps_total{{limit=\"{}\"}} {count}\n", limit.name())
        };
        KeyLimit::ALL.iter().enumerate().map(row).collect()
    }

    fn request_rows(&self) -> String {
        let (mut rows, mut total) = (String::new(), 0);
        for index in 0..=BUCKETS.len() {
            total += self.sum(|thread| &thread.requests[index]);
            let end = BUCKETS.get(index).map_or("+Inf".to_owned(), f64::to_string);
            let _ = writeln!(rows, "deloop_request_seconds_bucket{{le=\"{end}\"}} {total}");
        }
        let micros = self.sum(|thread| &thread.micros);
        let _ = writeln!(rows, "deloop_request_seconds_sum {}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let _ = writeln!(rows, "deloop_request_seconds_count {total}");
        rows
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
