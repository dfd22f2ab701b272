use deloop_types::{Millis, SessionId};
use serde::{Deserialize, Serialize};

use super::FailureNote;
use crate::fingerprint::{half, short_hash};

/// Maximum number of failures stored. The one that was met longest ago is dropped first.
const MOST: usize = 24;
/// Maximum number of workers stored per failure, newest last.
const WORKERS: usize = 8;
/// A failure that nobody met for this long is forgotten.
const KEPT: u64 = 14 * 24 * 3_600_000;

/// The failures that sessions of one project met twice without changing anything, and that no later success cleared.
///
/// Contains hashes, counts and times, but no text. At most 24 failures, which is less than 8 KiB as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownFailures(Vec<KnownFailure>);

/// A call that failed the same way in several sessions, or for several subagents of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFailure {
    /// Hash of the tool and its arguments.
    pub call: u64,
    /// Hash of the result without its volatile parts.
    pub output: u32,
    /// When it was first met, if the steps have times.
    pub first: Option<Millis>,
    /// When it was last met.
    pub last: Option<Millis>,
    /// Number of sessions that met it.
    pub sessions: u32,
    /// Number of agents of these sessions that met it.
    pub workers: u32,
    /// Hashes of the latest of them.
    seen: Vec<(u32, u32)>,
}

/// One agent of one session, as hashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailureWorker {
    pub(super) session: u32,
    pub(super) agent: u32,
}

/// How often others met a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailureCount {
    /// Number of other sessions.
    pub sessions: u64,
    /// Number of other agents, in these sessions and in this one.
    pub workers: u64,
    /// When it was first met, if known.
    pub since: Option<Millis>,
}

/// The failures that one agent can know of.
#[derive(Debug, Clone, Copy, Default)]
pub struct FailureView<'a> {
    /// The failures; `None` if nobody looks for them.
    pub known: Option<&'a KnownFailures>,
    /// The agent itself.
    pub worker: FailureWorker,
    /// The time of the step.
    pub now: Option<Millis>,
}

impl FailureWorker {
    /// Names an agent of a session, `None` being its main agent.
    #[must_use]
    pub fn new(session: &SessionId, agent: Option<&str>) -> Self {
        let hash = |text: &str| half(short_hash(text.as_bytes())).max(1);
        Self { session: hash(session.as_str()), agent: agent.map_or(0, hash) }
    }
}

impl FailureView<'_> {
    /// Returns how often others met this failure.
    #[must_use]
    pub fn met_by_others(&self, call: u64, output: u32) -> FailureCount {
        let known = self.known.and_then(|known| known.find(call, output));
        let Some(known) = known.filter(|known| known.counts_at(self.now)) else {
            return FailureCount::default();
        };
        let FailureWorker { session, agent } = self.worker;
        let own = known.seen.contains(&(session, agent));
        let own_session = known.seen.iter().any(|(s, _)| *s == session);
        FailureCount {
            sessions: u64::from(known.sessions).saturating_sub(own_session.into()),
            workers: u64::from(known.workers).saturating_sub(own.into()),
            since: known.first,
        }
    }
}

impl KnownFailure {
    fn counts_at(&self, now: Option<Millis>) -> bool {
        self.last.zip(now).is_none_or(|(last, now)| now.since(last) <= KEPT)
    }

    fn add(&mut self, worker: FailureWorker, ts: Option<Millis>) {
        self.last = self.last.max(ts);
        self.first = self.first.or(ts);
        let FailureWorker { session, agent } = worker;
        if self.seen.contains(&(session, agent)) {
            return;
        }
        self.workers = self.workers.saturating_add(1);
        if !self.seen.iter().any(|(s, _)| *s == session) {
            self.sessions = self.sessions.saturating_add(1);
        }
        if self.seen.len() >= WORKERS {
            self.seen.remove(0);
        }
        self.seen.push((session, agent));
    }

    /// Removes what a session contributed. Returns whether anything is left.
    fn without(&mut self, session: u32) -> bool {
        let before = self.seen.len();
        self.seen.retain(|(s, _)| *s != session);
        let gone = u32::try_from(before - self.seen.len()).unwrap_or(u32::MAX);
        self.workers = self.workers.saturating_sub(gone);
        self.sessions = self.sessions.saturating_sub(gone.min(1));
        !self.seen.is_empty()
    }
}

impl KnownFailures {
    /// Returns whether no failure is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the failures, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &KnownFailure> {
        self.0.iter()
    }

    /// Returns whether a failure of this call is known.
    #[must_use]
    pub fn has(&self, call: u64) -> bool {
        self.0.iter().any(|known| known.call == call)
    }

    pub(super) fn find(&self, call: u64, output: u32) -> Option<&KnownFailure> {
        self.0.iter().find(|known| known.call == call && known.output == output)
    }

    /// Enters what happened. Entering it twice changes nothing more.
    pub fn enter(&mut self, note: &FailureNote) {
        match *note {
            FailureNote::Failed { call, output, worker, ts } => {
                self.0.retain(|known| known.counts_at(ts));
                let at = self.0.iter().position(|known| known.call == call && known.output == output);
                let at = at.unwrap_or_else(|| {
                    if self.0.len() >= MOST {
                        let oldest = (0..self.0.len()).min_by_key(|i| self.0[*i].last).unwrap_or(0);
                        self.0.remove(oldest);
                    }
                    // Most have few, so room for more is allocated only when needed.
                    self.0.reserve_exact(1);
                    self.0.push(KnownFailure { call, output, ..KnownFailure::default() });
                    self.0.len() - 1
                });
                self.0[at].add(worker, ts);
            }
            FailureNote::Succeeded { call } => self.0.retain(|known| known.call != call),
            FailureNote::Cleared { worker, call } => self.0.retain(|known| {
                Some(known.call) != call && !known.seen.iter().any(|(s, _)| *s == worker.session)
            }),
        }
    }

    /// Removes what a session contributed.
    pub fn forget_session(&mut self, session: &SessionId) {
        let worker = FailureWorker::new(session, None);
        self.0.retain_mut(|known| known.without(worker.session));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(call: u64, session: &str, agent: Option<&str>, day: i64) -> FailureNote {
        let worker = FailureWorker::new(&session.into(), agent);
        FailureNote::Failed { call, output: 7, worker, ts: Some(Millis(1 + day * 86_400_000)) }
    }

    fn others(known: &KnownFailures, call: u64, session: &str, day: i64) -> FailureCount {
        let worker = FailureWorker::new(&session.into(), None);
        let now = Some(Millis(1 + day * 86_400_000));
        FailureView { known: Some(known), worker, now }.met_by_others(call, 7)
    }

    #[test]
    fn a_worker_counts_once_and_not_for_itself() {
        let mut known = KnownFailures::default();
        for note in [failed(1, "a", None, 0), failed(1, "a", None, 0), failed(1, "a", Some("x"), 1)] {
            known.enter(&note);
        }
        known.enter(&failed(1, "b", None, 2));
        let count = others(&known, 1, "b", 2);
        assert_eq!((count.sessions, count.workers, count.since), (1, 2, Some(Millis(1))));
        assert_eq!(others(&known, 2, "b", 2), FailureCount::default());
    }

    #[test]
    fn a_success_an_intervention_and_time_clear_it() {
        let mut known = KnownFailures::default();
        known.enter(&failed(1, "a", None, 0));
        known.enter(&failed(2, "a", None, 0));
        known.enter(&FailureNote::Succeeded { call: 1 });
        assert!(!known.has(1) && known.has(2));
        assert_eq!((others(&known, 2, "b", 14).workers, others(&known, 2, "b", 15).workers), (1, 0));
        known.enter(&failed(3, "b", None, 15));
        assert!(!known.has(2), "two weeks later it is dropped");
        let cleared = |session: &str, call| FailureNote::Cleared {
            worker: FailureWorker::new(&session.into(), Some("x")),
            call,
        };
        known.enter(&cleared("c", Some(2)));
        assert!(known.has(3), "another session's failures stay");
        known.enter(&failed(4, "d", None, 15));
        known.enter(&cleared("b", Some(4)));
        assert!(known.is_empty());
    }

    #[test]
    fn a_forgotten_session_leaves_what_others_met() {
        let mut known = KnownFailures::default();
        known.enter(&failed(1, "a", None, 0));
        known.enter(&failed(1, "b", None, 0));
        known.enter(&failed(2, "b", None, 0));
        known.forget_session(&"b".into());
        assert_eq!((others(&known, 1, "c", 0).sessions, known.has(2)), (1, false));
    }

    #[test]
    fn it_never_takes_8_kib() {
        let mut known = KnownFailures::default();
        for call in 0..1000 {
            for session in 0..20 {
                let worker = FailureWorker { session: u32::MAX - session, agent: u32::MAX };
                let ts = Some(Millis(9_999_999_999_999));
                known.enter(&FailureNote::Failed { call: u64::MAX - call, output: u32::MAX, worker, ts });
            }
        }
        let text = serde_json::to_string(&known).unwrap();
        assert!(text.len() <= 8 << 10, "{} bytes", text.len());
        assert_eq!(serde_json::from_str::<KnownFailures>(&text).unwrap(), known);
        assert!(known.has(u64::MAX - 999) && !known.has(u64::MAX - 100));
    }
}
