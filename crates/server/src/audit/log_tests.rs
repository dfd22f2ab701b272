//! What a log survives: crashes, full disks, other processes, retention and purges.

use std::path::{Path, PathBuf};

use deloop_types::{Decision, Millis, Step};
use serde_json::json;

use super::{
    AuditEntry, AuditError, AuditEvidence, AuditFilter, AuditHead, AuditLog, AuditRecord, AuditSettings,
    TurnHistory, read_records, verify,
};
use crate::project::Project;

pub(super) fn folder_of(home: &Path) -> PathBuf {
    home.join("audit")
}

pub(super) fn of_head(head: &AuditHead) -> AuditEvidence {
    AuditEvidence { noted: Some(head.clone()), ..AuditEvidence::default() }
}

pub(super) fn open(home: &Path) -> AuditLog {
    open_at(home, AuditSettings::default(), Millis(0))
}

fn open_at(home: &Path, settings: AuditSettings, now: Millis) -> AuditLog {
    AuditLog::open(&folder_of(home), settings, now).unwrap()
}

/// The record of a stop after these steps.
pub(super) fn stop(session: &str, index: u64, steps: &[Step]) -> AuditEntry {
    let mut decision = Decision::go_on(session.into(), index);
    decision.action = deloop_types::Action::Stop;
    decision.message = Some(format!("secret-text-of-{session}"));
    let mut turns = TurnHistory::default();
    steps.iter().for_each(|step| turns.push(step));
    let step = Step::text(session, "x");
    let entry = AuditEntry::of_decision(Millis(1000), &Project::default(), "local", &step, &decision);
    entry.unwrap().with_turns(turns)
}

fn records(home: &Path) -> Vec<AuditRecord> {
    let mut all = Vec::new();
    let unreadable = read_records::<AuditError>(&folder_of(home), &AuditFilter::default(), |_, record| {
        all.push(record);
        Ok(())
    });
    assert_eq!(unreadable.unwrap(), 0);
    all
}

fn actions(home: &Path) -> Vec<String> {
    records(home).into_iter().map(|record| record.action).collect()
}

fn segments(home: &Path) -> Vec<PathBuf> {
    super::segments::list(&folder_of(home)).unwrap().into_iter().map(|segment| segment.path).collect()
}

#[track_caller]
fn assert_fine(home: &Path) {
    let found = verify(&folder_of(home), &AuditEvidence::default()).unwrap();
    assert!(found.problems.is_empty(), "{found:?}");
}

#[test]
fn records_are_numbered_over_restarts() {
    let home = tempfile::tempdir().unwrap();
    let settings = AuditSettings { configuration: Some("c0".to_owned()), ..AuditSettings::default() };
    let log = open_at(home.path(), settings, Millis(5));
    log.append(&[]).unwrap();
    log.append(&[stop("s1", 7, &[])]).unwrap();
    let (server, head) = (log.server().to_owned(), log.head());
    drop(log);
    let log = open(home.path());
    assert_eq!((log.server(), log.head()), (server.as_str(), head));
    log.append(&[AuditEntry::new(Millis(9), "al\u{1b}ice", "session.reset").of_session(&"s1".into())])
        .unwrap();
    drop(log);
    let all = records(home.path());
    assert_eq!(all.iter().map(|r| r.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(all[1].configuration.as_deref(), Some("c0"));
    assert_eq!((all[1].steps.unwrap().last, all[1].action.as_str()), (7, "decision.stop"));
    assert_eq!((all[2].actor.as_str(), all[2].session.as_deref()), ("al ice", Some("s1")));
    let filter = |action: &str| AuditFilter { action: Some(action.to_owned()), ..AuditFilter::default() };
    for (action, fits) in [("stop", 1), ("decision", 1), ("session.reset", 1), ("log", 1), ("s", 0)] {
        assert_eq!(all.iter().filter(|record| filter(action).fits(record)).count(), fits, "{action}");
    }
    assert_fine(home.path());
}

#[test]
fn a_second_process_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    let refused = AuditLog::open(&folder_of(home.path()), AuditSettings::default(), Millis(0)).err().unwrap();
    let why = refused.to_string();
    assert!(why.contains(&format!("in use by process {}", std::process::id())), "{why}");
    drop(log);
    open(home.path());
}

#[test]
fn a_torn_last_line_is_cut_off_and_noted() {
    let home = tempfile::tempdir().unwrap();
    open(home.path()).append(&[stop("s1", 7, &[])]).unwrap();
    let last = segments(home.path()).pop().unwrap();
    let mut bytes = std::fs::read(&last).unwrap();
    let half = bytes[bytes.len() - 100..bytes.len() - 2].to_vec();
    bytes.extend_from_slice(&half);
    std::fs::write(&last, &bytes).unwrap();
    let torn = verify(&folder_of(home.path()), &AuditEvidence::default()).unwrap().problems;
    assert!(torn.len() == 1 && torn[0].seq == 3 && torn[0].what.contains("incomplete"), "{torn:?}");
    drop(open(home.path()));
    assert_eq!(actions(home.path()), ["log.create", "decision.stop", "log.recover"]);
    assert_eq!(records(home.path())[2].note["cut_bytes"], 98);
    let found = verify(&folder_of(home.path()), &AuditEvidence::default()).unwrap();
    assert!(found.problems.is_empty() && found.notices[0].contains("98 bytes"), "{found:?}");
}

#[test]
fn a_lost_tail_shows_for_good() {
    let home = tempfile::tempdir().unwrap();
    open(home.path()).append(&[stop("s1", 7, &[]), stop("s1", 8, &[])]).unwrap();
    let last = segments(home.path()).pop().unwrap();
    let bytes = std::fs::read(&last).unwrap();
    let first = bytes.split_inclusive(|b| *b == b'\n').next().unwrap();
    std::fs::write(&last, first).unwrap();
    let log = open(home.path());
    assert_eq!(log.head().seq, 4, "numbers aren't used twice");
    log.append(&[stop("s1", 9, &[])]).unwrap();
    drop(log);
    for _ in 0..2 {
        let problems = verify(&folder_of(home.path()), &AuditEvidence::default()).unwrap().problems;
        assert!(problems.len() == 1 && problems[0].seq == 2, "{problems:?}");
        assert!(problems[0].what.contains("up to 3 are missing"), "{problems:?}");
        drop(open(home.path()));
    }
    segments(home.path()).iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert_eq!(verify(&folder_of(home.path()), &AuditEvidence::default()).unwrap().problems[0].seq, 1);
    drop(open(home.path()));
    let problems = verify(&folder_of(home.path()), &AuditEvidence::default()).unwrap().problems;
    assert!(problems.len() == 1 && problems[0].seq == 1, "{problems:?}");
}

#[test]
fn a_log_deleted_under_a_running_server_shows() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    log.append(&[stop("s1", 7, &[])]).unwrap();
    segments(home.path()).iter().for_each(|path| std::fs::remove_file(path).unwrap());
    log.append(&[stop("s1", 8, &[])]).unwrap();
    drop(log);
    assert_eq!(records(home.path()).len(), 1, "later records are kept");
    assert_eq!(verify(&folder_of(home.path()), &AuditEvidence::default()).unwrap().problems[0].seq, 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_counted_and_noted_later() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    log.writer().write_to(full);
    for failures in [1, 2] {
        let why = log.append(&[stop("s1", 7, &[])]).unwrap_err().to_string();
        assert!(failures == 2 || why.contains("space"), "{why}");
        assert_eq!((log.failures(), log.head().seq), (failures, 1));
    }
    assert!(log.check(Millis(9)).is_err());
    log.writer().seal();
    log.check(Millis(9)).unwrap();
    log.append(&[stop("s1", 8, &[])]).unwrap();
    assert_eq!(log.failures(), 2);
    drop(log);
    assert_eq!(actions(home.path()), ["log.create", "log.lost", "decision.stop"]);
    assert_eq!(records(home.path())[1].note, json!({"lost": 2}));
    assert_fine(home.path());
}

#[test]
fn old_segments_go_and_the_rest_verifies() {
    let day = 24 * 3_600_000;
    let home = tempfile::tempdir().unwrap();
    let settings = AuditSettings { keep_days: Some(3), ..AuditSettings::default() };
    let log = open_at(home.path(), settings, Millis(0));
    for n in 1..=10 {
        let mut entry = stop("s1", 7, &[]);
        entry.ts = Millis(n * day);
        log.append(&[entry]).unwrap();
    }
    drop(log);
    let kept = records(home.path());
    assert_eq!(kept.iter().filter(|r| r.action == "decision.stop").count(), 3, "{:?}", actions(home.path()));
    assert!(
        kept.iter().any(|record| record.action == "log.delete" && record.note["deleted"]["last"].is_u64())
    );
    assert_fine(home.path());
    let first = segments(home.path()).remove(0);
    std::fs::remove_file(first).unwrap();
    assert!(
        !verify(&folder_of(home.path()), &AuditEvidence::default()).unwrap().problems.is_empty(),
        "retention didn't delete it"
    );

    let home = tempfile::tempdir().unwrap();
    let settings = AuditSettings { keep_mib: Some(1), ..AuditSettings::default() };
    let log = open_at(home.path(), settings, Millis(0));
    let large = || AuditEntry::new(Millis(1), "alice", "x").with_detail(json!("x".repeat(10_000)));
    for _ in 0..300 {
        log.append(&[large()]).unwrap();
    }
    drop(log);
    let size: u64 = segments(home.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!((500_000..1_400_000).contains(&size), "{size}");
    assert_fine(home.path());
}

#[test]
fn a_purge_leaves_a_tombstone_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let log = open(home.path());
    for name in ["gone", "stays", "gone"] {
        log.append(&[stop(name, 7, &[Step::text(name, format!("turn of {name}"))])]).unwrap();
    }
    let other = AuditEntry::new(Millis(1), "x", "session.reset").of_session(&"gone".into());
    log.append(&[other.in_project(&Project::parse("other").unwrap())]).unwrap();
    let before: Vec<(PathBuf, Vec<u8>)> =
        segments(home.path()).into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    let head = log.head();
    assert_eq!(log.purge(&Project::default(), &"gone".into(), "bob", Millis(5)).unwrap(), 2);
    assert_eq!(log.purge(&Project::default(), &"gone".into(), "bob", Millis(6)).unwrap(), 0);
    let purged = log.head();
    log.append(&[stop("gone", 9, &[])]).unwrap();
    drop(log);
    let all = records(home.path());
    assert_eq!((all[1].purged, all[3].purged, all[2].purged), (Some(6), Some(6), None));
    assert_eq!((all[1].session.as_deref(), all[4].session.as_deref()), (None, Some("gone")));
    assert_eq!((all[5].action.as_str(), all[5].actor.as_str()), ("session.purge", "bob"));
    let before_the_purge = verify(&folder_of(home.path()), &of_head(&head)).unwrap().problems;
    assert!(before_the_purge[0].what.contains("written after the head"), "{before_the_purge:?}");
    assert!(verify(&folder_of(home.path()), &of_head(&purged)).unwrap().problems.is_empty());
    let first = std::fs::read_to_string(&segments(home.path())[0]).unwrap();
    assert!(!first.contains("of-gone") && !first.contains("turn of gone"), "{first}");
    assert!(first.contains("turn of stays"));

    // A crash before the files were rewritten.
    for (path, bytes) in before {
        std::fs::write(path, bytes).unwrap();
    }
    let problems = verify(&folder_of(home.path()), &AuditEvidence::default()).unwrap().problems;
    assert!(problems[0].seq == 2 && problems[0].what.contains("its payload is there"), "{problems:?}");
    std::fs::write(folder_of(home.path()).join("purging"), "").unwrap();
    drop(open(home.path()));
    assert_fine(home.path());
    assert!(!std::fs::read_to_string(&segments(home.path())[0]).unwrap().contains("turn of gone"));
}

#[test]
fn records_purges_and_retention_at_the_same_time() {
    let home = tempfile::tempdir().unwrap();
    let settings = AuditSettings { keep_mib: Some(1), ..AuditSettings::default() };
    let log = open_at(home.path(), settings, Millis(0));
    let detail = json!("y".repeat(2000));
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (log, detail) = (&log, &detail);
            scope.spawn(move || {
                let entry = || stop(&format!("s{n}"), 7, &[]).with_detail(detail.clone());
                (0..300).for_each(|_| log.append(&[entry(), entry()]).unwrap());
            });
        }
        for n in 0..5 {
            log.purge(&Project::default(), &format!("s{}", n % 4).as_str().into(), "bob", Millis(5)).unwrap();
            let found = verify(&folder_of(home.path()), &AuditEvidence::default()).unwrap();
            assert!(found.problems.is_empty(), "{found:?}");
        }
    });
    // What nobody purges is more than is kept, so retention deletes the oldest, perhaps all that was purged until now.
    for _ in 0..600 {
        log.append(&[stop("kept", 7, &[]).with_detail(detail.clone())]).unwrap();
    }
    log.append(&[stop("s0", 7, &[])]).unwrap();
    log.purge(&Project::default(), &"s0".into(), "bob", Millis(5)).unwrap();
    let head = log.head();
    drop(log);
    let found = verify(&folder_of(home.path()), &AuditEvidence::default()).unwrap();
    assert!(found.problems.is_empty() && found.head == Some(head), "{found:?}");
    assert!(found.first > Some(1) && found.purged > 0, "{found:?}");
}
