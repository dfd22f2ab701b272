//! Expands patterns of paths (`runs/**/*.jsonl`), in one walk that sees each folder once for each part of the pattern,
//! whatever links lead through it.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use glob::Pattern;

use super::walk::Walk;

/// A part of a pattern, between two separators.
enum PatternPart {
    /// `**`: any number of folders.
    Folders,
    /// A name.
    Name(Pattern),
}

/// A pattern of paths.
pub(super) struct PathPattern {
    /// The folder below which everything that it matches is.
    base: PathBuf,
    parts: Vec<PatternPart>,
    /// Whether it ends in `**`, and so matches folders alone. Whoever gets a folder searches all of it.
    is_of_folders: bool,
}

impl PathPattern {
    /// Reads a pattern; `None` if the path is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let is_pattern = |text: &str| text.contains(['*', '?', '[']);
        path.to_str().filter(|text| is_pattern(text))?;
        let (mut base, mut parts) = (PathBuf::new(), Vec::new());
        for part in path.components() {
            match part {
                Component::Normal(name) if !parts.is_empty() || name.to_str().is_some_and(is_pattern) => {
                    let name = name.to_str()?;
                    let part = match name {
                        "**" => PatternPart::Folders,
                        name => PatternPart::Name(Pattern::new(name).ok()?),
                    };
                    parts.push(part);
                }
                // A pattern can't continue above the folders that it matches.
                _ if !parts.is_empty() => return None,
                other => base.push(other),
            }
        }
        let names =
            parts.iter().rposition(|part| matches!(part, PatternPart::Name(_))).map_or(0, |last| last + 1);
        let is_of_folders = names < parts.len();
        parts.truncate(names);
        Some(Self { base, parts, is_of_folders })
    }

    /// Returns the files and folders that match, sorted by name. What the walk can't see isn't among them.
    pub(super) fn expand(&self, walk: &mut Walk) -> Vec<PathBuf> {
        let base = if self.base.as_os_str().is_empty() { Path::new(".") } else { &self.base };
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        if base.is_dir() && self.parts.is_empty() {
            walk.allow(base);
            found.push(base.to_owned());
        } else if base.is_dir() {
            walk.allow(base);
            self.enter(base, &self.from(&[0]), walk, &mut found, &mut seen);
            walk.report(base);
        }
        found.sort();
        found
    }

    /// Returns the parts that may come next if these do: `**` may also stand for no folder at all.
    fn from(&self, next: &[usize]) -> Vec<usize> {
        let mut all: Vec<usize> = Vec::new();
        for first in next {
            let mut at = *first;
            all.push(at);
            while matches!(self.parts.get(at), Some(PatternPart::Folders)) {
                at += 1;
                all.push(at);
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Looks at the entries of a folder, after which these parts of the pattern may come.
    fn enter(
        &self,
        folder: &Path,
        parts: &[usize],
        walk: &mut Walk,
        found: &mut Vec<PathBuf>,
        seen: &mut HashSet<(PathBuf, Vec<usize>)>,
    ) {
        let Ok(real) = folder.canonicalize() else { return };
        if !seen.insert((real, parts.to_vec())) {
            return;
        }
        let matches =
            |path: &Path| !self.is_of_folders && self.after(parts, path).contains(&self.parts.len());
        for entry in walk.entries(folder, &matches) {
            let next = self.after(parts, &entry.path);
            if next.contains(&self.parts.len()) {
                found.push(entry.path.clone());
            }
            if entry.is_folder && next.iter().any(|part| *part < self.parts.len()) {
                self.enter(&entry.path, &next, walk, found, seen);
            }
        }
    }

    /// Returns the parts that may come after an entry; the number of parts if it matches.
    fn after(&self, parts: &[usize], entry: &Path) -> Vec<usize> {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        let next = parts.iter().filter_map(|at| match self.parts.get(*at)? {
            PatternPart::Folders => Some(*at),
            PatternPart::Name(pattern) => pattern.matches(&name).then_some(at + 1),
        });
        self.from(&next.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(folder: &Path, pattern: &str) -> Vec<String> {
        let pattern = PathPattern::of(&folder.join(pattern)).unwrap();
        let found = pattern.expand(&mut Walk::new(false));
        let below = |path: &PathBuf| path.strip_prefix(folder).unwrap().to_string_lossy().replace('\\', "/");
        found.iter().map(below).collect()
    }

    #[test]
    fn patterns_match_names_and_any_number_of_folders() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b/c")).unwrap();
        for file in ["1.jsonl", "a/2.jsonl", "a/b/3.jsonl", "a/b/c/4.jsonl", "a/b/other"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let all = ["1.jsonl", "a/2.jsonl", "a/b/3.jsonl", "a/b/c/4.jsonl"];
        assert_eq!(expand(folder.path(), "**/*.jsonl"), all);
        assert_eq!(expand(folder.path(), "*.jsonl"), all[..1]);
        assert_eq!(expand(folder.path(), "a/*/?.jsonl"), all[2..3]);
        assert_eq!(expand(folder.path(), "*/**/[34].jsonl"), all[2..]);
        assert_eq!(expand(folder.path(), "a/**/b/**/*.jsonl"), all[2..]);
        assert_eq!(expand(folder.path(), "a/*"), ["a/2.jsonl", "a/b"]);
        assert_eq!(expand(folder.path(), "x/*"), [""; 0]);
        assert_eq!(
            (expand(folder.path(), "a/**"), expand(folder.path(), "*/**")),
            (vec!["a".to_owned()], vec!["a".to_owned()])
        );
        assert!(PathPattern::of(Path::new("a/b.jsonl")).is_none());
        assert!(PathPattern::of(Path::new("a/b**.jsonl")).is_none());
    }

    /// Folders that link to one another have more paths than anybody can walk.
    #[cfg(unix)]
    #[test]
    fn folders_linked_crosswise_are_seen_once() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..12).map(|n| format!("d{n}")).collect();
        for name in &names {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("s.jsonl"), "").unwrap();
            for other in &names {
                let link = folder.path().join(name).join(format!("to-{other}"));
                std::os::unix::fs::symlink(folder.path().join(other), link).unwrap();
            }
        }
        let found = expand(folder.path(), "**/s.jsonl");
        assert_eq!(found.len(), 12, "{found:?}");
    }
}
