//! Whether each phrase that is read from outputs is more than one project's way of speaking.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

use crate::tools::build_deloop;

/// Where sets of real sessions are looked for, beside the repository.
const SETS: [&str; 4] = ["../shared/modern", "../shared/modern3", "../shared/other", "../shared/corpus"];

/// Checks the phrases of the vocabulary against the sets that are there: exit code 1 when a phrase occurs in the
/// outputs of one project only, 2 when there is no set.
pub(crate) fn run() -> ExitCode {
    let sets: Vec<&Path> = SETS.iter().map(Path::new).filter(|set| set.is_dir()).collect();
    if sets.is_empty() {
        eprintln!("there are no sets of sessions: {}", SETS.join(", "));
        return ExitCode::from(2);
    }
    let Some(deloop) = build_deloop() else { return ExitCode::FAILURE };
    let phrases = phrases(&said(Command::new(&deloop).arg("vocabulary")));
    let mut projects: BTreeMap<&String, BTreeSet<String>> =
        phrases.iter().map(|phrase| (phrase, BTreeSet::new())).collect();
    for set in sets {
        for file in files(set) {
            let project = project(set, &file);
            let steps = said(Command::new(&deloop).arg("steps").arg(&file));
            for output in steps.lines().filter_map(output) {
                let output = output.to_lowercase();
                for (phrase, projects) in &mut projects {
                    if !projects.contains(&project) && output.contains(phrase.as_str()) {
                        projects.insert(project.clone());
                    }
                }
            }
        }
    }
    let mut fine = !phrases.is_empty();
    for (phrase, projects) in projects {
        let lonely = projects.len() < 2;
        fine &= !lonely;
        println!("{:>4} projects  {phrase}{}", projects.len(), if lonely { "  ← too few" } else { "" });
    }
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The texts of all lists of phrases in a vocabulary, without those that a standard sets.
fn phrases(vocabulary: &str) -> Vec<String> {
    let lists = vocabulary.split("[[phrases]]").skip(1).filter(|list| !list.contains("\nstandard = "));
    let texts = lists.filter_map(|list| list.split_once("texts = [")?.1.split_once(']'));
    texts.flat_map(|(texts, _)| texts.split('"').skip(1).step_by(2).map(str::to_owned)).collect()
}

/// The repository that a session is from: the beginning of its name, or its folder.
fn project(set: &Path, file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let folder = file.strip_prefix(set).ok().and_then(|rest| rest.iter().next()).unwrap_or_default();
    match name.split_once("__") {
        Some((project, _)) => project.to_owned(),
        None => format!("{}/{}", set.display(), folder.to_string_lossy()),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name != "labels.jsonl" && name != "README.md") {
            all.push(path);
        }
    }
    all
}

fn said(command: &mut Command) -> String {
    let output = command.stderr(Stdio::null()).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).into_owned()
}

fn output(line: &str) -> Option<String> {
    let step: Value = serde_json::from_str(line).ok()?;
    (step["type"] == "result").then(|| step["output"].as_str().unwrap_or_default().to_owned())
}
