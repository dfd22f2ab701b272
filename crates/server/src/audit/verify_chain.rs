use super::entry::DeletedUpTo;
use super::head::{AuditHead, StoredHead};
use super::line::{ChainedPart, LineParts, NO_RECORD};
use super::segments::Segment;
use super::verify::{AuditProblem, Verification};

/// Maximum number of problems that are listed.
const LISTED: usize = 100;

/// Checks the lines of a log one after the other.
pub(super) struct ChainCheck {
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
    purges: Vec<(u64, u64, u64)>,
    deleted: Option<DeletedUpTo>,
    /// Whether the first record says that all before it were missing.
    begins_with_loss: bool,
    /// The hashes of the records that heads name.
    watched: Vec<(u64, Option<String>)>,
}

impl ChainCheck {
    pub(super) fn new(stored: &StoredHead, expected: Option<&AuditHead>) -> Self {
        let stored = if let StoredHead::At(head) = stored { Some(head) } else { None };
        Self {
            found: Verification::default(),
            segment: None,
            named: None,
            is_empty: true,
            next: None,
            links: Vec::new(),
            first_prev: None,
            tombstones: Vec::new(),
            purges: Vec::new(),
            deleted: None,
            begins_with_loss: false,
            watched: stored.into_iter().chain(expected).map(|head| (head.seq, None)).collect(),
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
        if let Some(note) = &chained.note {
            self.purges.extend(note.purged.iter().map(|(first, last)| (*first, *last, seq)));
            self.deleted = note.deleted.clone().or(self.deleted.take());
            if let Some(bytes) = note.cut_bytes {
                self.notice(format!("record {seq}: an incomplete last line of {bytes} bytes was cut off"));
            }
            if let Some(lost) = note.lost {
                self.notice(format!("record {seq}: {lost} entries couldn't be written before it"));
            }
            if let Some(damage) = &note.damage {
                let damage = deloop_detect::clean(damage, 200);
                self.problem(seq, &format!("the server noticed damage when it started: {damage}"));
            }
        }
        for (watched, hash) in &mut self.watched {
            if *watched == seq {
                *hash = Some(parts.hash.to_owned());
            }
        }
        self.found.head = Some(AuditHead { seq, hash: parts.hash.to_owned() });
        (self.next, self.links) = (Some(seq + 1), vec![parts.hash.to_owned()]);
    }

    pub(super) fn finish(mut self, stored: &StoredHead, expected: Option<&AuditHead>) -> Verification {
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
        if let Some(head) = expected {
            self.check_head(head, "the head that you noted");
        }
        self.found.purged = self.tombstones.len() as u64;
        self.found
    }

    fn check_beginning(&mut self) {
        let Some(first) = self.found.first else { return };
        let deleted = self.deleted.as_ref().filter(|deleted| deleted.last.saturating_add(1) >= first);
        let Some(prev) = &self.first_prev else { return };
        let is_linked = match deleted {
            _ if first == 1 => prev == NO_RECORD,
            Some(deleted) if deleted.last.saturating_add(1) == first => *prev == deleted.last_hash,
            Some(_) => true,
            None => {
                let noticed = if self.begins_with_loss { "; the server noticed when it started" } else { "" };
                return self.problem(1, &format!("{}{noticed}", missing_text(1, first - 1)));
            }
        };
        if !is_linked {
            self.problem(first, "it doesn't follow from the record before it");
        }
    }

    /// Every tombstone needs a purge that names it, and every purge its tombstones.
    fn check_purges(&mut self) {
        self.purges.sort_unstable();
        let purges = std::mem::take(&mut self.purges);
        let tombstones = self.tombstones.clone();
        for (seq, purge) in &tombstones {
            let after = purges.partition_point(|(first, ..)| first <= seq);
            let named = purges[..after].last().is_some_and(|(_, last, by)| last >= seq && by == purge);
            if !named {
                self.problem(*seq, "its payload was removed, and no purge names it");
            }
        }
        let first = self.found.first.unwrap_or(1);
        let end = self.found.head.as_ref().map_or(0, |head| head.seq);
        for (from, to, purge) in purges {
            let mut next = from.max(first);
            let at = tombstones.partition_point(|(seq, _)| *seq < next);
            for (seq, _) in &tombstones[at..] {
                if *seq != next || next > to {
                    break;
                }
                next += 1;
            }
            if next <= to.min(end) {
                self.problem(next, &format!("record {purge} says it was purged, but its payload is there"));
            }
        }
    }

    fn check_head(&mut self, head: &AuditHead, what: &str) {
        let end = self.found.head.as_ref().map_or(0, |head| head.seq);
        if head.seq > end {
            let missing = missing_text(end + 1, head.seq);
            return self.problem(end + 1, &format!("{missing} at the end: {what} is {head}"));
        }
        let hash = self.watched.iter().find(|(seq, _)| *seq == head.seq).and_then(|(_, hash)| hash.clone());
        let hash = hash.or_else(|| {
            let deleted = self.deleted.as_ref().filter(|deleted| deleted.last == head.seq)?;
            Some(deleted.last_hash.clone())
        });
        match hash {
            Some(hash) if hash == head.hash => {}
            None if self.deleted.as_ref().is_some_and(|deleted| deleted.last > head.seq) => {
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
