//! A set: one labels file and the sessions in its corpus folder.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::args::EvalArgs;
use crate::eval::label::{self, LoopLabel, SessionLabels};
use crate::exit::Failure;
use crate::sessions::{Problem, SessionInput, SourceArgs, find};

/// The files of one set.
pub(crate) struct Set {
    /// The name of the folder that holds the labels file.
    pub(crate) name: String,
    pub(crate) files: Vec<SetFile>,
    pub(crate) problems: Vec<Problem>,
}

/// One session file of a set.
pub(crate) struct SetFile {
    /// Relative to the corpus folder, as in the labels.
    pub(crate) path: String,
    pub(crate) input: SessionInput,
    pub(crate) labels: FileLabels,
}

/// What is said about the sessions of one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileLabels {
    pub(crate) sessions: Vec<SessionLabels>,
    /// Sessions that only have labels of the other sort (loops or resource abuse): neither healthy nor not.
    pub(crate) ignored: Vec<Option<String>>,
}

impl FileLabels {
    /// Whether the labels are about the file as a whole and not about single sessions in it.
    pub(crate) fn whole(&self) -> bool {
        self.sessions.iter().any(|s| s.id.is_none())
    }
}

/// Finds the files of every labels file that was named.
///
/// # Errors
/// When a labels file or corpus folder cannot be read, or labels contradict each other.
pub(crate) fn sets(args: &EvalArgs) -> Result<Vec<Set>, Failure> {
    if args.corpus.is_some() && args.labels.len() > 1 {
        return Err(Failure::new(
            "`--corpus` needs exactly one labels file; each of several is read with the folder it is in",
        ));
    }
    let mut sets: Vec<Set> = Vec::new();
    for labels in &args.labels {
        let parent = labels.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let corpus = args.corpus.as_deref().unwrap_or(parent);
        let full = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        let mut name = full.file_name().map_or("labels".into(), |n| n.to_string_lossy().into_owned());
        if sets.iter().any(|s| s.name == name) {
            name = labels.display().to_string();
        }
        sets.push(set(name, labels, corpus, args)?);
    }
    Ok(sets)
}

fn set(name: String, labels: &Path, corpus: &Path, args: &EvalArgs) -> Result<Set, Failure> {
    if !corpus.is_dir() {
        return Err(Failure::new(format!("{}: no such folder", corpus.display())));
    }
    let by_file = by_file(label::read(labels)?, args.resource_abuse)?;
    let mut files = Vec::new();
    let mut known = HashSet::from([real(labels)]);
    for (path, labels) in by_file {
        let file = corpus.join(&path);
        if !args.links.follow && file.exists() && !real(&file).starts_with(real(corpus)) {
            let folder = corpus.display();
            return Err(Failure::new(format!(
                "{path}: leads out of {folder}; `--follow` reads it nevertheless"
            )));
        }
        known.insert(real(&file));
        if !labels.sessions.is_empty() {
            files.push(SetFile { path, input: SessionInput::file(&file), labels });
        }
    }
    let mut problems = Vec::new();
    // Whether a session without a label wastes resources is anyone's guess.
    if !args.labelled_only && !args.resource_abuse {
        let source =
            SourceArgs { paths: vec![corpus.to_owned()], format: None, since: None, links: args.links };
        let mut found = find(&source, None);
        found.inputs.retain(|input| !known.contains(&real(input.path())));
        problems = found.problems;
        files.extend(found.inputs.into_iter().map(|input| {
            let path = input.path().strip_prefix(corpus).unwrap_or(input.path());
            let path = path.to_string_lossy().replace('\\', "/");
            SetFile { path, input, labels: FileLabels::default() }
        }));
    }
    Ok(Set { name, files, problems })
}

/// Groups labels by file and session, in the order of the labels file.
fn by_file(labels: Vec<LoopLabel>, abuse: bool) -> Result<Vec<(String, FileLabels)>, Failure> {
    let mut files: Vec<(String, FileLabels)> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    for label in labels {
        let at = *index.entry(label.path.clone()).or_insert_with(|| {
            files.push((label.path.clone(), FileLabels::default()));
            files.len() - 1
        });
        let file = &mut files[at].1;
        if label.label.is_abuse() != abuse {
            file.ignored.push(label.id.clone());
            continue;
        }
        match file.sessions.iter_mut().find(|s| s.id == label.id) {
            Some(session) => session.lines.push(label),
            None => file.sessions.push(SessionLabels { id: label.id.clone(), lines: vec![label] }),
        }
    }
    for (path, labels) in &files {
        if labels.whole() && labels.sessions.len() > 1 {
            return Err(Failure::new(format!(
                "{path}: some labels name a session in it (`id`) and others don't; set `id` in all or in none"
            )));
        }
    }
    Ok(files)
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
