use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns texts that no process returns twice.
pub(super) struct UniqueTexts {
    origin: [u64; 2],
    next: AtomicU64,
}

impl UniqueTexts {
    pub(super) fn new() -> Self {
        let random = RandomState::new();
        Self { origin: [random.hash_one(0), random.hash_one(1)], next: AtomicU64::new(0) }
    }

    pub(super) fn next(&self) -> String {
        let [one, other] = self.origin;
        format!("{one:016x}{other:016x}{:x}", self.next.fetch_add(1, Ordering::Relaxed))
    }
}
