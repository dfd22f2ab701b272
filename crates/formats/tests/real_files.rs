//! Reads real session files from the folder `shared/corpus` beside the repository, or from `DELOOP_CORPUS`, and pins what
//! comes out of each format.

#![expect(clippy::disallowed_methods, reason = "sessions are files")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deloop_formats::{Item, Source, read, sniff};
use deloop_types::Body;

fn corpus() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    std::env::var_os("DELOOP_CORPUS").map_or_else(beside, PathBuf::from)
}

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, out) } else { out.push(path) }
    }
}

#[derive(Default, serde::Serialize)]
struct Counts {
    files: u64,
    turns: u64,
    calls: u64,
    results: u64,
    failed: u64,
    usage: u64,
    unreadable: u64,
}

#[test]
#[ignore = "needs shared sessions"]
fn every_real_file_is_read() {
    let corpus = corpus();
    let mut all = Vec::new();
    files(&corpus, &mut all);
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    for path in all.iter().filter(|p| p.parent() != Some(&corpus)) {
        let bytes = std::fs::read(path).unwrap();
        let format = sniff(&bytes[..bytes.len().min(64 * 1024)]);
        let format = format.unwrap_or_else(|| panic!("{} is of no format", path.display()));
        let folder = path.strip_prefix(&corpus).unwrap().components().next().unwrap();
        let folder = folder.as_os_str().to_string_lossy();
        assert!(
            format.name().starts_with(folder.as_ref()),
            "{} is taken for {}",
            path.display(),
            format.name()
        );
        let count = counts.entry(format.name()).or_default();
        count.files += 1;
        let report =
            read(format, &bytes, &Source { path: Some(path) }, &mut |item: Item| match &item.step.body {
                Body::Turn(turn) => {
                    count.turns += 1;
                    count.calls += turn.calls.len() as u64;
                }
                Body::Result(result) => {
                    count.results += 1;
                    count.failed += u64::from(result.ended().is_some_and(deloop_types::Outcome::failed));
                }
                Body::Usage(_) => count.usage += 1,
                _ => {}
            });
        count.unreadable += report.unreadable;
    }
    insta::assert_json_snapshot!("every_real_file_is_read", counts);
}
