//! Replays all sessions of many files.

use deloop_engine::Engine;

use super::{Replay, ReplayScope, Replayer};
use crate::sessions::{InputOutcome, Problem, SessionInput, each, read};

/// The sessions of one file.
pub(crate) struct ReplayedFile {
    /// Which of the inputs.
    pub(crate) input: usize,
    pub(crate) format: &'static str,
    pub(crate) project: Option<String>,
    /// The models that usage refers to.
    pub(crate) models: Vec<String>,
    pub(crate) sessions: Vec<Replay>,
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
        let notes = file.notes.into_iter().chain(notes);
        Ok(ReplayedFile {
            input: index,
            format: file.format.name(),
            project: file.report.project,
            models,
            sessions,
            bytes: file.bytes,
            problems: notes.map(|note| Problem::note(input.path(), note)).collect(),
        })
    });
    let mut all = ReplayedFiles::default();
    for (input, outcome) in inputs.iter().zip(outcomes) {
        match outcome {
            InputOutcome::Read(mut file) => {
                all.problems.append(&mut file.problems);
                all.files.push(file);
            }
            // Folders also hold files that are no sessions.
            InputOutcome::UnknownFormat if !input.named => {}
            InputOutcome::UnknownFormat => {
                all.missing = true;
                all.problems.push(Problem::unknown_format(input.path()));
            }
            InputOutcome::Lost(problem) => {
                all.missing |= input.named;
                all.problems.push(problem);
            }
        }
    }
    all
}
