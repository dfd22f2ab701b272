//! Walks the files below a folder, each once. Links that lead out of the folders that were named are counted and left
//! alone, because whoever filled a folder decides where they lead.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::Problem;

/// Deeper folders aren't searched.
const DEEPEST: usize = 64;

/// Maximum number of entries of folders that one command looks at.
const ENTRIES: usize = 5_000_000;

/// Walks folders, each once across all walks.
pub(crate) struct Walk {
    /// The real paths of the folders that links may lead into.
    named: Vec<PathBuf>,
    /// Whether links may lead anywhere.
    follow: bool,
    /// How many more entries may be looked at.
    left: usize,
    seen: HashSet<PathBuf>,
    /// The links that lead out of the named folders, below the folder that is being walked.
    leading_out: Vec<PathBuf>,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) problems: Vec<Problem>,
}

/// An entry of a folder.
pub(super) struct WalkEntry {
    pub(super) path: PathBuf,
    pub(super) is_folder: bool,
}

impl Walk {
    /// Starts a walk whose links may lead anywhere if `follow` is set, or else into the folders that [`Self::allow`] names.
    pub(crate) fn new(follow: bool) -> Self {
        Self::limited(follow, ENTRIES)
    }

    fn limited(follow: bool, left: usize) -> Self {
        Self {
            named: Vec::new(),
            follow,
            left,
            seen: HashSet::new(),
            leading_out: Vec::new(),
            files: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Lets links lead into this folder. It may be a link itself: somebody named it.
    pub(crate) fn allow(&mut self, folder: &Path) {
        self.named.extend(folder.canonicalize());
    }

    /// Returns whether there were more entries than may be looked at.
    pub(crate) fn is_cut(&self) -> bool {
        self.left == 0
    }

    /// Collects every file below `folder` that `keep` accepts, sorted by name.
    pub(crate) fn below(&mut self, folder: &Path, keep: &dyn Fn(&Path) -> bool) {
        self.enter(folder, keep, &mut Vec::new());
        self.report(folder);
    }

    /// Forgets which folders were walked, to walk them again for files of another kind.
    pub(crate) fn forget_folders(&mut self) {
        self.seen.clear();
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
        let entries = self.entries(folder, keep);
        above.push(real);
        for entry in entries {
            if entry.is_folder {
                self.enter(&entry.path, keep, above);
            } else {
                self.files.push(entry.path);
            }
        }
        above.pop();
    }

    /// Returns the folders and the files that `keep` accepts directly in a folder, sorted by name.
    pub(super) fn entries(&mut self, folder: &Path, keep: &dyn Fn(&Path) -> bool) -> Vec<WalkEntry> {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.problems.push(Problem::unread(folder, &error));
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            // A dangling link is ignored.
            let kind = match kind.is_symlink().then(|| std::fs::metadata(&path)) {
                None => kind,
                Some(Ok(target)) => target.file_type(),
                Some(Err(_)) => continue,
            };
            if !(kind.is_dir() || (kind.is_file() && keep(&path))) {
                continue;
            }
            if entry.file_type().is_ok_and(|own| own.is_symlink()) && self.leads_out(&path) {
                self.leading_out.push(path);
            } else {
                found.push(WalkEntry { path, is_folder: kind.is_dir() });
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// Returns whether a link leads out of all folders that were named.
    fn leads_out(&self, link: &Path) -> bool {
        let inside = |real: PathBuf| self.named.iter().any(|named| real.starts_with(named));
        !self.follow && !link.canonicalize().is_ok_and(inside)
    }

    /// Reports what was left out below a folder, in a line each.
    pub(super) fn report(&mut self, folder: &Path) {
        let mut links = std::mem::take(&mut self.leading_out);
        links.sort();
        let inside = |link: &PathBuf| link.strip_prefix(folder).unwrap_or(link).display().to_string();
        let note = match (links.first().map(inside), links.len()) {
            (None, _) => None,
            (Some(first), 1) => Some(format!(
                "skipped a link that leads out of this folder (`{first}`); `--follow` follows it"
            )),
            (Some(first), number) => Some(format!(
                "skipped {number} links that lead out of this folder (`{first}` is one); `--follow` follows them"
            )),
        };
        self.problems.extend(note.map(|note| Problem::note(folder, note)));
        if self.is_cut() {
            let limit = ENTRIES / 1_000_000;
            let cut = format!(
                "not searched completely: more than {limit} million entries; name folders further down"
            );
            self.problems.push(Problem::lost(folder, cut));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_folder_is_cut_and_said() {
        let folder = tempfile::tempdir().unwrap();
        (0..20).for_each(|n| std::fs::write(folder.path().join(format!("{n}.jsonl")), "").unwrap());
        let mut walk = Walk::limited(false, 10);
        walk.below(folder.path(), &|_| true);
        assert_eq!((walk.files.len(), walk.is_cut()), (10, true));
        assert!(walk.problems[0].lost && walk.problems[0].problem.contains("name folders further down"));
    }
}
