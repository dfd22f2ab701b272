//! Whatever is changed in the files of a log is found, and named by the number of a record.

use std::path::{Path, PathBuf};

use deloop_types::{Millis, Step};

use super::line::{self, LineContext, LineParts};
use super::log_tests::{folder_of, of_head, open, stop};
use super::{AuditEntry, AuditEvidence, AuditHead, AuditProblem, verify};
use crate::project::Project;

/// A log with several segments, two of them with a purged record, and its lines with their files.
struct SampleLog {
    home: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<Vec<u8>>)>,
}

impl SampleLog {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        for round in 0..3 {
            let log = open(home.path());
            log.append(&[AuditEntry::new(Millis(round), "alice", "swarm.clear").of_swarm("w")]).unwrap();
            log.append(&[stop("s1", 3, &[Step::text("s1", "Again.")]), stop("s2", 4, &[])]).unwrap();
        }
        let log = open(home.path());
        log.purge(&Project::default(), &"s2".into(), "bob", Millis(9)).unwrap();
        log.append(&[stop("s3", 3, &[])]).unwrap();
        drop(log);
        let files = std::fs::read_dir(folder_of(home.path())).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
        files.sort();
        let lines = |path: &Path| -> Vec<Vec<u8>> {
            let bytes = std::fs::read(path).unwrap();
            bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
        };
        let files = files.into_iter().map(|path| (path.clone(), lines(&path))).collect();
        Self { home, files }
    }

    fn problems(&self) -> Vec<AuditProblem> {
        verify(&folder_of(self.home.path()), &AuditEvidence::default()).unwrap().problems
    }

    /// Runs `check` with these lines in the place of a file's.
    fn with(&self, file: usize, lines: &[Vec<u8>], check: impl FnOnce(Vec<AuditProblem>)) {
        let (path, before) = &self.files[file];
        std::fs::write(path, lines.concat()).unwrap();
        check(self.problems());
        std::fs::write(path, before.concat()).unwrap();
    }

    /// Returns the number of a line's record.
    fn seq(&self, file: usize, line: usize) -> u64 {
        1 + self.files[..file].iter().map(|(_, lines)| lines.len() as u64).sum::<u64>() + line as u64
    }

    fn places(&self) -> Vec<(usize, usize)> {
        let files = self.files.iter().enumerate();
        files.flat_map(|(file, (_, lines))| (0..lines.len()).map(move |line| (file, line))).collect()
    }
}

fn names(problems: &[AuditProblem], seqs: &[u64]) -> bool {
    problems.iter().any(|problem| seqs.contains(&problem.seq))
}

#[test]
fn the_log_itself_is_fine() {
    let log = SampleLog::new();
    let found = verify(&folder_of(log.home.path()), &AuditEvidence::default()).unwrap();
    assert!(found.problems.is_empty() && found.notices.is_empty(), "{found:?}");
    assert_eq!((found.records, found.purged, found.first), (12, 3, Some(1)));
    assert!(log.files.len() >= 4);
}

#[test]
fn any_changed_byte_is_found() {
    let log = SampleLog::new();
    for (file, line) in log.places() {
        let (path, before) = &log.files[file];
        let mut bytes = before.concat();
        let start: usize = before[..line].iter().map(Vec::len).sum();
        let seq = log.seq(file, line);
        for at in start..start + before[line].len() {
            let change = [1, 0x20, 0x80][at % 3];
            bytes[at] ^= change;
            std::fs::write(path, &bytes).unwrap();
            let problems = log.problems();
            assert!(names(&problems, &[seq]), "record {seq}, byte {at}: {problems:?}");
            bytes[at] ^= change;
        }
        std::fs::write(path, &bytes).unwrap();
    }
    assert!(log.problems().is_empty());
}

#[test]
fn any_removed_swapped_duplicated_or_inserted_line_is_found() {
    let log = SampleLog::new();
    for (file, line) in log.places() {
        let (seq, before) = (log.seq(file, line), &log.files[file].1);
        let mut removed = before.clone();
        removed.remove(line);
        log.with(file, &removed, |problems| assert!(names(&problems, &[seq]), "removed {seq}: {problems:?}"));
        if line + 1 < before.len() {
            let mut swapped = before.clone();
            swapped.swap(line, line + 1);
            log.with(file, &swapped, |problems| {
                assert!(names(&problems, &[seq]), "swapped {seq}: {problems:?}");
            });
        }
        for (other_file, other) in log.places() {
            let inserted = log.files[other_file].1[other].clone();
            let mut lines = before.clone();
            lines.insert(line, inserted);
            log.with(file, &lines, |problems| {
                let seqs = [seq, log.seq(other_file, other)];
                assert!(names(&problems, &seqs), "inserted before {seq}: {problems:?}");
            });
        }
        for garbage in ["\n", "{}\n", "null\n", " \n"] {
            let mut lines = before.clone();
            lines.insert(line, garbage.as_bytes().to_vec());
            log.with(file, &lines, |problems| assert!(names(&problems, &[seq]), "{garbage:?}: {problems:?}"));
        }
    }
}

#[test]
fn missing_renamed_and_foreign_files_are_found() {
    let log = SampleLog::new();
    let folder = folder_of(log.home.path());
    for (file, (path, _)) in log.files.iter().enumerate() {
        let aside = folder.join("aside");
        std::fs::rename(path, &aside).unwrap();
        let problems = log.problems();
        assert!(names(&problems, &[log.seq(file, 0)]), "without {file}: {problems:?}");
        std::fs::rename(&aside, folder.join("00000000000000000077.jsonl")).unwrap();
        assert!(!log.problems().is_empty(), "renamed {file}");
        std::fs::rename(folder.join("00000000000000000077.jsonl"), path).unwrap();
    }
    let other = SampleLog::new();
    log.with(1, &other.files[1].1, |problems| assert!(names(&problems, &[log.seq(1, 0)]), "{problems:?}"));
    std::fs::remove_file(folder.join("head")).unwrap();
    assert!(names(&log.problems(), &[12]));
}

#[test]
fn a_tail_that_is_gone_with_its_head_shows_by_a_noted_head() {
    let log = SampleLog::new();
    let folder = folder_of(log.home.path());
    let noted = verify(&folder, &AuditEvidence::default()).unwrap().head.unwrap();
    assert!(verify(&folder, &of_head(&noted)).unwrap().problems.is_empty());
    let (last, lines) = log.files.last().unwrap();
    std::fs::write(last, lines[..lines.len() - 1].concat()).unwrap();
    assert!(names(&log.problems(), &[12]), "the head file shows it");
    let hash = |line: &[u8]| LineParts::of(line).unwrap().hash.to_owned();
    let head = AuditHead { seq: 11, hash: hash(&lines[lines.len() - 2]) };
    std::fs::write(folder.join("head"), format!("{head}\n")).unwrap();
    assert!(log.problems().is_empty(), "nothing in the folder shows it");
    assert!(names(&verify(&folder, &of_head(&noted)).unwrap().problems, &[12]));
    assert!(verify(&folder, &of_head(&head)).unwrap().problems.is_empty());
    let other = AuditHead { seq: 5, hash: head.hash };
    assert!(names(&verify(&folder, &of_head(&other)).unwrap().problems, &[5]));
}

#[test]
fn a_payload_that_no_purge_removed_is_missed() {
    let log = SampleLog::new();
    let (file, line) = (1, 0);
    let mut lines = log.files[file].1.clone();
    let mut purged = Vec::new();
    LineParts::of(&lines[line]).unwrap().write_purged(11, &mut purged);
    lines[line] = purged;
    log.with(file, &lines, |problems| {
        assert!(names(&problems, &[log.seq(file, line)]), "{problems:?}");
        assert!(problems[0].what.contains("no purge"), "{problems:?}");
    });
}

#[test]
fn a_record_with_a_new_hash_breaks_the_link_of_the_next() {
    let log = SampleLog::new();
    for (file, line) in log.places() {
        let seq = log.seq(file, line);
        let mut lines = log.files[file].1.clone();
        let before = LineParts::of(&lines[line]).unwrap().parse().unwrap();
        let context = LineContext { server: before.server, configuration: None, key: None };
        let entry = AuditEntry::new(Millis(1000), "mallory", "decision.warn");
        lines[line].clear();
        line::write(&entry, &context, seq, &before.prev, &mut lines[line]).unwrap();
        log.with(file, &lines, |problems| {
            let shown = if seq == 12 { seq } else { seq + 1 };
            assert!(names(&problems, &[shown]), "{seq}: {problems:?}");
        });
    }
}
