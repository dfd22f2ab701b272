//! What someone can do who can write a log's folder, and what shows it.

use std::sync::Arc;

use deloop_store::{MemoryRecords, SharedRecords};
use deloop_types::Millis;

use super::entry::{DeletedUpTo, LogNote};
use super::line::{self, LineContext, LineParts};
use super::log_tests::{folder_of, of_head, stop};
use super::segments::{self, Segment};
use super::{
    AuditEntry, AuditEvidence, AuditHead, AuditKey, AuditLog, AuditProblem, AuditSettings, published_heads,
    verify,
};
use crate::project::Project;

const PLAIN: AuditEvidence = AuditEvidence { noted: None, published: None, keys: Vec::new() };
const DAY: i64 = 24 * 3_600_000;

fn key() -> AuditKey {
    AuditKey::of_secret(&[b'k'; 32]).unwrap()
}

fn of_key() -> AuditEvidence {
    AuditEvidence { keys: vec![key()], ..PLAIN }
}

/// A log of four segments with three records each.
struct AttackedLog {
    home: tempfile::TempDir,
    key: Option<AuditKey>,
    records: Arc<dyn SharedRecords>,
    server: String,
}

impl AttackedLog {
    fn new(key: Option<AuditKey>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut this = Self { home, key, records: Arc::new(MemoryRecords::default()), server: String::new() };
        for round in 0..4 {
            let log = this.open(AuditSettings::default(), Millis(round * DAY));
            let count = if round == 0 { 2 } else { 3 };
            for n in 0..count {
                let mut entry = stop(&format!("s{n}"), 3, &[]);
                entry.ts = Millis(round * DAY);
                log.append(&[entry]).unwrap();
            }
            this.server = log.server().to_owned();
        }
        this
    }

    fn open(&self, mut settings: AuditSettings, now: Millis) -> AuditLog {
        settings.key = self.key.clone();
        let log = AuditLog::open(&folder_of(self.home.path()), settings, now).unwrap();
        log.publish_to(Arc::clone(&self.records));
        log.publish_if_due(now).unwrap();
        log
    }

    fn problems(&self, evidence: &AuditEvidence) -> Vec<AuditProblem> {
        verify(&folder_of(self.home.path()), evidence).unwrap().problems
    }

    #[track_caller]
    fn assert_fine(&self, evidence: &AuditEvidence) {
        let problems = self.problems(evidence);
        assert!(problems.is_empty(), "{problems:?}");
    }

    /// Checks that a problem names this record and says this.
    #[track_caller]
    fn assert_shows(&self, evidence: &AuditEvidence, seq: u64, what: &str) {
        let problems = self.problems(evidence);
        let shows = |problem: &AuditProblem| problem.seq == seq && problem.what.contains(what);
        assert!(problems.iter().any(shows), "{problems:?}");
    }

    fn head(&self) -> AuditHead {
        verify(&folder_of(self.home.path()), &PLAIN).unwrap().head.unwrap()
    }

    fn of_store(&self) -> AuditEvidence {
        let heads = published_heads(self.records.as_ref(), &self.server, Millis(0)).unwrap();
        AuditEvidence { published: Some(heads), ..PLAIN }
    }

    fn segments(&self) -> Vec<Segment> {
        segments::list(&folder_of(self.home.path())).unwrap()
    }

    fn lines(segment: &Segment) -> Vec<Vec<u8>> {
        let bytes = std::fs::read(&segment.path).unwrap();
        bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
    }

    fn hash_of(line: &[u8]) -> String {
        LineParts::of(line).unwrap().hash.to_owned()
    }

    /// Writes a record behind the last one, and the head file, as a server without the key would.
    fn forge(&self, entry: &AuditEntry) {
        let context = LineContext { server: self.server.clone(), configuration: None, key: None };
        let last = self.segments().pop().unwrap();
        let mut lines = Self::lines(&last);
        let before = lines.last().unwrap();
        let seq = LineParts::of(before).unwrap().parse().unwrap().seq + 1;
        let mut line = Vec::new();
        let hash = line::write(entry, &context, seq, &Self::hash_of(before), &mut line).unwrap();
        lines.push(line);
        std::fs::write(&last.path, lines.concat()).unwrap();
        self.set_head_file(&AuditHead { seq, hash });
    }

    fn set_head_file(&self, head: &AuditHead) {
        std::fs::write(folder_of(self.home.path()).join("head"), format!("{head}\n")).unwrap();
    }

    /// Removes the first two segments, and records that retention did it.
    fn forge_a_deletion(&self) {
        let found = self.segments();
        let last = Self::lines(&found[1]).pop().unwrap();
        let deleted = Some(DeletedUpTo { last: 6, last_hash: Self::hash_of(&last) });
        let note = LogNote { deleted, ..LogNote::default() };
        self.forge(&AuditEntry::new(Millis(4 * DAY), "deloop", "log.delete").with_note(note));
        found[..2].iter().for_each(|segment| std::fs::remove_file(&segment.path).unwrap());
    }

    /// Removes the payload of record 5, and records that an operator purged it.
    fn forge_a_purge(&self) {
        let segment = self.segments().swap_remove(1);
        let mut lines = Self::lines(&segment);
        let mut purged = Vec::new();
        LineParts::of(&lines[1]).unwrap().write_purged(13, &mut purged);
        lines[1] = purged;
        std::fs::write(&segment.path, lines.concat()).unwrap();
        let note = LogNote { purged: vec![(5, 5)], ..LogNote::default() };
        let entry = AuditEntry::new(Millis(4 * DAY), "alice", "session.purge");
        self.forge(&entry.in_project(&Project::default()).with_note(note));
    }
}

#[test]
fn an_untouched_log_is_fine_by_all_evidence() {
    let log = AttackedLog::new(Some(key()));
    let noted = log.head();
    assert_eq!(noted.seq, 12);
    let heads = [of_head(&noted), of_key(), log.of_store(), PLAIN];
    heads.iter().for_each(|evidence| log.assert_fine(evidence));
    assert_eq!(verify(&folder_of(log.home.path()), &of_key()).unwrap().authentic, 12);
    let other = AuditKey::of_secret(&[b'o'; 32]).unwrap();
    log.assert_shows(&AuditEvidence { keys: vec![other.clone()], ..PLAIN }, 1, "those up to 12 weren't");
    log.assert_fine(&AuditEvidence { keys: vec![other, key()], ..PLAIN });
    let unkeyed = AttackedLog::new(None);
    unkeyed.assert_shows(&of_key(), 1, "those up to 12 weren't written with the key");
    unkeyed.assert_fine(&AuditEvidence { noted: Some(unkeyed.head()), ..of_key() });
}

#[test]
fn a_removed_segment_shows_without_evidence() {
    for index in 0..4 {
        let log = AttackedLog::new(None);
        std::fs::remove_file(&log.segments()[index].path).unwrap();
        log.assert_shows(&PLAIN, 3 * index as u64 + 1, "missing");
    }
}

#[test]
fn a_forged_deletion_shows_by_a_head_the_shared_store_and_the_key() {
    let log = AttackedLog::new(Some(key()));
    let (noted, early) = (
        log.head(),
        LineParts::of(&AttackedLog::lines(&log.segments()[0])[1])
            .map(|parts| AuditHead { seq: 2, hash: parts.hash.to_owned() }),
    );
    log.forge_a_deletion();
    log.assert_fine(&PLAIN);
    log.assert_shows(
        &of_head(&noted),
        1,
        "record 13 says that it was deleted, but was written after the head",
    );
    log.assert_shows(&of_head(&early.unwrap()), 1, "record 13 says that it was deleted");
    log.assert_shows(&log.of_store(), 1, "record 13 says that it was deleted");
    log.assert_shows(&of_key(), 13, "it wasn't written with the key");
    log.assert_shows(&of_key(), 1, "record 13 says that it was deleted, but wasn't written with the key");
}

#[test]
fn a_forged_deletion_of_the_noted_record_and_all_before_it_shows() {
    let log = AttackedLog::new(None);
    let last = AttackedLog::lines(&log.segments()[1]).pop().unwrap();
    let noted = AuditHead { seq: 6, hash: AttackedLog::hash_of(&last) };
    log.assert_fine(&of_head(&noted));
    log.forge_a_deletion();
    log.assert_fine(&PLAIN);
    log.assert_shows(&of_head(&noted), 1, "record 13 says that it was deleted");
    log.assert_shows(&of_head(&noted), 6, "it isn't the one that the head that you noted names");
}

#[test]
fn a_forged_purge_shows_by_a_head_the_shared_store_and_the_key() {
    let log = AttackedLog::new(Some(key()));
    let noted = log.head();
    log.forge_a_purge();
    log.assert_fine(&PLAIN);
    log.assert_shows(
        &of_head(&noted),
        5,
        "record 13 says that it was purged, but was written after the head",
    );
    log.assert_shows(&log.of_store(), 5, "record 13 says that it was purged");
    log.assert_shows(&of_key(), 5, "record 13 says that it was purged, but wasn't written with the key");
}

#[test]
fn a_truncated_tail_shows_by_a_head_and_the_shared_store() {
    let log = AttackedLog::new(Some(key()));
    let noted = log.head();
    let last = log.segments().pop().unwrap();
    let before = AttackedLog::lines(&log.segments()[2]).pop().unwrap();
    std::fs::remove_file(last.path).unwrap();
    log.set_head_file(&AuditHead { seq: 9, hash: AttackedLog::hash_of(&before) });
    log.assert_fine(&PLAIN);
    log.assert_shows(&of_head(&noted), 10, "those up to 12 are missing at the end");
    log.assert_shows(&log.of_store(), 10, "those up to 12 are missing at the end");
    // What is left was written with the key: only a head shows that more was.
    log.assert_fine(&of_key());
}

#[test]
fn a_chain_that_is_rewritten_from_a_record_shows_by_a_head_the_shared_store_and_the_key() {
    let log = AttackedLog::new(Some(key()));
    let noted = log.head();
    let last = log.segments().pop().unwrap();
    let lines = AttackedLog::lines(&last);
    let mut prev = LineParts::of(&lines[0]).unwrap().parse().unwrap().prev;
    let context = LineContext { server: log.server.clone(), configuration: None, key: None };
    let mut forged = Vec::new();
    for seq in 10..=12 {
        let entry = AuditEntry::new(Millis(3 * DAY), "mallory", "decision.warn");
        prev = line::write(&entry, &context, seq, &prev, &mut forged).unwrap();
    }
    std::fs::write(&last.path, &forged).unwrap();
    log.set_head_file(&AuditHead { seq: 12, hash: prev });
    log.assert_fine(&PLAIN);
    log.assert_shows(&of_head(&noted), 12, "it isn't the one that the head that you noted names");
    log.assert_shows(&log.of_store(), 12, "it isn't the one that the head in the shared store names");
    log.assert_shows(&of_key(), 10, "it and those up to 12 weren't written with the key");
}

#[test]
fn a_log_that_is_removed_and_started_again_shows_by_a_head_and_the_shared_store() {
    let log = AttackedLog::new(Some(key()));
    let noted = log.head();
    std::fs::remove_dir_all(folder_of(log.home.path())).unwrap();
    std::fs::create_dir(folder_of(log.home.path())).unwrap();
    log.assert_shows(&of_key(), 1, "missing");
    let new = log.open(AuditSettings::default(), Millis(5 * DAY));
    let server = new.server().to_owned();
    drop(new);
    log.assert_fine(&of_key());
    log.assert_shows(&of_head(&noted), 2, "missing at the end");
    log.assert_shows(&log.of_store(), 2, "missing at the end");
    let none = published_heads(&MemoryRecords::default(), &server, Millis(0)).unwrap();
    let evidence = AuditEvidence { published: Some(none), ..PLAIN };
    log.assert_shows(&evidence, 1, "the shared store has no head of this log's server");
}

#[test]
fn what_the_server_deletes_and_purges_is_proven_by_the_key_and_the_shared_store() {
    let log = AttackedLog::new(Some(key()));
    let noted = log.head();
    let settings = AuditSettings { keep_days: Some(2), ..AuditSettings::default() };
    let open = log.open(settings, Millis(4 * DAY));
    assert_eq!(log.segments()[0].first, Some(10), "three segments are old");
    open.purge(&Project::default(), &"s1".into(), "alice", Millis(4 * DAY)).unwrap();
    open.append(&[stop("s4", 3, &[])]).unwrap();
    drop(open);
    for evidence in [PLAIN, of_key(), log.of_store(), of_head(&log.head())] {
        log.assert_fine(&evidence);
    }
    let both = AuditEvidence { noted: Some(noted.clone()), ..of_key() };
    log.assert_fine(&both);
    log.assert_shows(&of_head(&noted), 1, "the key shows who did");
}

#[test]
fn a_log_with_a_key_isnt_continued_without_it() {
    let log = AttackedLog::new(Some(key()));
    let folder = folder_of(log.home.path());
    let refused = AuditLog::open(&folder, AuditSettings::default(), Millis(0)).err().unwrap().to_string();
    assert!(refused.contains("written with a key") && refused.contains("--key-file"), "{refused}");
    log.assert_fine(&of_key());
}

#[test]
fn records_that_are_made_to_look_old_arent_deleted_unnoticed() {
    for key in [None, Some(key())] {
        let log = AttackedLog::new(key);
        let noted = log.head();
        let segment = log.segments().swap_remove(1);
        let mut lines = AttackedLog::lines(&segment);
        let text = String::from_utf8(lines.pop().unwrap()).unwrap();
        let old = text.replacen("1970-01-02T", "1969-01-02T", 1);
        assert_ne!(old, text);
        lines.push(old.into_bytes());
        std::fs::write(&segment.path, lines.concat()).unwrap();
        let settings = AuditSettings { keep_days: Some(200), ..AuditSettings::default() };
        drop(log.open(settings, Millis(4 * DAY)));
        assert_eq!(log.segments()[0].first, Some(1), "the first one is young, so nothing is deleted");
        let settings = AuditSettings { keep_days: Some(4), ..AuditSettings::default() };
        drop(log.open(settings, Millis(4 * DAY)));
        assert_eq!(log.segments()[0].first, Some(7));
        let evidence = AuditEvidence {
            keys: log.key.clone().into_iter().collect(),
            noted: Some(noted),
            published: None,
        };
        for evidence in [&PLAIN, &evidence, &log.of_store()] {
            let problems = log.problems(evidence);
            let shows =
                |problem: &AuditProblem| problem.what.contains("had been changed before they were deleted");
            assert!(problems.iter().any(shows), "{problems:?}");
        }
    }
}
