//! Alerts: what people should know, sent to the sinks that the routes of the configuration name.
//!
//! [`Alerts::raise`] writes an alert into the backlog of every route that matches, and returns. A thread per route sends
//! what waits there, so that a sink that doesn't answer delays neither a request nor another sink. An alert stays in the
//! file until its sink has accepted it: it is sent at least once, always with the same key.

mod address;
mod alert;
mod backlog;
mod command;
mod discord;
mod http_post;
mod outcome;
mod route;
mod route_counts;
mod route_worker;
mod sink_text;
mod sink_url;
mod slack;
#[cfg(test)]
mod tests;
mod webhook;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use self::backlog::{AlertBacklog, ROOM};
use self::route_counts::{RouteCounts, add, prometheus};
use self::route_worker::{RouteWorker, WorkerSignal};
use crate::clock::Clock;
use crate::shared::{ServerNotice, TellFn};

pub use alert::{Alert, AlertContext, AlertDetail};
pub use backlog::{BacklogReport, backlog_reports};
pub use outcome::AlertOutcome;
pub use route::AlertRoute;
pub use route_counts::AlertStats;

/// Returns whether this server is the first to claim a key, over all servers.
pub type ClaimFn = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// How long a stopping server waits for requests to sinks. They are sent again after the start.
const FAREWELL: Duration = Duration::from_secs(1);

/// Sends alerts. Dropping it ends its threads within about a second.
pub struct Alerts {
    routes: Vec<RunningRoute>,
    backlog: Arc<AlertBacklog>,
    errors: Arc<AtomicU64>,
    claim: ClaimFn,
    clock: Clock,
    tell: TellFn,
    server: String,
    /// Disconnected when the last thread has ended.
    ended: Mutex<Receiver<()>>,
}

struct RunningRoute {
    route: Arc<AlertRoute>,
    signal: Arc<WorkerSignal>,
    counts: Arc<RouteCounts>,
}

impl Alerts {
    /// Opens the backlog in this file, and starts to send what waits there. `server` names this server in alerts.
    ///
    /// # Errors
    /// When the file can't be used, or the system has no threads left.
    pub fn open(
        file: &Path,
        routes: Vec<AlertRoute>,
        server: &str,
        claim: ClaimFn,
        clock: Clock,
        tell: TellFn,
    ) -> Result<Self, String> {
        let backlog = Arc::new(AlertBacklog::open(file, clock.now())?);
        let errors = Arc::new(AtomicU64::new(0));
        let (running, ended) = channel();
        let mut started = Vec::with_capacity(routes.len());
        for route in routes {
            let route = Arc::new(route);
            let (signal, counts) = (Arc::<WorkerSignal>::default(), Arc::<RouteCounts>::default());
            let worker = RouteWorker {
                route: Arc::clone(&route),
                backlog: Arc::clone(&backlog),
                signal: Arc::clone(&signal),
                counts: Arc::clone(&counts),
                errors: Arc::clone(&errors),
                clock: clock.clone(),
                tell: Arc::clone(&tell),
            };
            let running = running.clone();
            let thread = std::thread::Builder::new().name(format!("alerts {}", route.name()));
            thread
                .spawn(move || {
                    worker.run();
                    drop(running);
                })
                .map_err(|e| format!("alert route `{}`: {e}", route.name()))?;
            started.push(RunningRoute { route, signal, counts });
        }
        Ok(Self {
            routes: started,
            backlog,
            errors,
            claim,
            clock,
            tell,
            server: server.to_owned(),
            ended: Mutex::new(ended),
        })
    }

    /// Queues an alert for every route that matches, once over all servers. Failures are counted and told.
    pub fn raise(&self, alert: Alert) {
        let matching: Vec<&RunningRoute> =
            self.routes.iter().filter(|running| running.route.matches(&alert)).collect();
        if matching.is_empty() || !(self.claim)(&alert.id) {
            return;
        }
        let alert = alert.detail("server", &self.server);
        let names: Vec<&str> = matching.iter().map(|running| running.route.name()).collect();
        match self.backlog.enqueue(&names, &alert, self.clock.now()) {
            Ok(done) => {
                for (running, enqueued) in matching.iter().zip(done) {
                    self.dropped(running, enqueued.dropped);
                    if enqueued.is_new {
                        running.signal.wake();
                    }
                }
            }
            Err(error) => {
                add(&self.errors, 1);
                (self.tell)(ServerNotice::Failed(format!("an alert couldn't be stored: {error}")));
            }
        }
    }

    fn dropped(&self, running: &RunningRoute, dropped: u64) {
        if dropped == 0 {
            return;
        }
        add(&running.counts.dropped, dropped);
        let total = running.counts.dropped.load(Ordering::Relaxed);
        if total == dropped || total.is_multiple_of(ROOM.into()) {
            (self.tell)(ServerNotice::Failed(format!(
                "alert route {}: {ROOM} alerts wait, so the oldest of the lowest level are dropped, {total} so far",
                running.route.name()
            )));
        }
    }

    /// Returns what became of the alerts of each route.
    #[must_use]
    pub fn stats(&self) -> Vec<AlertStats> {
        let waiting = |name: &str| {
            self.backlog.waiting(name).unwrap_or_else(|_| {
                add(&self.errors, 1);
                0
            })
        };
        let one = |running: &RunningRoute| {
            let name = running.route.name();
            AlertStats::of(name, &running.counts, waiting(name))
        };
        self.routes.iter().map(one).collect()
    }

    /// Returns the counts in the text format of Prometheus.
    #[must_use]
    pub fn metrics(&self) -> String {
        prometheus(&self.stats(), self.errors.load(Ordering::Relaxed))
    }
}

impl Drop for Alerts {
    fn drop(&mut self) {
        for running in &self.routes {
            running.signal.end();
        }
        // Nothing is ever sent: this returns when all threads have dropped their end, or the time is up.
        let _ = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(FAREWELL);
    }
}
