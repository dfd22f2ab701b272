//! Sends the alerts of one route, one after the other, on a thread of its own.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use deloop_types::Millis;

use super::backlog::{AlertBacklog, WaitingAlert};
use super::outcome::{AlertOutcome, pause};
use super::route::AlertRoute;
use super::route_counts::{RouteCounts, add};
use crate::clock::Clock;
use crate::shared::{ServerNotice, TellFn};

/// After this long, an alert is given up, in milliseconds.
const GIVE_UP: u64 = 24 * 3_600_000;
/// Nothing waits longer than this between attempts. A later time comes from a clock that was wrong.
const LONGEST_WAIT: u64 = 2 * 3_600_000;
/// How long a thread sleeps, at most. Another process may have added something.
const IDLE: Duration = Duration::from_secs(5);
/// How often it looks whether another process still sends.
const TAKE_OVER: Duration = Duration::from_millis(500);
/// How long it sleeps after the file failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Wakes a thread, and ends it.
#[derive(Default)]
pub(super) struct WorkerSignal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Default)]
struct SignalState {
    has_news: bool,
    is_over: bool,
}

impl WorkerSignal {
    /// Says that there is a new alert.
    pub(super) fn wake(&self) {
        self.change(|state| state.has_news = true);
    }

    /// Ends the thread after what it is doing.
    pub(super) fn end(&self) {
        self.change(|state| state.is_over = true);
    }

    fn change(&self, change: impl FnOnce(&mut SignalState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn is_over(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_over
    }

    /// Waits for news, the end or the time.
    fn wait(&self, time: Duration) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |state: &mut SignalState| !state.has_news && !state.is_over;
        let woken = self.changed.wait_timeout_while(state, time, waits);
        woken.unwrap_or_else(PoisonError::into_inner).0.has_news = false;
    }
}

/// The thread of a route.
pub(super) struct RouteWorker {
    pub(super) route: Arc<AlertRoute>,
    pub(super) backlog: Arc<AlertBacklog>,
    pub(super) signal: Arc<WorkerSignal>,
    pub(super) counts: Arc<RouteCounts>,
    pub(super) errors: Arc<AtomicU64>,
    pub(super) clock: Clock,
    pub(super) tell: TellFn,
}

impl RouteWorker {
    /// Sends what waits until the signal ends it.
    pub(super) fn run(self) {
        let mut health = SinkHealth::default();
        while !self.signal.is_over() {
            if !self.backlog.is_sender() {
                self.signal.wait(TAKE_OVER);
                continue;
            }
            let now = self.clock.now();
            match self.backlog.first(self.route.name()) {
                Ok(Some(waiting)) => match wait_for(waiting.due.max(health.paused), now) {
                    None => self.deliver(&waiting, &mut health),
                    Some(time) => self.signal.wait(self.clock.next_look(time)),
                },
                Ok(None) => {
                    self.count(&self.backlog.prune(self.route.name(), now));
                    self.signal.wait(IDLE);
                }
                Err(_) => {
                    add(&self.errors, 1);
                    self.signal.wait(AFTER_FAILURE);
                }
            }
        }
    }

    fn deliver(&self, waiting: &WaitingAlert, health: &mut SinkHealth) {
        let Some(alert) = waiting.alert() else {
            self.settle(&self.backlog.failed(waiting, "the stored alert can't be read"), &self.counts.failed);
            return;
        };
        let outcome = self.route.send_until(&alert, &self.clock, &|| self.signal.is_over());
        let now = self.clock.now();
        match outcome {
            AlertOutcome::Accepted(_) => {
                self.settle(&self.backlog.sent(waiting), &self.counts.sent);
                if health.is_failing {
                    self.tell("alerts arrive again");
                }
                health.is_failing = false;
            }
            AlertOutcome::Refused(why) => {
                self.settle(&self.backlog.failed(waiting, &why), &self.counts.failed);
                self.tell(&format!("{why}; alert {} isn't sent again", alert.id));
            }
            // The attempt was cut short, so it says nothing about the sink.
            AlertOutcome::Retry { .. } if self.signal.is_over() => {}
            AlertOutcome::Retry { why, .. } if now.since(waiting.created) > GIVE_UP => {
                self.settle(&self.backlog.failed(waiting, &why), &self.counts.failed);
                self.tell(&format!("{why}; alert {} is given up after a day", alert.id));
            }
            AlertOutcome::Retry { why, wait } => {
                let random = getrandom::u32().unwrap_or_default();
                let pause = pause(waiting.attempts.saturating_add(1), random);
                let due = after(now, pause.max(wait.unwrap_or_default()));
                if wait.is_some() {
                    // The sink means all of its alerts.
                    health.paused = due;
                }
                if !self.count(&self.backlog.later(waiting, due, &why)) {
                    self.signal.wait(AFTER_FAILURE);
                }
                if !health.is_failing {
                    self.tell(&format!("{why}; alerts wait and are sent again"));
                }
                health.is_failing = true;
            }
        }
    }

    /// Counts an alert that is done with. One that couldn't be recorded is sent again, with the same key.
    fn settle(&self, recorded: &rusqlite::Result<()>, counter: &AtomicU64) {
        if self.count(recorded) {
            add(counter, 1);
        } else {
            self.signal.wait(AFTER_FAILURE);
        }
    }

    /// Returns whether something was recorded, and counts it if not.
    fn count(&self, recorded: &rusqlite::Result<()>) -> bool {
        add(&self.errors, recorded.is_err().into());
        recorded.is_ok()
    }

    fn tell(&self, what: &str) {
        (self.tell)(ServerNotice::Failed(format!("alert route {}: {what}", self.route.name())));
    }
}

/// What is known about the sink of a route.
struct SinkHealth {
    /// It gets nothing before this time.
    paused: Millis,
    is_failing: bool,
}

impl Default for SinkHealth {
    fn default() -> Self {
        Self { paused: Millis(i64::MIN), is_failing: false }
    }
}

/// Returns how long to wait for a time; `None` if it has come.
fn wait_for(due: Millis, now: Millis) -> Option<Duration> {
    let left = due.since(now);
    (1..=LONGEST_WAIT).contains(&left).then(|| Duration::from_millis(left).min(IDLE))
}

fn after(now: Millis, time: Duration) -> Millis {
    Millis(now.0.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_from_a_wrong_clock_has_come() {
        let now = Millis(1_000_000_000);
        assert_eq!(wait_for(Millis(999_999_999), now), None);
        assert_eq!(wait_for(now, now), None);
        assert_eq!(wait_for(Millis(1_000_000_500), now), Some(Duration::from_millis(500)));
        assert_eq!(wait_for(Millis(1_003_600_000), now), Some(IDLE));
        assert_eq!(wait_for(Millis(1_100_000_000), now), None);
    }
}
