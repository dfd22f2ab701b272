//! Whether Redis drops keys by itself. A stopped session whose key is dropped would continue.

use std::sync::{Mutex, MutexGuard, PoisonError};

use deloop_store::{RedisMemory, RedisStore};
use deloop_types::Millis;

use crate::readiness::{ReadyCode, ReadyReason};
use crate::shared::{ServerNotice, TellFn};

/// How often Redis is asked, in milliseconds.
const EVERY: u64 = 10_000;

/// Asks Redis from time to time, and tells people when the answer changes.
pub(crate) struct EvictionWatch {
    is_allowed: bool,
    tell: TellFn,
    /// When Redis was last asked, and what it said.
    seen: Mutex<(Option<Millis>, RedisMemory)>,
}

impl EvictionWatch {
    pub(super) fn new(is_allowed: bool, tell: TellFn) -> Self {
        Self { is_allowed, tell, seen: Mutex::new((None, RedisMemory::Keeps)) }
    }

    /// Asks Redis if it is time to. While it can't be reached, its last answer counts.
    pub(super) fn look(&self, store: &RedisStore, now: Millis) {
        {
            let (asked, _) = &mut *self.seen();
            // Also if the clock was set back.
            if asked.is_some_and(|asked| now >= asked && now.since(asked) < EVERY) {
                return;
            }
            *asked = Some(now);
        }
        let Ok(memory) = store.memory() else {
            self.seen().0 = None;
            return;
        };
        let before = std::mem::replace(&mut self.seen().1, memory.clone());
        if before == memory {
            return;
        }
        let notice = match memory {
            RedisMemory::Evicts(policy) => evicts(&policy),
            RedisMemory::Keeps => "Redis doesn't drop keys any more".to_owned(),
            RedisMemory::Unknown(why) => format!(
                "can't find out whether Redis drops keys when its memory is full ({why}); make sure that its \
                 maxmemory-policy is noeviction"
            ),
        };
        (self.tell)(ServerNotice::Failed(notice));
    }

    /// Returns why the server isn't as it should be, if Redis drops keys.
    pub(super) fn reason(&self) -> Option<ReadyReason> {
        let RedisMemory::Evicts(policy) = &self.seen().1 else { return None };
        let why = evicts(policy);
        Some(match self.is_allowed {
            true => ReadyReason::degraded(ReadyCode::RedisEvicts, why),
            false => ReadyReason::unready(ReadyCode::RedisEvicts, why),
        })
    }

    fn seen(&self) -> MutexGuard<'_, (Option<Millis>, RedisMemory)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn evicts(policy: &str) -> String {
    format!(
        "Redis drops keys when its memory is full (maxmemory-policy {policy}), so stopped sessions may continue; set \
         maxmemory-policy to noeviction, or `allow_eviction = true` under `[serve.redis]`"
    )
}
