//! The Steps of one session, for callers that need all of it at once.

use std::path::Path;

use deloop_types::Step;
use indicatif::ProgressBar;

use crate::exit::Failure;
use crate::sessions::{ReadError, SessionInput, read};

/// A longer session is cut off here.
const STEPS: usize = 1_000_000;

/// Returns the Steps of the named session in a file, or of the file's first session if it holds none of that name.
///
/// # Errors
/// When the file can't be read, has an unknown format, or contains no session.
pub(crate) fn load(path: &Path, session: &str) -> Result<Vec<Step>, Failure> {
    let (mut named, mut first): (Vec<Step>, Vec<Step>) = (Vec::new(), Vec::new());
    let failed = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", path.display()));
    read(&SessionInput::file(path), &ProgressBar::hidden(), &mut |item, _| {
        let step = item.step;
        if step.session.as_str() == session {
            first.clear();
            if named.len() < STEPS {
                named.push(step);
            }
        } else if named.is_empty()
            && first.len() < STEPS
            && first.first().is_none_or(|f| f.session == step.session)
        {
            first.push(step);
        }
    })
    .map_err(|error| match error {
        ReadError::UnknownFormat(looks_like) => failed(&format_args!("unknown session format: {looks_like}")),
        ReadError::Io(error) => failed(&error),
    })?;
    let steps = if named.is_empty() { first } else { named };
    if steps.is_empty() { Err(failed(&"contains no session")) } else { Ok(steps) }
}
