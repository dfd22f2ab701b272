//! Finds the session files that paths, folders, globs and `-` name, or that agents store on this machine.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::PossibleValuesParser;
use deloop_formats::{FORMATS, Format, OwnFiles, subagent_of};
use deloop_types::Millis;

use super::Problem;
use super::agent_folders::{self, fits};
use super::pattern::PathPattern;
use super::walk::Walk;

/// Extensions of session files in folders that a user names.
const ENDINGS: [&str; 4] = [".jsonl", ".json", ".ndjson", ".traj"];

/// The example sessions that come with deloop.
const EXAMPLES: [(&str, &str); 3] = [
    ("examples/tests-that-fail.jsonl", include_str!("../../examples/tests-that-fail.jsonl")),
    ("examples/reading-in-circles.jsonl", include_str!("../../examples/reading-in-circles.jsonl")),
    ("examples/steady-work.jsonl", include_str!("../../examples/steady-work.jsonl")),
];

/// Which sessions to read.
#[derive(Debug, Clone, Args)]
pub(crate) struct SourceArgs {
    /// Session files, folders, globs, or `-` for standard input [default: the agents' own folders]
    pub(crate) paths: Vec<PathBuf>,
    /// Read every file as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS.iter().map(|f| f.name())))]
    pub(crate) format: Option<String>,
    /// Only sessions active since then: 30d, 12h, 2w, or a date like 2026-01-31
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    #[command(flatten)]
    pub(crate) links: LinkArgs,
}

/// Where links may lead.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct LinkArgs {
    /// Follow links in a folder that lead out of it
    #[arg(long)]
    pub(crate) follow: bool,
}

/// One input to read.
#[derive(Clone)]
pub(crate) struct SessionInput {
    pub(crate) source: InputSource,
    /// Its size in bytes, if known.
    pub(crate) size: u64,
    /// The format to try first.
    pub(crate) likely: Option<&'static dyn Format>,
    /// The format to read it as, without detection.
    pub(crate) forced: Option<&'static dyn Format>,
    /// Whether the user named it, so that it is a problem if it contains no session.
    pub(crate) named: bool,
    /// The subagents that have files of their own among the inputs.
    pub(crate) own_files: OwnFiles,
}

/// Where the bytes come from.
#[derive(Debug, Clone)]
pub(crate) enum InputSource {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// Standard input, copied to an unnamed file so that it can be read twice.
    Kept(Arc<File>),
    /// A built-in example.
    Bundled(&'static str, &'static [u8]),
}

impl SessionInput {
    /// Returns an input for a file that somebody named.
    pub(crate) fn file(path: &Path) -> Self {
        let size = std::fs::metadata(path).map_or(0, |about| about.len());
        Self {
            source: InputSource::File(path.to_owned()),
            size,
            likely: None,
            forced: None,
            named: true,
            own_files: OwnFiles::default(),
        }
    }

    /// Returns the path to print for it.
    pub(crate) fn path(&self) -> &Path {
        match &self.source {
            InputSource::File(path) => path,
            InputSource::Stdin | InputSource::Kept(_) => Path::new("-"),
            InputSource::Bundled(name, _) => Path::new(name),
        }
    }
}

/// What [`find`] found.
#[derive(Default)]
pub(crate) struct FoundInputs {
    pub(crate) inputs: Vec<SessionInput>,
    pub(crate) problems: Vec<Problem>,
    /// The folders that were searched because no path was given.
    pub(crate) searched: Vec<(&'static str, PathBuf)>,
    /// Number of files last written before `--since`, which aren't opened.
    pub(crate) older: u64,
    /// Whether a given path doesn't exist or can't be read.
    pub(crate) missing: bool,
}

impl FoundInputs {
    /// Tells every input which subagents have files of their own, so that none of their messages is read twice.
    fn leave_to_own_files(&mut self) {
        let own_files: HashSet<String> = self.inputs.iter().filter_map(|i| subagent_of(i.path())).collect();
        let own_files = Arc::new(own_files);
        self.inputs.iter_mut().for_each(|input| input.own_files = Arc::clone(&own_files));
    }

    /// Copies standard input, if it is to be read, so that it can be read twice.
    pub(crate) fn keep_stdin(&mut self) -> std::io::Result<()> {
        for input in self.inputs.iter_mut().filter(|i| matches!(i.source, InputSource::Stdin)) {
            let mut file = tempfile::tempfile()?;
            input.size = std::io::copy(&mut std::io::stdin().lock(), &mut file)?;
            input.source = InputSource::Kept(Arc::new(file));
        }
        Ok(())
    }
}

/// Finds what the arguments name: files, folders, globs and standard input, or else the agents' own folders. Leaves out
/// files last written before `cutoff`.
pub(crate) fn find(args: &SourceArgs, cutoff: Option<Millis>) -> FoundInputs {
    let forced = args.format.as_deref().and_then(deloop_formats::find);
    let mut finder = Finder {
        forced,
        cutoff,
        found: FoundInputs::default(),
        walk: Walk::new(args.links.follow),
        seen: HashSet::new(),
    };
    if args.paths.is_empty() {
        finder.discover();
    }
    args.paths.iter().filter(|path| path.is_dir()).for_each(|path| finder.walk.allow(path));
    for path in &args.paths {
        finder.named(path);
    }
    let mut found = finder.found;
    found.missing |= finder.walk.is_cut();
    found.problems.extend(finder.walk.problems);
    found.leave_to_own_files();
    found
}

/// Returns the example sessions.
pub(crate) fn examples() -> Vec<SessionInput> {
    let input = |(name, text): (&'static str, &'static str)| SessionInput {
        source: InputSource::Bundled(name, text.as_bytes()),
        size: text.len() as u64,
        likely: None,
        forced: None,
        named: true,
        own_files: OwnFiles::default(),
    };
    EXAMPLES.into_iter().map(input).collect()
}

struct Finder {
    forced: Option<&'static dyn Format>,
    cutoff: Option<Millis>,
    found: FoundInputs,
    walk: Walk,
    seen: HashSet<PathBuf>,
}

impl Finder {
    fn discover(&mut self) {
        let formats: Vec<&'static dyn Format> = match self.forced {
            Some(format) => vec![format],
            None => FORMATS.to_vec(),
        };
        let places = agent_folders::known(&formats);
        places.iter().for_each(|place| self.walk.allow(&place.folder));
        for place in places {
            self.found.searched.push((place.format.name(), place.folder.clone()));
            if place.folder.is_file() {
                self.add(place.folder, Some(place.format), false);
            } else if place.folder.is_dir() {
                self.walk.forget_folders();
                self.walk.below(&place.folder, &|path| fits(path, place.suffix));
                for path in std::mem::take(&mut self.walk.files) {
                    self.add(path, Some(place.format), false);
                }
            }
        }
    }

    fn named(&mut self, path: &Path) {
        if path.as_os_str() == "-" {
            let input = SessionInput {
                source: InputSource::Stdin,
                size: 0,
                likely: None,
                forced: self.forced,
                named: true,
                own_files: OwnFiles::default(),
            };
            return self.found.inputs.push(input);
        }
        match std::fs::metadata(path) {
            Ok(about) if about.is_dir() => self.folder(path),
            Ok(_) => self.add(path.to_owned(), None, true),
            Err(error) => match PathPattern::of(path).map(|pattern| pattern.expand(&mut self.walk)) {
                Some(paths) if !paths.is_empty() => {
                    for path in paths {
                        if path.is_dir() {
                            self.folder(&path);
                        } else {
                            self.add(path, None, true);
                        }
                    }
                }
                Some(_) => self.missing(Problem::lost(path, "the pattern matches no files")),
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

    /// Adds a file once, however often and under whatever names it is found.
    fn add(&mut self, path: PathBuf, likely: Option<&'static dyn Format>, named: bool) {
        let about = std::fs::metadata(&path).ok();
        if let (Some(cutoff), Some(changed)) = (self.cutoff, about.as_ref().and_then(|a| a.modified().ok())) {
            let changed = changed.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            if i64::try_from(changed.as_millis()).is_ok_and(|changed| changed < cutoff.0) {
                self.found.older += 1;
                return;
            }
        }
        if self.seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
            let size = about.map_or(0, |a| a.len());
            self.found.inputs.push(SessionInput {
                source: InputSource::File(path),
                size,
                likely,
                forced: self.forced,
                named,
                own_files: OwnFiles::default(),
            });
        }
    }
}
