use super::entry::DeletedUpTo;
use super::head::{AuditHead, StoredHead};
use super::line::{ChainedPart, LineParts, NO_RECORD};
use super::segments::Segment;
use super::verify::{AuditEvidence, AuditProblem, Verification};

/// Maximum number of problems that are listed.
const LISTED: usize = 100;

/// A record's word that others were purged or deleted.
struct Removal<T> {
    /// The record.
    by: u64,
    /// Whether a head or a key proves that the server wrote it, as far as there is evidence.
    is_proven: bool,
    what: T,
}

/// Checks the lines of a log one after the other.
pub(super) struct ChainCheck<'a> {
    evidence: &'a AuditEvidence,
    /// The last record that a head proves.
    proven: Option<u64>,
    found: Verification,
    segment: Option<String>,
    /// The number in the file's name, until its first record is read.
    named: Option<u64>,
    is_empty: bool,
    /// The number of the next record.
    next: Option<u64>,
    /// What the next record may name as the one before. Two if it isn't clear which of two hashes was changed.
    links: Vec<String>,
    /// What the first record names as the one before.
    first_prev: Option<String>,
    tombstones: Vec<(u64, u64)>,
    purges: Vec<Removal<(u64, u64)>>,
    deletions: Vec<Removal<DeletedUpTo>>,
    /// The first and last of the records that no key proves, as far as they follow one another.
    unproven: Option<(u64, u64)>,
    /// Whether the first record says that all before it were missing.
    begins_with_loss: bool,
    /// The hashes of the records that heads name.
    watched: Vec<(u64, Option<String>)>,
}

impl<'a> ChainCheck<'a> {
    pub(super) fn new(stored: &StoredHead, evidence: &'a AuditEvidence) -> Self {
        let stored = if let StoredHead::At(head) = stored { Some(head.seq) } else { None };
        let mut watched: Vec<u64> =
            stored.into_iter().chain(evidence.heads().map(|(head, _)| head.seq)).collect();
        watched.sort_unstable();
        watched.dedup();
        Self {
            evidence,
            proven: evidence.proven(),
            found: Verification::default(),
            segment: None,
            named: None,
            is_empty: true,
            next: None,
            links: Vec::new(),
            first_prev: None,
            tombstones: Vec::new(),
            purges: Vec::new(),
            deletions: Vec::new(),
            unproven: None,
            begins_with_loss: false,
            watched: watched.into_iter().map(|seq| (seq, None)).collect(),
        }
    }

    pub(super) fn start_segment(&mut self, segment: &Segment) {
        self.segment = Some(segment.name());
        (self.named, self.is_empty) = (segment.first, true);
        self.found.segments += 1;
        if segment.first.is_none() {
            self.problem(self.expected(), "its file doesn't have the name of a segment");
        }
    }

    pub(super) fn end_segment(&mut self, is_last: bool) {
        if self.is_empty && !is_last {
            self.problem(self.named.unwrap_or_else(|| self.expected()), "its file is empty");
        }
        self.segment = None;
    }

    pub(super) fn line(&mut self, line: &[u8]) {
        let is_first = std::mem::replace(&mut self.is_empty, false);
        if self.next.is_none() {
            self.found.first = self.named.or(Some(1));
            self.next = self.found.first;
        }
        let expected = self.expected();
        let parts = LineParts::of(line).and_then(|parts| Some((parts, parts.parse()?)));
        let Some((parts, chained)) = parts else {
            let what = if line.ends_with(b"\n") {
                "the line isn't a record"
            } else {
                "the line is incomplete; the next start of the server cuts it off if it is the last"
            };
            self.problem(expected, what);
            self.next = Some(expected + 1);
            return;
        };
        self.found.records += 1;
        let actual = parts.actual_hash();
        if actual != parts.hash {
            self.problem(expected, "it was changed: its content doesn't match its hash");
            (self.next, self.links) = (Some(expected + 1), vec![actual, parts.hash.to_owned()]);
            return;
        }
        if is_first && self.named != Some(chained.seq) {
            self.problem(chained.seq, "it isn't the record that the name of its file says");
        }
        if self.follows(&chained) {
            self.enter(&parts, &chained);
        }
    }

    fn expected(&self) -> u64 {
        self.next.or(self.named).unwrap_or(1)
    }

    /// Checks the number and the link of a record. Returns whether the chain goes on with it.
    fn follows(&mut self, chained: &ChainedPart) -> bool {
        let (seq, expected) = (chained.seq, self.expected());
        if seq < expected {
            self.problem(seq, "it is there twice or in the wrong place");
            return false;
        }
        let missing = chained.note.as_ref().and_then(|note| note.missing);
        let is_noted = missing == Some((expected, seq.saturating_sub(1))) && seq > expected;
        if is_noted {
            let what = format!("{}; the server noticed when it started", missing_text(expected, seq - 1));
            self.problem(expected, &what);
        } else if seq > expected {
            self.problem(expected, &missing_text(expected, seq - 1));
            return true;
        }
        if self.first_prev.is_none() && self.links.is_empty() {
            self.first_prev = Some(chained.prev.clone());
            self.begins_with_loss = missing == Some((1, seq - 1));
        } else if !self.links.contains(&chained.prev) && !self.links.is_empty() {
            self.problem(seq, "it doesn't follow from the record before it");
        }
        true
    }

    fn enter(&mut self, parts: &LineParts<'_>, chained: &ChainedPart) {
        let seq = chained.seq;
        let server = self.found.server.get_or_insert_with(|| chained.server.clone());
        if *server != chained.server {
            self.problem(seq, "it is from another server");
        }
        if let Some(purge) = parts.tombstone() {
            self.tombstones.push((seq, purge));
        } else if !parts.has_payload(chained) {
            self.problem(seq, "its payload was changed");
        }
        let is_proven = self.is_proven(parts, seq);
        if let Some(note) = &chained.note {
            let purges = note.purged.iter().map(|what| Removal { by: seq, is_proven, what: *what });
            self.purges.extend(purges);
            let deletion = note.deleted.clone().map(|what| Removal { by: seq, is_proven, what });
            self.deletions.extend(deletion);
            if let Some(bytes) = note.cut_bytes {
                self.notice(format!("record {seq}: an incomplete last line of {bytes} bytes was cut off"));
            }
            if let Some(lost) = note.lost {
                self.notice(format!("record {seq}: {lost} entries couldn't be written before it"));
            }
            if let Some(damage) = &note.damage {
                let damage = deloop_detect::clean(damage, 200);
                self.problem(seq, &format!("the server noticed damage: {damage}"));
            }
        }
        if let Ok(at) = self.watched.binary_search_by_key(&seq, |(watched, _)| *watched) {
            self.watched[at].1 = Some(parts.hash.to_owned());
        }
        self.found.head = Some(AuditHead { seq, hash: parts.hash.to_owned() });
        (self.next, self.links) = (Some(seq + 1), vec![parts.hash.to_owned()]);
    }

    /// Returns whether the evidence proves that the server wrote this record; `true` without evidence. With keys, a record
    /// must be proven.
    fn is_proven(&mut self, parts: &LineParts<'_>, seq: u64) -> bool {
        let keys = &self.evidence.keys;
        let is_authentic = !keys.is_empty() && parts.is_authentic(keys);
        self.found.authentic += u64::from(is_authentic);
        let is_proven = match self.proven {
            Some(proven) => seq <= proven || is_authentic,
            None => is_authentic || keys.is_empty(),
        };
        if !keys.is_empty() && !is_proven {
            match &mut self.unproven {
                Some((_, last)) if *last + 1 == seq => *last = seq,
                _ => {
                    self.report_unproven();
                    self.unproven = Some((seq, seq));
                }
            }
        }
        is_proven
    }

    fn report_unproven(&mut self) {
        if let Some((first, last)) = self.unproven.take() {
            let them = if first == last {
                "it wasn't".to_owned()
            } else {
                format!("it and those up to {last} weren't")
            };
            self.problem(first, &format!("{them} written with the key"));
        }
    }

    pub(super) fn finish(mut self, stored: &StoredHead) -> Verification {
        self.report_unproven();
        self.check_beginning();
        self.check_purges();
        let last = self.found.head.clone();
        let end = last.as_ref().map_or(0, |last| last.seq);
        match stored {
            StoredHead::At(head) => self.check_head(head, "the head file"),
            StoredHead::Absent if end > 0 => self.problem(end, "the head file is missing"),
            StoredHead::Damaged => self.problem(end, "the head file was changed"),
            StoredHead::Absent => {}
        }
        if let StoredHead::At(head) = stored
            && head.seq < end
        {
            let behind = end - head.seq;
            self.notice(format!(
                "the head file is {behind} behind, as after a crash; the server's next start renews it"
            ));
        }
        for (head, what) in self.evidence.heads() {
            self.check_head(head, what);
        }
        if self.evidence.published.as_ref().is_some_and(Vec::is_empty) {
            self.problem(1, "the shared store has no head of this log's server");
        }
        if self.found.records == 0 && !self.evidence.keys.is_empty() {
            self.problem(1, "it is missing, and with it everything that was written with the key");
        }
        self.found.purged = self.tombstones.len() as u64;
        self.found
    }

    fn check_beginning(&mut self) {
        let (Some(first), Some(prev)) = (self.found.first, &self.first_prev) else { return };
        if first == 1 {
            if prev != NO_RECORD {
                self.problem(first, "it doesn't follow from the record before it");
            }
            return;
        }
        let missing = missing_text(1, first - 1);
        match self.deletion_of(first - 1) {
            Some(Removal { by, is_proven: false, .. }) => {
                let what = format!("{missing}; {}", self.unproven_text(*by, "deleted"));
                self.problem(1, &what);
            }
            Some(Removal { what, .. }) if what.last == first - 1 && *prev != what.last_hash => {
                self.problem(first, "it doesn't follow from the record before it");
            }
            Some(_) => {}
            None => {
                let noticed = if self.begins_with_loss { "; the server noticed when it started" } else { "" };
                self.problem(1, &format!("{missing}{noticed}"));
            }
        }
    }

    /// Returns the deletion that explains why this record is gone; a proven one if there is one.
    fn deletion_of(&self, seq: u64) -> Option<&Removal<DeletedUpTo>> {
        let explains = |deletion: &&Removal<DeletedUpTo>| deletion.what.last >= seq;
        self.deletions.iter().filter(explains).max_by_key(|deletion| (deletion.is_proven, deletion.by))
    }

    fn unproven_text(&self, by: u64, removed: &str) -> String {
        let why = if self.evidence.keys.is_empty() {
            "was written after the head, so whoever can write the log could have written it; the key shows \
             who did"
        } else {
            "wasn't written with the key"
        };
        format!("record {by} says that it was {removed}, but {why}")
    }

    /// Every tombstone needs a purge that names it, and every purge its tombstones.
    fn check_purges(&mut self) {
        self.purges.sort_unstable_by_key(|purge| (purge.what, purge.by));
        let purges = std::mem::take(&mut self.purges);
        let tombstones = self.tombstones.clone();
        for (seq, purge) in &tombstones {
            let after = purges.partition_point(|Removal { what: (first, _), .. }| first <= seq);
            let named = purges[..after].last().filter(|named| named.what.1 >= *seq && named.by == *purge);
            let needs_proof =
                !self.evidence.keys.is_empty() || self.proven.is_some_and(|proven| *seq <= proven);
            match named {
                None => self.problem(*seq, "its payload was removed, and no purge names it"),
                Some(named) if needs_proof && !named.is_proven => {
                    let what = format!("its payload was removed; {}", self.unproven_text(named.by, "purged"));
                    self.problem(*seq, &what);
                }
                Some(_) => {}
            }
        }
        let first = self.found.first.unwrap_or(1);
        let end = self.found.head.as_ref().map_or(0, |head| head.seq);
        for Removal { what: (from, to), by, .. } in purges {
            let mut next = from.max(first);
            let at = tombstones.partition_point(|(seq, _)| *seq < next);
            for (seq, _) in &tombstones[at..] {
                if *seq != next || next > to {
                    break;
                }
                next += 1;
            }
            if next <= to.min(end) {
                self.problem(next, &format!("record {by} says it was purged, but its payload is there"));
            }
        }
    }

    fn check_head(&mut self, head: &AuditHead, what: &str) {
        let end = self.found.head.as_ref().map_or(0, |head| head.seq);
        if head.seq > end {
            let missing = missing_text(end + 1, head.seq);
            return self.problem(end + 1, &format!("{missing} at the end: {what} is {head}"));
        }
        let watched = self.watched.binary_search_by_key(&head.seq, |(seq, _)| *seq).ok();
        let hash = watched.and_then(|at| self.watched[at].1.as_ref());
        let deletion = self.deletion_of(head.seq).filter(|deletion| deletion.is_proven);
        let last_hash =
            deletion.map(|Removal { what, .. }| (what.last == head.seq).then_some(&what.last_hash));
        match (hash, last_hash) {
            (Some(hash), _) | (None, Some(Some(hash))) if *hash == head.hash => {}
            (None, Some(None)) => {
                self.notice(format!("record {}, {what}, was deleted by retention", head.seq));
            }
            _ => self.problem(head.seq, &format!("it isn't the one that {what} names")),
        }
    }

    fn problem(&mut self, seq: u64, what: &str) {
        if self.found.problems.len() < LISTED {
            let problem = AuditProblem { seq, segment: self.segment.clone(), what: what.to_owned() };
            self.found.problems.push(problem);
        } else {
            self.found.more_problems += 1;
        }
    }

    fn notice(&mut self, notice: String) {
        if self.found.notices.len() < LISTED {
            self.found.notices.push(notice);
        }
    }
}

fn missing_text(first: u64, last: u64) -> String {
    if first == last { "it is missing".to_owned() } else { format!("it and those up to {last} are missing") }
}
