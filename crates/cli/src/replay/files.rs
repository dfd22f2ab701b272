//! Replays all sessions of many files.

use deloop_engine::Engine;

use super::{Replay, ReplayScope, Replayer};
use crate::sessions::{InputOutcome, Problem, SessionInput, UnreadFiles, each, read, without_steps};

/// The sessions of one file.
pub(crate) struct ReplayedFile {
    /// Which of the inputs.
    pub(crate) input: usize,
    pub(crate) format: &'static str,
    pub(crate) project: Option<String>,
    /// The models that usage refers to.
    pub(crate) models: Vec<String>,
    pub(crate) sessions: Vec<Replay>,
    /// Why there are none, if that is odd.
    pub(crate) without_steps: Option<Problem>,
    /// Plain bytes read.
    pub(crate) bytes: u64,
    pub(crate) problems: Vec<Problem>,
}

/// Everything that was read, in the order of the inputs.
#[derive(Default)]
pub(crate) struct ReplayedFiles {
    pub(crate) files: Vec<ReplayedFile>,
    pub(crate) problems: Vec<Problem>,
    /// Something that a user named could not be read.
    pub(crate) missing: bool,
    /// Number of files of which nothing was read.
    pub(crate) unread: u64,
    /// Whether these are all files that were found.
    pub(crate) nothing_read: bool,
}

/// Reads all inputs and replays each session with each engine. `scope` says what to replay of the
/// input with that index.
pub(crate) fn replay_all(
    inputs: &[SessionInput],
    engines: &[Engine],
    scope: &(dyn Fn(usize) -> ReplayScope + Sync),
) -> ReplayedFiles {
    let outcomes = each(inputs, &|index, input, progress| {
        let mut replayer = Replayer::new(engines, scope(index));
        let file = read(input, progress, &mut |item, line| replayer.step(&item, line))?;
        let (sessions, models, notes) = replayer.finish();
        let without_steps = without_steps(input, &file).filter(|_| sessions.is_empty());
        let notes = file.notes.into_iter().chain(notes);
        Ok(ReplayedFile {
            input: index,
            format: file.format.name(),
            project: file.report.project,
            models,
            sessions,
            without_steps,
            bytes: file.bytes,
            problems: notes.map(|note| Problem::note(input.path(), note)).collect(),
        })
    });
    let mut all = ReplayedFiles::default();
    let mut unread = UnreadFiles::default();
    for (input, outcome) in inputs.iter().zip(outcomes) {
        match outcome {
            InputOutcome::Read(mut file) => {
                if !file.sessions.is_empty() {
                    unread.read();
                } else if let Some(problem) = file.without_steps.take() {
                    unread.add(problem);
                }
                all.problems.append(&mut file.problems);
                all.files.push(file);
            }
            // Folders also hold files that are no sessions.
            InputOutcome::UnknownFormat(problem) if !input.named => unread.add(problem),
            InputOutcome::UnknownFormat(problem) => {
                all.missing = true;
                all.problems.push(problem);
                unread.add_reported();
            }
            InputOutcome::Lost(problem) => {
                all.missing |= input.named;
                all.problems.push(problem);
                unread.add_reported();
            }
        }
    }
    all.unread = unread.number;
    all.nothing_read = unread.is_everything(&mut all.problems);
    all
}
