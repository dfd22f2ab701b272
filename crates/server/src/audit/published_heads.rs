use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deloop_store::{RecordName, SharedRecords, StoreError};
use deloop_types::Millis;

use super::head::AuditHead;

/// The group of the heads in the shared records; the name is the server's id.
const GROUP: &str = "audit-heads";
/// How many heads are kept of each server.
const KEPT_HEADS: usize = 1000;
/// How long they are kept after the last one.
const KEPT_FOR: Duration = Duration::from_secs(400 * 24 * 3600);
/// A head is published at most this often, unless records are about to be removed, in milliseconds.
const PAUSE: u64 = 60_000;

/// Notes the heads of a log where whoever can write the log's folder can't change them: in the shared records.
pub(super) struct PublishedHeads {
    records: Arc<dyn SharedRecords>,
    server: String,
    last: Mutex<LastPublished>,
}

#[derive(Default)]
struct LastPublished {
    head: Option<AuditHead>,
    /// When that was tried last.
    tried: Option<Millis>,
}

impl PublishedHeads {
    pub(super) fn new(records: Arc<dyn SharedRecords>, server: &str) -> Self {
        Self { records, server: server.to_owned(), last: Mutex::default() }
    }

    /// Publishes a head, unless it was published already.
    pub(super) fn publish(&self, head: &AuditHead, now: Millis) -> Result<(), StoreError> {
        let mut last = self.last();
        last.tried = Some(now);
        if last.head.as_ref() == Some(head) {
            return Ok(());
        }
        let name = RecordName::new(GROUP, &self.server);
        self.records.push(name, &head.to_string(), KEPT_HEADS, KEPT_FOR, now)?;
        last.head = Some(head.clone());
        Ok(())
    }

    /// Returns whether it is time to publish another head.
    pub(super) fn is_due(&self, now: Millis) -> bool {
        self.last().tried.is_none_or(|tried| now.since(tried) >= PAUSE)
    }

    /// Publishes the last head of a log that ends.
    pub(super) fn publish_last(&self, head: &AuditHead) {
        let tried = self.last().tried;
        if let Some(now) = tried {
            // If it fails, the records behind the head that was published before are proven by the next one.
            let _ = self.publish(head, now);
        }
    }

    fn last(&self) -> MutexGuard<'_, LastPublished> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the heads that a server published, oldest first.
///
/// # Errors
/// When the backend fails.
pub fn published_heads(
    records: &dyn SharedRecords,
    server: &str,
    now: Millis,
) -> Result<Vec<AuditHead>, StoreError> {
    let texts = records.list(RecordName::new(GROUP, server), now)?;
    Ok(texts.iter().filter_map(|text| AuditHead::parse(text)).collect())
}

#[cfg(test)]
mod tests {
    use deloop_store::MemoryRecords;

    use super::*;

    #[test]
    fn a_head_is_published_once_and_the_next_one_when_it_is_due() {
        let records: Arc<dyn SharedRecords> = Arc::new(MemoryRecords::default());
        let heads = PublishedHeads::new(Arc::clone(&records), "s");
        let head = |seq| AuditHead { seq, hash: "0".repeat(64) };
        assert!(heads.is_due(Millis(0)));
        heads.publish(&head(1), Millis(0)).unwrap();
        heads.publish(&head(1), Millis(0)).unwrap();
        assert!(!heads.is_due(Millis(59_999)) && heads.is_due(Millis(60_000)));
        heads.publish(&head(2), Millis(2)).unwrap();
        let found = published_heads(records.as_ref(), "s", Millis(3)).unwrap();
        assert_eq!(found, [head(1), head(2)]);
        assert_eq!(published_heads(records.as_ref(), "other", Millis(3)).unwrap(), []);
    }
}
