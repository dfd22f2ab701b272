//! Walks the files below a folder, each once, wherever its links lead.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::Problem;

/// Deeper folders aren't searched.
const DEEPEST: usize = 64;

/// Walks folders, each once across all walks.
#[derive(Default)]
pub(crate) struct Walk {
    seen: HashSet<PathBuf>,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) problems: Vec<Problem>,
}

impl Walk {
    /// Collects every file below `folder` that `keep` accepts, sorted by name.
    pub(crate) fn below(&mut self, folder: &Path, keep: &dyn Fn(&Path) -> bool) {
        self.enter(folder, keep, &mut Vec::new());
    }

    fn enter(&mut self, folder: &Path, keep: &dyn Fn(&Path) -> bool, above: &mut Vec<PathBuf>) {
        let real = match folder.canonicalize() {
            Ok(real) => real,
            Err(error) => return self.problems.push(Problem::unread(folder, &error)),
        };
        if above.contains(&real) {
            let note = "a link back to a folder above it; not followed";
            return self.problems.push(Problem::note(folder, note));
        }
        if above.len() >= DEEPEST {
            return self.problems.push(Problem::note(folder, "nested too deep; not searched"));
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
            // Follows links, because people link to their agents' folders. A dangling link is ignored.
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
