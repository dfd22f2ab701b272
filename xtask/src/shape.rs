//! `cargo xtask shape`: how large the code is, which files are too long and which type names have two meanings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A file may have so many lines, its tests not counted.
const LONGEST_FILE: usize = 400;

/// Prints the figures. Exit code 1: two files define a type of the same name. Exit code 2: a file is too long.
pub fn run() -> ExitCode {
    let mut sources: Vec<Source> = Vec::new();
    for folder in folders() {
        read(&folder, &mut sources);
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    let lines: usize = sources.iter().map(|source| source.code.lines().count()).sum();
    println!("{lines} lines of Rust in {} files, without tests", sources.len());
    let long: Vec<String> = sources.iter().filter_map(too_long).collect();
    let twice = defined_twice(&sources);
    for line in long.iter().chain(&twice) {
        println!("{line}");
    }
    match (twice.is_empty(), long.is_empty()) {
        (false, _) => ExitCode::FAILURE,
        (true, false) => ExitCode::from(2),
        (true, true) => ExitCode::SUCCESS,
    }
}

/// A source file without its tests.
struct Source {
    path: PathBuf,
    code: String,
}

fn folders() -> Vec<PathBuf> {
    let crates = std::fs::read_dir("crates").into_iter().flatten().flatten();
    let crates = crates.map(|entry| entry.path().join("src"));
    crates.chain(["conformance/src".into(), "xtask/src".into()]).collect()
}

fn read(folder: &Path, sources: &mut Vec<Source>) {
    let entries: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    for path in entries {
        let is_test = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !is_test {
            read(&path, sources);
        } else if path.extension().is_some_and(|ending| ending == "rs") && !is_test {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            sources.push(Source { path, code: without_tests(&text) });
        }
    }
}

/// Cuts the modules behind `#[cfg(test)]`; rustfmt puts their end at the start of a line.
fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            code.push_str(line);
            code.push('\n');
        } else if lines.next().is_some_and(|item| item.ends_with('{')) {
            lines.by_ref().find(|line| *line == "}");
        }
    }
    code
}

fn too_long(source: &Source) -> Option<String> {
    let lines = source.code.lines().count();
    (lines > LONGEST_FILE).then(|| format!("{}: {lines} lines; split it", source.path.display()))
}

/// Lists the type names of `crates/` that more than one file defines.
fn defined_twice(sources: &[Source]) -> Vec<String> {
    let mut places: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.path.starts_with("crates")) {
        for name in source.code.lines().filter_map(type_name) {
            places.entry(name).or_default().insert(source.path.display().to_string());
        }
    }
    places.retain(|_, files| files.len() > 1);
    let line = |(name, files): (&str, BTreeSet<String>)| {
        format!("{name} is defined in {}", files.into_iter().collect::<Vec<_>>().join(", "))
    };
    places.into_iter().map(line).collect()
}

/// Returns the name of the type that a line defines, also inside a function or module.
fn type_name(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let visible = text.strip_prefix("pub").map(|rest| match rest.split_once(") ") {
        Some((scope, item)) if scope.starts_with('(') => item,
        _ => rest.trim_start(),
    });
    let item = visible.unwrap_or(text);
    let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
    // A `type` that is indented is an associated one.
    let kinds = if text.len() == line.len() { &kinds[..] } else { &kinds[..4] };
    let name = kinds.iter().find_map(|kind| item.strip_prefix(kind))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "struct A;\n#[cfg(test)]\nmod tests {\n    use B;\n}\npub(crate) enum C<T> {}\n#[cfg(test)]\nmod more;\n    type D = u8;\npub(in crate::a) struct E(u8);\n    struct F;\n";

    #[test]
    fn tests_do_not_count() {
        assert_eq!(
            without_tests(TEXT),
            "struct A;\npub(crate) enum C<T> {}\n    type D = u8;\npub(in crate::a) struct E(u8);\n    struct F;\n"
        );
        let source = |lines: usize| Source { path: "a.rs".into(), code: "x\n".repeat(lines) };
        assert!(too_long(&source(LONGEST_FILE)).is_none());
        assert_eq!(too_long(&source(401)).unwrap(), "a.rs: 401 lines; split it");
    }

    #[test]
    fn a_name_has_one_home() {
        let names: Vec<&str> = TEXT.lines().filter_map(type_name).collect();
        assert_eq!(names, ["A", "C", "E", "F"], "an associated type is none");
        let source = |path: &str| Source { path: path.into(), code: TEXT.to_owned() };
        let found = defined_twice(&[source("crates/a.rs"), source("crates/b.rs"), source("xtask/c.rs")]);
        assert_eq!(found[0], "A is defined in crates/a.rs, crates/b.rs");
    }
}
