//! The files below a folder, each once, whatever its links lead to.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::scan::problem::Problem;

/// Deeper folders are not looked into.
const DEEPEST: usize = 64;

/// Walks folders; remembers which it has seen over all of its walks.
#[derive(Default)]
pub(crate) struct Walk {
    seen: HashSet<PathBuf>,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) problems: Vec<Problem>,
}

impl Walk {
    /// Takes in every file below `folder` that `keep` says yes to, in the order of their names.
    pub(crate) fn below(&mut self, folder: &Path, keep: &dyn Fn(&Path) -> bool) {
        self.enter(folder, keep, &mut Vec::new());
    }

    fn enter(&mut self, folder: &Path, keep: &dyn Fn(&Path) -> bool, above: &mut Vec<PathBuf>) {
        let real = match folder.canonicalize() {
            Ok(real) => real,
            Err(error) => return self.problems.push(Problem::unread(folder, &error)),
        };
        if above.contains(&real) {
            let told = "a link that leads back to a folder above it; not followed again";
            return self.problems.push(Problem::note(folder, told));
        }
        if above.len() >= DEEPEST {
            return self.problems.push(Problem::note(folder, "too deep; what is below it is not read"));
        }
        if !self.seen.insert(real.clone()) {
            return;
        }
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.problems.push(Problem::unread(folder, &error)),
        };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        above.push(real);
        for path in paths {
            // Follows links: people link their agents' folders from elsewhere. One that leads nowhere is nothing.
            let Ok(about) = std::fs::metadata(&path) else { continue };
            if about.is_dir() {
                self.enter(&path, keep, above);
            } else if about.is_file() && keep(&path) {
                self.files.push(path);
            }
        }
        above.pop();
    }
}
