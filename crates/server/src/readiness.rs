//! Whether the server can do its work. Many may ask at the same time, so what is asked for is checked once for all of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use crate::http_error::HttpError;
use crate::shared::Shared;

/// How long an answer waits for the check. After that, it is what the check before found.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long that counts.
const COUNTS: Duration = Duration::from_secs(30);
/// How long senders without a key get the same answer: a check writes to the database.
const SHARED: Duration = Duration::from_secs(1);

/// Why a server isn't as it should be, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReadyCode {
    /// The database can't be written.
    Database,
    /// Redis can't be reached or refuses to write, for example because it is full.
    Redis,
    /// Redis drops keys when its memory is full.
    RedisEvicts,
    /// The audit log can't be written.
    AuditLog,
    /// A later release wrote some of the stored states.
    LaterState,
    /// Some of the stored states can't be read.
    UnreadableState,
    /// A damaged database or log of steps was set aside.
    DamagedFile,
    /// The check takes too long.
    Slow,
}

/// A reason why a server isn't as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ReadyReason {
    pub(crate) code: ReadyCode,
    /// What is wrong, and what to do about it.
    pub(crate) why: String,
    /// Whether the server works all the same.
    #[serde(skip)]
    pub(crate) is_degraded: bool,
}

impl ReadyReason {
    /// Creates a reason not to send steps to the server.
    pub(crate) fn unready(code: ReadyCode, why: impl Into<String>) -> Self {
        Self { code, why: why.into(), is_degraded: false }
    }

    /// Creates a reason to look after the server, which works.
    pub(crate) fn degraded(code: ReadyCode, why: impl Into<String>) -> Self {
        Self { code, why: why.into(), is_degraded: true }
    }
}

/// Checks whether the server can do its work.
pub(crate) struct ReadyCheck {
    turns: Mutex<CheckTurns>,
    /// The number of the last check that has ended.
    ended: watch::Sender<u64>,
}

#[derive(Default)]
struct CheckTurns {
    begun: u64,
    wanted: u64,
    is_running: bool,
    /// What the last check found, and when, unless something failed since.
    last: Option<(Instant, Arc<[ReadyReason]>)>,
}

impl Default for ReadyCheck {
    fn default() -> Self {
        Self { turns: Mutex::default(), ended: watch::Sender::new(0) }
    }
}

impl ReadyCheck {
    /// Notes that something failed, so that what the last check found doesn't count any more.
    pub(crate) fn suspect(&self) {
        self.turns().last = None;
    }

    fn turns(&self) -> MutexGuard<'_, CheckTurns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last(&self, within: Duration, now: Instant) -> Option<Arc<[ReadyReason]>> {
        let turns = self.turns();
        let last = turns.last.as_ref().filter(|(at, _)| now.saturating_duration_since(*at) <= within);
        last.map(|(_, reasons)| Arc::clone(reasons))
    }

    /// Returns what is wrong. `is_fresh` asks for a check that begins after this call.
    pub(crate) async fn reasons(shared: &Arc<Shared>, is_fresh: bool) -> Arc<[ReadyReason]> {
        let check = &shared.ready;
        if !is_fresh && let Some(last) = check.last(SHARED, shared.clock.moment()) {
            return last;
        }
        let mut ended = check.ended.subscribe();
        let (turn, is_first) = {
            let mut turns = check.turns();
            turns.wanted = turns.begun + 1;
            (turns.wanted, !std::mem::replace(&mut turns.is_running, true))
        };
        if is_first {
            let shared = Arc::clone(shared);
            // It isn't part of a request, whose client may go away.
            tokio::task::spawn_blocking(move || run(&shared));
        }
        let its_turn = async { ended.wait_for(|ended| *ended >= turn).await.is_ok() };
        let _ = shared.clock.within(PATIENCE, its_turn).await;
        let slow = || {
            let why = "the database, Redis or the audit log takes too long to answer";
            Arc::from([ReadyReason::unready(ReadyCode::Slow, why)])
        };
        check.last(COUNTS, shared.clock.moment()).unwrap_or_else(slow)
    }
}

/// Checks as often as is wanted.
fn run(shared: &Arc<Shared>) {
    loop {
        let turn = {
            let mut turns = shared.ready.turns();
            if turns.wanted <= turns.begun {
                turns.is_running = false;
                return;
            }
            turns.begun += 1;
            turns.begun
        };
        let reasons = Arc::from(find_reasons(shared));
        shared.ready.turns().last = Some((shared.clock.moment(), reasons));
        shared.ready.ended.send_replace(turn);
    }
}

fn find_reasons(shared: &Shared) -> Vec<ReadyReason> {
    let (broker, now) = (&shared.broker, shared.clock.now());
    let mut reasons = Vec::new();
    if let Err(error) = broker.check(now) {
        let error = HttpError::from(error).told(shared);
        let code = if broker.is_remote() { ReadyCode::Redis } else { ReadyCode::Database };
        reasons.push(ReadyReason::unready(code, error.message()));
    }
    if let Some(Err(reason)) = broker.audit_log().map(|log| log.check(now)) {
        let error = HttpError::audit_failed(reason).told(shared);
        reasons.push(ReadyReason::unready(ReadyCode::AuditLog, error.message()));
    }
    reasons.extend(broker.reasons());
    reasons
}
