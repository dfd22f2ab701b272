//! Every finding of `default` on every session at hand, checked against the steps it is about. What is counted here is
//! counted anew from the steps, with none of the detectors' code: a claim that isn't true fails the test.

mod check;
mod record;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use deloop_engine::{Guard, Options};
use deloop_formats::{Item, Source, read, sniff};
use deloop_policy::Profile;
use deloop_store::Limits;
use deloop_types::Step;

use record::Seen;

/// What was checked so far.
#[derive(Debug, Default)]
struct Tally {
    sessions: usize,
    findings: usize,
    untrue: Vec<String>,
}

#[test]
fn every_claim_of_the_corpus_is_true() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let tally = check_all(&files(&corpus));
    assert!(tally.sessions > 70 && tally.findings > 100, "{} sessions, {}", tally.sessions, tally.findings);
    assert_true(&tally);
}

/// Sessions that may lie beside the repository, and are no part of it.
#[test]
#[ignore = "needs shared sessions"]
fn every_claim_of_the_shared_sessions_is_true() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let mut found = Vec::new();
    for (set, every) in [("modern", 4), ("other", 1), ("corpus", 2)] {
        found.extend(files(&shared.join(set)).into_iter().step_by(every));
    }
    assert!(!found.is_empty(), "no sessions in {}", shared.display());
    let tally = check_all(&found);
    assert_true(&tally);
}

#[track_caller]
fn assert_true(tally: &Tally) {
    let some: Vec<&str> = tally.untrue.iter().take(12).map(String::as_str).collect();
    assert!(tally.untrue.is_empty(), "{} untrue claims:\n{}", tally.untrue.len(), some.join("\n"));
}

/// All files below a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let below = entries.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    below.filter(|path| path.file_name().is_some_and(|name| name != "labels.jsonl")).collect()
}

fn check_all(files: &[PathBuf]) -> Tally {
    let tally = Mutex::new(Tally::default());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (findings, untrue) = check_file(path);
                    let mut tally = tally.lock().unwrap();
                    tally.sessions += usize::from(findings.is_some());
                    tally.findings += findings.unwrap_or(0);
                    tally.untrue.extend(untrue);
                }
            });
        }
    });
    tally.into_inner().unwrap()
}

/// How many findings there were, if it is a session, and which claims are not true.
fn check_file(path: &Path) -> (Option<usize>, Vec<String>) {
    let Some(steps) = steps(path) else { return (None, Vec::new()) };
    let limits = Limits { idle: u64::MAX, ..Limits::default() };
    let guard = Guard::with(Profile::named("default").unwrap(), Options::default(), limits);
    let mut seen = Seen::default();
    let (mut findings, mut untrue) = (0, Vec::new());
    for step in &steps {
        let decision = guard.observe(step);
        let now = seen.enter(step);
        assert_eq!(decision.step, now.step, "{}", path.display());
        if let Err(why) = check::message(&decision) {
            untrue.push(format!("{} step {}: {why}\n    {decision:?}", path.display(), decision.step));
        }
        for finding in &decision.findings {
            findings += 1;
            if let Err(why) = check::check(finding, &now, &seen) {
                let place = format!("{} step {}", path.display(), decision.step);
                untrue.push(format!("{place}: {}: {why}\n    {finding:?}", finding.summary));
            }
        }
    }
    (Some(findings), untrue)
}

/// The steps of a file, if it is a session in a format that deloop reads.
fn steps(path: &Path) -> Option<Vec<Step>> {
    let mut bytes = std::fs::read(path).unwrap();
    let mut name = path.to_owned();
    if path.extension().is_some_and(|e| e == "gz") {
        let mut text = Vec::new();
        flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text).unwrap();
        bytes = text;
        name.set_extension("");
    }
    let format = sniff(&bytes[..bytes.len().min(64 << 10)])?;
    let mut steps = Vec::new();
    read(format, &bytes, &Source { path: Some(&name) }, &mut |item: Item| steps.push(item.step));
    Some(steps)
}
