use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use deloop_types::Step;

/// A file format in which an agent, API or tracer stores sessions.
pub trait Format: Send + Sync {
    /// Returns its name on the command line, which is also the name of its folder.
    fn name(&self) -> &'static str;

    /// Returns its display name.
    fn title(&self) -> &'static str;

    /// Returns its page: what the files look like and their quirks.
    fn page(&self) -> &'static str;

    /// Returns whether it has been tested with files that the real agent wrote.
    fn verified(&self) -> bool;

    /// Returns where the agent stores its files; empty if they can be anywhere.
    fn places(&self) -> &'static [crate::Place];

    /// Returns whether a file is a list of lines or one document.
    fn shape(&self) -> Shape;

    /// Returns whether a file that starts with these bytes (up to 64 KiB, possibly cut within a line) has this format.
    fn sniff(&self, head: &[u8]) -> bool;

    /// Returns the subagent that a file holds the messages of, if its name says so and other files repeat them.
    fn subagent<'a>(&self, _path: &'a Path) -> Option<&'a str> {
        None
    }

    /// Creates a reader for one file.
    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader>;
}

/// How a file is split for [`Reader::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One JSON value per line: `read` gets one non-blank line at a time, so files can be of any size.
    Lines,
    /// One JSON document: `read` gets all of it at once.
    Document,
}

/// Where the bytes come from. Some formats encode the session's name or project in the path.
#[derive(Debug, Clone, Copy, Default)]
pub struct Source<'a> {
    /// The file's path, if it is a file.
    pub path: Option<&'a Path>,
}

impl<'a> Source<'a> {
    /// Returns the file's name without its extension.
    #[must_use]
    pub fn stem(&self) -> Option<&'a str> {
        self.path?.file_stem()?.to_str()
    }
}

/// The subagents whose messages are read from files of their own.
pub type OwnFiles = Arc<HashSet<String>>;

/// Turns one file's bytes into Steps. State that spans lines is kept in the reader.
pub trait Reader {
    /// Reads one line or document.
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>);

    /// Leaves out what the file repeats of these subagents, because their own files are read as well.
    fn leave_to_own_files(&mut self, _subagents: &OwnFiles) {}

    /// Writes what was held back until the end of the file.
    fn finish(&mut self, _out: &mut Sink<'_>) {}
}

/// A Step, and the key of its request.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The step.
    pub step: Step,
    /// On usage steps: identifies the request across files, so that a resumed or forked session that repeats it
    /// isn't counted twice.
    pub key: Option<u64>,
    /// Whether other requests may have the same key, because the program that answered gave all of its answers one name.
    pub may_be_shared: bool,
}

/// What a file contains besides its Steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Number of skipped records by type, for types that deloop doesn't use.
    pub unknown: std::collections::BTreeMap<String, u64>,
    /// Number of unreadable lines or documents, which are skipped.
    pub unreadable: u64,
    /// The first error of those.
    pub first_error: Option<String>,
    /// The project folder of the session, if the file names it.
    pub project: Option<String>,
    /// The agent's version, if the file names it.
    pub version: Option<String>,
}

/// Receives what a [`Reader`] finds.
pub struct Sink<'a> {
    emit: &'a mut dyn FnMut(Item),
    /// What the file contains besides its Steps.
    pub report: Report,
}

impl<'a> Sink<'a> {
    /// Creates a sink that passes each item to `emit`.
    pub fn new(emit: &'a mut dyn FnMut(Item)) -> Self {
        Self { emit, report: Report::default() }
    }

    /// Writes a Step.
    pub fn step(&mut self, step: Step) {
        (self.emit)(Item { step, key: None, may_be_shared: false });
    }

    /// Writes a usage Step; `key` identifies its request across files.
    pub fn usage(&mut self, step: Step, key: Option<u64>) {
        (self.emit)(Item { step, key, may_be_shared: false });
    }

    /// Writes a usage Step whose key may be that of other requests as well.
    pub(crate) fn unsure_usage(&mut self, step: Step, key: Option<u64>) {
        (self.emit)(Item { step, key, may_be_shared: true });
    }

    /// Counts a record of an unknown type.
    pub fn unknown(&mut self, kind: &str) {
        if let Some(count) = self.report.unknown.get_mut(kind) {
            *count += 1;
        } else if self.report.unknown.len() < 64 {
            self.report.unknown.insert(kind.chars().take(64).collect(), 1);
        }
    }

    /// Counts an unreadable line or document.
    pub fn unreadable(&mut self, why: impl std::fmt::Display) {
        self.report.unreadable += 1;
        if self.report.first_error.is_none() {
            self.report.first_error = Some(why.to_string().lines().next().unwrap_or_default().to_owned());
        }
    }
}

/// Reads all of `bytes` in this format and passes each item to `emit`.
pub fn read(format: &dyn Format, bytes: &[u8], source: &Source<'_>, emit: &mut dyn FnMut(Item)) -> Report {
    let mut sink = Sink::new(emit);
    let mut reader = format.reader(source);
    match format.shape() {
        Shape::Document => reader.read(bytes, &mut sink),
        Shape::Lines => {
            let mut start = 0;
            for end in memchr::memchr_iter(b'\n', bytes).chain(std::iter::once(bytes.len())) {
                let line = bytes[start..end].trim_ascii();
                if !line.is_empty() {
                    reader.read(line, &mut sink);
                }
                start = end + 1;
            }
        }
    }
    reader.finish(&mut sink);
    sink.report
}
