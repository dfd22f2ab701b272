use std::path::Path;
use std::time::Duration;

use super::audit_key::AuditKey;
use super::head::{AuditHead, StoredHead};
use super::lock::LogLock;
use super::log::AuditError;
use super::segments;
use super::verify_chain::ChainCheck;

/// How often a log that a server writes to is read again before a problem is reported.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);

/// What a log is compared with besides itself: what whoever can write its folder can't change.
#[derive(Debug, Clone, Default)]
pub struct AuditEvidence {
    /// A head that somebody noted elsewhere.
    pub noted: Option<AuditHead>,
    /// The heads that the server published in the shared records, oldest first, if they were asked for.
    pub published: Option<Vec<AuditHead>>,
    /// The keys that the records were written with.
    pub keys: Vec<AuditKey>,
}

impl AuditEvidence {
    /// Returns the number of the last record that a head proves.
    pub(super) fn proven(&self) -> Option<u64> {
        self.heads().map(|(head, _)| head.seq).max()
    }

    /// Returns the heads, with what they are called.
    pub(super) fn heads(&self) -> impl Iterator<Item = (&AuditHead, &'static str)> {
        let published = self.published.iter().flatten().map(|head| (head, "the head in the shared store"));
        self.noted.iter().map(|head| (head, "the head that you noted")).chain(published)
    }
}

/// Something that shows tampering or a missing record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditProblem {
    /// The record.
    pub seq: u64,
    /// The file, if the problem is in one.
    pub segment: Option<String>,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for AuditProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "record {}: {}", self.seq, self.what)?;
        self.segment.as_ref().map_or(Ok(()), |segment| write!(f, " ({segment})"))
    }
}

/// What a verification found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Verification {
    /// The number of records.
    pub records: u64,
    /// The number of files.
    pub segments: u64,
    /// The number of records whose payload was purged.
    pub purged: u64,
    /// The number of the first record. Retention deletes old ones.
    pub first: Option<u64>,
    /// The last record. Note it elsewhere, to show later that nothing up to it was changed.
    pub head: Option<AuditHead>,
    /// The server's random id.
    pub server: Option<String>,
    /// What shows tampering or a missing record; the first hundred.
    pub problems: Vec<AuditProblem>,
    /// The number of records that one of the keys proves.
    pub authentic: u64,
    /// The number of further problems.
    pub more_problems: u64,
    /// What is unusual but no sign of tampering.
    pub notices: Vec<String>,
}

/// Reads all records of a log and checks them: every byte, the links, the numbers, the files, and that none is missing
/// at the end, by the head file and by the evidence. A server may be writing to the log.
///
/// With a head, nothing that it names may be gone unless a record up to the head removed it: whoever can write the folder
/// can add a purge or a deletion behind the head, too. With keys, every record must be one that a key or a head proves.
///
/// # Errors
/// When the files can't be read.
pub fn verify(folder: &Path, evidence: &AuditEvidence) -> Result<Verification, AuditError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let found = verify_once(folder, evidence);
        let is_fine = found.as_ref().is_ok_and(|found| found.problems.is_empty());
        // While a server writes, deletes or purges, one read can see half of a change.
        if is_fine || tries == TRIES || !LogLock::is_taken(folder) {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}

fn verify_once(folder: &Path, evidence: &AuditEvidence) -> Result<Verification, AuditError> {
    let failed = |source| AuditError::io(folder, source);
    let stored = StoredHead::read(folder).map_err(failed)?;
    let found = segments::list(folder).map_err(failed)?;
    let mut check = ChainCheck::new(&stored, evidence);
    for (index, segment) in found.iter().enumerate() {
        let failed = |source| AuditError::io(&segment.path, source);
        check.start_segment(segment);
        let (mut lines, mut line) = (segment.lines().map_err(failed)?, Vec::new());
        while lines.next(&mut line).map_err(failed)? {
            check.line(&line);
        }
        check.end_segment(index + 1 == found.len());
    }
    Ok(check.finish(&stored))
}
