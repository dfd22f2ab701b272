//! One stuck session in every dialect: the same findings from all of them.

use std::path::{Path, PathBuf};

use deloop_engine::Guard;
use deloop_formats::{FORMATS, Item, Source};
use deloop_policy::Profile;
use deloop_types::Action;

fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/src")
}

/// Every fixture of the canonical stuck session, with the format it is sniffed as.
fn fixtures() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let folders = ["agents", "apis"].map(|group| std::fs::read_dir(formats().join(group)).unwrap());
    for folder in folders.into_iter().flatten().flatten() {
        let Ok(files) = std::fs::read_dir(folder.path().join("fixtures")) else { continue };
        for file in files.flatten().map(|f| f.path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with("stuck") && file.is_file() {
                let bytes = std::fs::read(&file).unwrap();
                let format = deloop_formats::sniff(&bytes[..bytes.len().min(64 * 1024)]);
                let format = format.unwrap_or_else(|| panic!("{} is of no format", file.display()));
                found.push((format.name().to_owned(), file));
            }
        }
    }
    found
}

#[test]
fn every_dialect_tells_the_same_story() {
    let fixtures = fixtures();
    for format in FORMATS {
        assert!(
            format.name() == "native" || fixtures.iter().any(|(name, _)| name == format.name()),
            "{} has no fixtures/stuck",
            format.name()
        );
    }
    for (name, file) in fixtures {
        let guard = Guard::new(Profile::named("default").unwrap());
        let bytes = std::fs::read(&file).unwrap();
        let format = deloop_formats::find(&name).unwrap();
        let mut calls = 0;
        let mut told = Vec::new();
        let mut most = 0;
        deloop_formats::read(format, &bytes, &Source { path: Some(&file) }, &mut |item: Item| {
            if let deloop_types::Body::Turn(turn) = &item.step.body {
                calls += turn.calls.len();
            }
            let decision = guard.observe(&item.step);
            for finding in &decision.findings {
                most = most.max(finding.count);
            }
            if decision.action > Action::Continue {
                told.push(decision.action);
            }
        });
        assert_eq!(calls, 7, "{name}: seven calls in {}", file.display());
        assert_eq!(most, 7, "{name}: found seven times");
        assert_eq!(told.first(), Some(&Action::Nudge), "{name}: the first thing is a nudge");
    }
}
