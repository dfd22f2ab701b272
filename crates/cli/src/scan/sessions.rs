//! The sessions of one file as whole lists of Steps, for callers that need all of a session at once.

use std::collections::HashMap;
use std::path::Path;

use deloop_types::Step;
use indicatif::ProgressBar;

use crate::exit::Failure;
use crate::scan::find::{Input, Source};
use crate::scan::read::{Unread, read};

/// Returns the sessions of a file by name, in the order of their first step.
///
/// # Errors
/// When the file cannot be read or is of no known format.
pub(crate) fn sessions(path: &Path) -> Result<Vec<(String, Vec<Step>)>, Failure> {
    let size = std::fs::metadata(path).map_or(0, |about| about.len());
    let input =
        Input { source: Source::File(path.to_owned()), size, likely: None, forced: None, named: true };
    let mut order: Vec<(String, Vec<Step>)> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    let done = read(&input, &ProgressBar::hidden(), &mut |item, _| {
        let name = item.step.session.to_string();
        let at = *index.entry(name.clone()).or_insert_with(|| {
            order.push((name, Vec::new()));
            order.len() - 1
        });
        order[at].1.push(item.step);
    });
    match done {
        Ok(_) => Ok(order),
        Err(Unread::NoSession) => {
            Err(Failure::new(format!("{}: is of no format that deloop knows", path.display())))
        }
        Err(Unread::Failed(error)) => Err(Failure::new(format!("{}: {error}", path.display()))),
    }
}
