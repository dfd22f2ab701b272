//! What people should know of stored states: those that this release can't read, and files that were damaged.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use deloop_store::StoreError;
use xxhash_rust::xxh3::xxh3_64;

use crate::readiness::{ReadyCode, ReadyReason};
use crate::shared::{ServerNotice, TellFn};

/// How many states are told apart. Further ones are neither counted nor logged.
const TOLD_APART: usize = 1_000;

/// Collects what people should know of stored states. A state that can't be read is logged once and counted.
pub(crate) struct StateNotices {
    tell: TellFn,
    met: Mutex<HashSet<u64>>,
    later: AtomicU64,
    unreadable: AtomicU64,
    /// Damaged databases that were renamed.
    set_aside: Vec<PathBuf>,
    lost_logs: AtomicU64,
}

impl StateNotices {
    /// Logs the damaged files, and collects what follows.
    pub(super) fn new(tell: TellFn, set_aside: Vec<PathBuf>) -> Self {
        for file in &set_aside {
            tell(ServerNotice::Failed(format!(
                "{} is a damaged database that was set aside. What was in it is missing: sessions started afresh. Move \
                 it away once you have what you need of it",
                file.display()
            )));
        }
        let (later, unreadable, lost_logs) = Default::default();
        Self { tell, met: Mutex::default(), later, unreadable, set_aside, lost_logs }
    }

    /// Returns the damaged files that were set aside.
    pub(crate) fn set_aside(&self) -> &[PathBuf] {
        &self.set_aside
    }

    /// Notes that the state of a session or swarm can't be read, if that is the error.
    pub(super) fn unreadable(&self, kind: &str, name: &str, error: &StoreError) {
        if !error.is_unreadable() {
            return;
        }
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if met.len() >= TOLD_APART || !met.insert(xxh3_64(format!("{kind}/{name}").as_bytes())) {
            return;
        }
        drop(met);
        let is_later = matches!(error, StoreError::Later { .. });
        let count = if is_later { &self.later } else { &self.unreadable };
        count.fetch_add(1, Ordering::Relaxed);
        let name = deloop_detect::redact(name);
        (self.tell)(ServerNotice::Failed(format!(
            "the {kind} `{name}` can't be read and stays as it is; its agents continue unless it was stopped: {error}"
        )));
    }

    /// Notes that a part of the log of steps can't be read.
    pub(super) fn lost_log(&self, what: String) {
        self.lost_logs.fetch_add(1, Ordering::Relaxed);
        (self.tell)(ServerNotice::Failed(what));
    }

    /// Returns why the server isn't as it should be.
    pub(super) fn reasons(&self) -> Vec<ReadyReason> {
        let (later, unreadable) =
            (self.later.load(Ordering::Relaxed), self.unreadable.load(Ordering::Relaxed));
        let lost = self.lost_logs.load(Ordering::Relaxed);
        let states = |count: u64| {
            if count == 1 { "1 stored state".to_owned() } else { format!("{count} stored states") }
        };
        let mut reasons = Vec::new();
        if later > 0 {
            let why = format!("a later release wrote {}; update this server", states(later));
            reasons.push(ReadyReason::degraded(ReadyCode::LaterState, why));
        }
        if unreadable > 0 {
            let why = format!("{} can't be read; the server's log names them", states(unreadable));
            reasons.push(ReadyReason::degraded(ReadyCode::UnreadableState, why));
        }
        if lost > 0 || !self.set_aside.is_empty() {
            let why = "a damaged file was set aside; the server's log names it";
            reasons.push(ReadyReason::degraded(ReadyCode::DamagedFile, why));
        }
        reasons
    }

    /// Returns counts in the text format of Prometheus.
    pub(super) fn metrics(&self) -> String {
        let mut out = String::new();
        let _ = write!(
            out,
            "# HELP deloop_unreadable_states Stored states that this release can't read, since it was started.\n\
             # TYPE deloop_unreadable_states gauge\n\
             deloop_unreadable_states{{reason=\"later\"}} {}\n\
             deloop_unreadable_states{{reason=\"unreadable\"}} {}\n\
             # HELP deloop_damaged_files Damaged databases and logs of steps that were set aside.\n\
             # TYPE deloop_damaged_files gauge\ndeloop_damaged_files {}\n",
            self.later.load(Ordering::Relaxed),
            self.unreadable.load(Ordering::Relaxed),
            self.set_aside.len() as u64 + self.lost_logs.load(Ordering::Relaxed),
        );
        out
    }
}
