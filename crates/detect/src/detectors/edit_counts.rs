//! Counts the edits of each file, for the detectors that compare edits with test runs.

use deloop_types::{Evidence, Finding, Repeats};
use serde::{Deserialize, Serialize};

use super::awaited::Awaited;
use super::test_progress::{LastTestRun, TestRun};
use crate::fingerprint::half;
use crate::reading::file_edits;
use crate::{Happening, Moment, Ring, quote, short_hash};

/// Number of files that are counted: those edited last.
const FILES: usize = 16;
/// Number of edits of one call that are read.
const EDITS: usize = 256;
/// Maximum length of a file's name in a finding, in characters.
const NAME: usize = 48;

/// The edits since the last progress.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct EditCounts {
    files: Ring<EditedFile>,
    awaited: Awaited<Vec<NamedFile>>,
    last_run: LastTestRun,
    /// Number of test runs without progress.
    runs: u32,
}

/// A file and its edits.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct EditedFile {
    file: u32,
    count: u64,
    since: u64,
    /// Number of test runs before the first edit.
    runs: u32,
}

/// A file that a call edits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct NamedFile {
    file: u32,
    name: String,
    step: u64,
}

/// Says which edits count, what ends the count, and when there is a finding.
pub(crate) struct EditRule {
    /// The detector.
    pub(crate) detector: &'static str,
    /// What its findings are about.
    pub(crate) repeats: Repeats,
    /// Which files count.
    pub(crate) concerns: fn(&Moment<'_>, &str) -> bool,
    /// Which test runs end the count.
    pub(crate) ends: fn(TestRun) -> bool,
    /// Number of edits that make a finding.
    pub(crate) at: u64,
    /// Number of test runs without progress that it needs as well.
    pub(crate) tests: u64,
}

impl EditCounts {
    /// Counts what happened. Returns the finding about the file with the most edits, among those edited just now.
    pub(crate) fn look(&mut self, rule: &EditRule, moment: &Moment<'_>) -> Option<Finding> {
        match self.last_run.read(moment) {
            Some(run) if (rule.ends)(run) => {
                self.files.clear();
                self.runs = 0;
            }
            Some(_) => self.runs = self.runs.saturating_add(1),
            None => {}
        }
        if let Happening::Call(call) = &moment.event {
            let mut files: Vec<NamedFile> = Vec::new();
            for edit in file_edits(call.call, call.record.kind).into_iter().take(EDITS) {
                let file = half(short_hash(edit.path.as_bytes()));
                if (rule.concerns)(moment, &edit.path) && !files.iter().any(|f| f.file == file) {
                    files.push(NamedFile { file, name: quote(&edit.path, NAME), step: moment.step });
                }
            }
            if !files.is_empty() {
                self.awaited.add(call.record.ordinal, files);
            }
            return None;
        }
        let mut best: Option<(EditedFile, NamedFile, u32)> = None;
        for (ordinal, files) in self.awaited.settled(moment) {
            for named in files {
                let edited = self.count(&named);
                if best.as_ref().is_none_or(|(most, ..)| edited.count > most.count) {
                    best = Some((edited, named, ordinal));
                }
            }
        }
        let (edited, named, ordinal) = best?;
        let tests = u64::from(self.runs.saturating_sub(edited.runs));
        (edited.count >= rule.at && tests >= rule.tests)
            .then(|| finding(rule, moment, &edited, named, ordinal))
    }

    fn count(&mut self, named: &NamedFile) -> EditedFile {
        let known = self.files.iter().find(|f| f.file == named.file).copied();
        let mut edited =
            known.unwrap_or(EditedFile { file: named.file, count: 0, since: named.step, runs: self.runs });
        edited.count += 1;
        self.files.retain(|f| f.file != named.file);
        self.files.push(edited, FILES);
        edited
    }
}

fn finding(
    rule: &EditRule,
    moment: &Moment<'_>,
    edited: &EditedFile,
    named: NamedFile,
    ordinal: u32,
) -> Finding {
    let mut found = Finding::new(rule.detector, edited.count).by_rule("at");
    found.period = 1;
    found.score = 1.0;
    found.since = edited.since;
    found.repeats = rule.repeats;
    if let Some(record) = moment.history.recent().iter().rev().find(|r| r.ordinal == ordinal) {
        found.tool = Some(moment.history.tool(record).to_owned());
        found.calls =
            vec![deloop_types::ShortCall { about: named.name.clone(), ..moment.history.short(record) }];
    }
    found.pattern = u64::from(edited.file).into();
    found.evidence =
        Evidence { at: ordinal.into(), fields: vec![("file", named.name)], ..Evidence::default() };
    found
}
