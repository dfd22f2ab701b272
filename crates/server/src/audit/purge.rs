use std::path::PathBuf;
use std::sync::PoisonError;

use deloop_types::{Millis, SessionId};

use super::entry::{AuditEntry, LogNote};
use super::line::{ChainedPart, LineParts};
use super::log::{AuditError, AuditLog};
use super::private_files;
use super::segments::{self, Segment};
use crate::project::Project;

/// Exists while a purge is recorded and not yet carried out.
const PENDING_FILE: &str = "purging";
/// Maximum number of ranges in one record of a purge.
const RANGES: usize = 10_000;

impl AuditLog {
    /// Removes what was recorded of a session: its name, texts, detail and turns. A tombstone takes their place, the
    /// chain still verifies, and a record names who purged. Records that arrive meanwhile stay. Returns how many records
    /// were purged.
    ///
    /// # Errors
    /// When files can't be read or written. What was recorded as purged is then removed when the log is next opened.
    pub fn purge(
        &self,
        project: &Project,
        session: &SessionId,
        actor: &str,
        now: Millis,
    ) -> Result<u64, AuditError> {
        let _busy = self.maintenance.lock().unwrap_or_else(PoisonError::into_inner);
        // All records so far are in segments that nobody writes to.
        self.writer().seal();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let last = self.head().seq;
        self.each_record(|parts, chained| {
            let is_project = chained.project.as_deref() == Some(project.as_str());
            let is_session =
                || parts.payload().is_some_and(|p| p.session.as_deref() == Some(session.as_str()));
            if !is_project || chained.seq > last || !is_session() {
                return;
            }
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == chained.seq => *end = chained.seq,
                _ => ranges.push((chained.seq, chained.seq)),
            }
        })?;
        let pending = self.pending();
        private_files::replace(&pending, b"").map_err(|source| AuditError::io(&pending, source))?;
        let chunks: Vec<&[(u64, u64)]> =
            if ranges.is_empty() { vec![&[]] } else { ranges.chunks(RANGES).collect() };
        for purged in chunks {
            let note = LogNote { purged: purged.to_vec(), ..LogNote::default() };
            let entry = AuditEntry::new(now, actor, "session.purge").in_project(project);
            self.write(&[entry.with_note(note)])?;
        }
        self.publish(now);
        self.carry_out()?;
        Ok(ranges.iter().map(|(first, last)| last - first + 1).sum())
    }

    /// Carries out what a crash left of a purge.
    pub(super) fn finish_purges(&self) -> Result<(), AuditError> {
        if self.pending().exists() { self.carry_out() } else { Ok(()) }
    }

    fn pending(&self) -> PathBuf {
        self.folder.join(PENDING_FILE)
    }

    /// Replaces the payloads of all records that a purge names.
    fn carry_out(&self) -> Result<(), AuditError> {
        let mut purges: Vec<(u64, u64, u64)> = Vec::new();
        self.each_record(|_, chained| {
            let named = chained.note.iter().flat_map(|note| &note.purged);
            purges.extend(named.map(|(first, last)| (*first, *last, chained.seq)));
        })?;
        purges.sort_unstable();
        for segment in self.segments()? {
            rewrite(&segment, &purges).map_err(|source| AuditError::io(&segment.path, source))?;
        }
        let pending = self.pending();
        std::fs::remove_file(&pending).map_err(|source| AuditError::io(&pending, source))
    }

    fn each_record(&self, mut see: impl FnMut(&LineParts<'_>, &ChainedPart)) -> Result<(), AuditError> {
        for segment in self.segments()? {
            let failed = |source| AuditError::io(&segment.path, source);
            let (mut lines, mut line) = (segment.lines().map_err(failed)?, Vec::new());
            while lines.next(&mut line).map_err(failed)? {
                let Some(parts) = LineParts::of(&line) else { continue };
                if let Some(chained) = parts.parse() {
                    see(&parts, &chained);
                }
            }
        }
        Ok(())
    }

    fn segments(&self) -> Result<Vec<Segment>, AuditError> {
        segments::list(&self.folder).map_err(|source| AuditError::io(&self.folder, source))
    }
}

/// Replaces the purged payloads of a segment, if there are any. `purges` is sorted, and no record is in two of them.
fn rewrite(segment: &Segment, purges: &[(u64, u64, u64)]) -> std::io::Result<()> {
    let (mut lines, mut line) = (segment.lines()?, Vec::new());
    let (mut out, mut changed) = (Vec::new(), false);
    while lines.next(&mut line)? {
        let parts = LineParts::of(&line);
        let chained = parts.as_ref().and_then(LineParts::parse);
        let purge = chained.and_then(|chained| {
            let after = purges.partition_point(|(first, ..)| *first <= chained.seq);
            let (_, last, purge) = purges[..after].last()?;
            (*last >= chained.seq).then_some(*purge)
        });
        match (parts, purge) {
            (Some(parts), Some(purge)) if parts.tombstone().is_none() => {
                parts.write_purged(purge, &mut out);
                changed = true;
            }
            _ => out.extend_from_slice(&line),
        }
    }
    if changed { private_files::replace(&segment.path, &out) } else { Ok(()) }
}
