//! What deloop decides about recorded sessions, one line each, so that a change of behaviour shows up in a diff.
//!
//! Words are left out: messages may be reworded freely.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

use crate::tools::build_deloop;

const PROFILES: [&str; 6] =
    ["default", "behavioral", "signature", "doom-loop", "turn-similarity", "turn-hash"];
/// The project's own sessions, and what is decided about them.
const OWN: &str = "corpus";
const PINNED: &str = "corpus/decisions.txt";

const HELP: &str = "\
cargo xtask pin                    compare decisions on corpus/ with corpus/decisions.txt
cargo xtask pin --update           write corpus/decisions.txt
cargo xtask pin --out FILE DIR...  write the decisions on other folders of sessions to FILE

With --deloop BIN, decisions are those of another binary than the one that is built from this tree.
";

pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let (mut deloop, mut out, mut update, mut folders) = (None, None, false, Vec::new());
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--deloop" => deloop = arguments.next().map(PathBuf::from),
            "--out" => out = arguments.next().map(PathBuf::from),
            "--update" => update = true,
            folder if !folder.starts_with('-') => folders.push(PathBuf::from(folder)),
            _ => {
                eprint!("{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    let Some(deloop) = deloop.or_else(build_deloop) else { return ExitCode::FAILURE };
    if let Some(out) = out {
        let text: String = folders.iter().map(|folder| pin(&deloop, folder)).collect();
        return written(&out, &text);
    }
    let text = pin(&deloop, Path::new(OWN));
    if update {
        return written(Path::new(PINNED), &text);
    }
    let pinned = std::fs::read_to_string(PINNED).unwrap_or_default();
    if pinned == text {
        return ExitCode::SUCCESS;
    }
    for line in pinned.lines().filter(|line| !text.lines().any(|l| l == *line)) {
        println!("- {line}");
    }
    for line in text.lines().filter(|line| !pinned.lines().any(|l| l == *line)) {
        println!("+ {line}");
    }
    println!("decisions changed; if that is intended: cargo xtask pin --update");
    ExitCode::FAILURE
}

fn written(path: &Path, text: &str) -> ExitCode {
    match std::fs::write(path, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

fn pin(deloop: &Path, folder: &Path) -> String {
    let mut files = Vec::new();
    walk(folder, &mut files);
    files.sort();
    let mut text = String::new();
    for file in files {
        let steps = feed(Command::new(deloop).arg("steps").arg(&file), b"");
        if steps.is_empty() {
            continue;
        }
        let count = steps.iter().filter(|b| **b == b'\n').count();
        let _ = writeln!(text, "{} {count} steps", file.display());
        for profile in PROFILES {
            let decisions = feed(Command::new(deloop).args(["stream", "--profile", profile]), &steps);
            let line = summary(&decisions);
            if !line.is_empty() {
                let _ = writeln!(text, "{} {profile}:{line}", file.display());
            }
        }
    }
    text
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            walk(&path, files);
        } else if !["labels.jsonl", "README.md", "decisions.txt"].iter().any(|name| path.ends_with(name)) {
            files.push(path);
        }
    }
}

/// The decisions that are more than `continue`, as `session/step:action level detectors calls`.
fn summary(decisions: &[u8]) -> String {
    let mut text = String::new();
    for line in decisions.split(|b| *b == b'\n') {
        let Ok(decision) = serde_json::from_slice::<Value>(line) else { continue };
        let found = decision["findings"].as_array().map_or(&[][..], Vec::as_slice);
        // A stop that stands is the same at every later step.
        if decision["action"] == "continue" || decision["action"] == "stop" && found.is_empty() {
            continue;
        }
        let detectors = found.iter();
        let detectors: Vec<String> =
            detectors.map(|f| format!("{}x{}", f["detector"].as_str().unwrap_or("?"), f["count"])).collect();
        let _ = write!(
            text,
            " {}:{}{}[{}]{}",
            decision["step"],
            decision["action"].as_str().unwrap_or("?"),
            decision["level"],
            detectors.join(","),
            decision["calls"].as_array().map_or(0, Vec::len)
        );
    }
    text
}

fn feed(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else { return Vec::new() };
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        child.wait_with_output().map(|output| output.stdout).unwrap_or_default()
    })
}
