//! Which files a scan reads.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deloop_formats::{FORMATS, Format};
use deloop_types::Millis;

use crate::scan::args::SourceArgs;
use crate::scan::places::{self, fits};
use crate::scan::problem::Problem;
use crate::scan::walk::Walk;

/// Endings of session files in folders that a user names.
const ENDINGS: [&str; 4] = [".jsonl", ".json", ".ndjson", ".traj"];

/// The sessions that come with deloop, for those who have none yet.
const EXAMPLES: [(&str, &str); 3] = [
    ("examples/tests-that-fail.jsonl", include_str!("../../examples/tests-that-fail.jsonl")),
    ("examples/reading-in-circles.jsonl", include_str!("../../examples/reading-in-circles.jsonl")),
    ("examples/steady-work.jsonl", include_str!("../../examples/steady-work.jsonl")),
];

/// One thing to read.
#[derive(Clone)]
pub(crate) struct Input {
    pub(crate) source: Source,
    /// Its size in bytes, as far as it is known.
    pub(crate) size: u64,
    /// The format it is of if its beginning agrees.
    pub(crate) likely: Option<&'static dyn Format>,
    /// The format it is read as, whatever its beginning says.
    pub(crate) forced: Option<&'static dyn Format>,
    /// A user named it: it is a problem when it is no session.
    pub(crate) named: bool,
}

/// Where the bytes come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// Standard input, kept in a file without a name because it is read twice.
    Kept(Arc<File>),
    /// Something that comes with deloop.
    Bundled(&'static str, &'static [u8]),
}

impl Input {
    /// The path it goes by in what is printed.
    pub(crate) fn path(&self) -> &Path {
        match &self.source {
            Source::File(path) => path,
            Source::Stdin | Source::Kept(_) => Path::new("-"),
            Source::Bundled(name, _) => Path::new(name),
        }
    }
}

/// What there is to read.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) inputs: Vec<Input>,
    pub(crate) problems: Vec<Problem>,
    /// The folders that were looked into because no path was named.
    pub(crate) looked: Vec<(&'static str, PathBuf)>,
    /// A path that was named is not there or cannot be read.
    pub(crate) missing: bool,
}

impl Found {
    /// Keeps standard input, if it is to be read, so that it can be read twice.
    pub(crate) fn keep_stdin(&mut self) -> std::io::Result<()> {
        for input in self.inputs.iter_mut().filter(|i| matches!(i.source, Source::Stdin)) {
            let mut file = tempfile::tempfile()?;
            input.size = std::io::copy(&mut std::io::stdin().lock(), &mut file)?;
            input.source = Source::Kept(Arc::new(file));
        }
        Ok(())
    }
}

/// Finds what the arguments name: files, folders, globs and standard input, or else the agents' own folders.
pub(crate) fn find(args: &SourceArgs, cutoff: Option<Millis>) -> Found {
    let forced = args.format.as_deref().and_then(deloop_formats::find);
    let mut finder =
        Finder { forced, cutoff, found: Found::default(), walk: Walk::default(), seen: HashSet::new() };
    if args.paths.is_empty() {
        finder.discover();
    }
    for path in &args.paths {
        finder.named(path);
    }
    let mut found = finder.found;
    found.problems.extend(finder.walk.problems);
    found
}

/// The sessions that come with deloop.
pub(crate) fn examples() -> Vec<Input> {
    let input = |(name, text): (&'static str, &'static str)| Input {
        source: Source::Bundled(name, text.as_bytes()),
        size: text.len() as u64,
        likely: None,
        forced: None,
        named: true,
    };
    EXAMPLES.into_iter().map(input).collect()
}

struct Finder {
    forced: Option<&'static dyn Format>,
    cutoff: Option<Millis>,
    found: Found,
    walk: Walk,
    seen: HashSet<PathBuf>,
}

impl Finder {
    fn discover(&mut self) {
        let formats: Vec<&'static dyn Format> = match self.forced {
            Some(format) => vec![format],
            None => FORMATS.to_vec(),
        };
        for place in places::known(&formats) {
            self.found.looked.push((place.format.name(), place.folder.clone()));
            if place.folder.is_file() {
                self.add(place.folder, Some(place.format), false);
            } else if place.folder.is_dir() {
                let mut walk = Walk::default();
                walk.below(&place.folder, &|path| fits(path, place.suffix));
                self.found.problems.append(&mut walk.problems);
                for path in walk.files {
                    self.add(path, Some(place.format), false);
                }
            }
        }
    }

    fn named(&mut self, path: &Path) {
        if path.as_os_str() == "-" {
            let input =
                Input { source: Source::Stdin, size: 0, likely: None, forced: self.forced, named: true };
            return self.found.inputs.push(input);
        }
        match std::fs::metadata(path) {
            Ok(about) if about.is_dir() => self.folder(path),
            Ok(_) => self.add(path.to_owned(), None, true),
            Err(error) => match matches(path) {
                Some(paths) if !paths.is_empty() => {
                    for path in paths {
                        if path.is_dir() {
                            self.folder(&path);
                        } else {
                            self.add(path, None, true);
                        }
                    }
                }
                Some(_) => self.missing(Problem::lost(path, "the pattern matches no file")),
                None => self.missing(Problem::unread(path, &error)),
            },
        }
    }

    fn missing(&mut self, problem: Problem) {
        self.found.missing = true;
        self.found.problems.push(problem);
    }

    fn folder(&mut self, path: &Path) {
        let endings: Vec<&str> =
            FORMATS.iter().flat_map(|f| f.places()).map(|place| place.suffix).chain(ENDINGS).collect();
        let forced = self.forced.is_some();
        self.walk.files.clear();
        self.walk.below(path, &|file| forced || endings.iter().any(|ending| fits(file, ending)));
        for file in std::mem::take(&mut self.walk.files) {
            self.add(file, None, false);
        }
    }

    /// Adds a file, once, however often and by whatever names it is found.
    fn add(&mut self, path: PathBuf, likely: Option<&'static dyn Format>, named: bool) {
        let about = std::fs::metadata(&path).ok();
        if let (Some(cutoff), Some(changed)) = (self.cutoff, about.as_ref().and_then(|a| a.modified().ok())) {
            let changed = changed.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            if i64::try_from(changed.as_millis()).is_ok_and(|changed| changed < cutoff.0) {
                return;
            }
        }
        if self.seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
            let size = about.map_or(0, |a| a.len());
            self.found.inputs.push(Input {
                source: Source::File(path),
                size,
                likely,
                forced: self.forced,
                named,
            });
        }
    }
}

/// What a glob matches; `None` when it is not one.
fn matches(path: &Path) -> Option<Vec<PathBuf>> {
    let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']))?;
    Some(glob::glob(pattern).ok()?.filter_map(Result::ok).collect())
}
