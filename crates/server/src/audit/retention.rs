use deloop_types::Millis;

use super::entry::{AuditEntry, DeletedUpTo, LogNote};
use super::log::{AuditError, AuditLog, LOG_ACTOR};
use super::private_files;
use super::segments::{self, LastRecord};

const DAY: u64 = 24 * 3_600_000;

impl AuditLog {
    /// Deletes the oldest segments that the settings don't keep, whole ones only. A record names the last one deleted.
    ///
    /// # Errors
    /// When files can't be read or deleted, or the record can't be written: then nothing is deleted.
    pub fn delete_old(&self, now: Millis) -> Result<(), AuditError> {
        let _busy = self.maintenance.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.delete_old_segments(now)
    }

    /// Does the same as [`AuditLog::delete_old`], for a caller that holds the maintenance lock.
    pub(super) fn delete_old_segments(&self, now: Millis) -> Result<(), AuditError> {
        if self.settings.keep_days.is_none() && self.settings.keep_mib.is_none() {
            return Ok(());
        }
        let failed = |source| AuditError::io(&self.folder, source);
        let mut found = segments::list(&self.folder).map_err(failed)?;
        found.retain(|segment| segment.first.is_some());
        let sizes: Vec<u64> = found
            .iter()
            .map(|segment| std::fs::metadata(&segment.path).map_or(0, |about| about.len()))
            .collect();
        let mut total: u64 = sizes.iter().sum();
        let most = self.settings.keep_mib.map_or(u64::MAX, |mib| u64::from(mib) << 20);
        let oldest = self.settings.keep_days.map_or(u64::MAX, |days| u64::from(days) * DAY);
        // The last one is in use.
        let sealed = found.len().saturating_sub(1);
        let (mut gone, mut last, mut is_whole) = (0, None, true);
        for (index, (segment, size)) in found[..sealed].iter().zip(&sizes).enumerate() {
            let Some(record) = segment.last_record().map_err(failed)? else { break };
            let is_old = record.ts.is_some_and(|ts| now.since(ts) >= oldest);
            if !is_old && total <= most {
                break;
            }
            // What someone changed, so that it looks old, isn't deleted in silence.
            is_whole &= found[index + 1].follows(&record).map_err(failed)?
                && self.settings.key.as_ref().is_none_or(|key| record.is_of(key));
            total -= size;
            gone += 1;
            last = Some(record);
        }
        let Some(LastRecord { seq, hash, .. }) = last else { return Ok(()) };
        let deleted = Some(DeletedUpTo { last: seq, last_hash: hash });
        let damage =
            (!is_whole).then(|| format!("the records up to {seq} had been changed before they were deleted"));
        let note = LogNote { deleted, damage, ..LogNote::default() };
        self.write(&[AuditEntry::new(now, LOG_ACTOR, "log.delete").with_note(note)])?;
        self.publish(now);
        for segment in &found[..gone] {
            std::fs::remove_file(&segment.path).map_err(failed)?;
        }
        private_files::sync_folder(&self.folder).map_err(failed)
    }
}
