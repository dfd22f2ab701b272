//! Lists the files of our own that use `unsafe`, and compares them with the known ones.

use std::path::{Path, PathBuf};

use super::table::Verdict;

/// The files that may use `unsafe`, and why. Crates of others aren't looked at.
const KNOWN: [(&str, &str); 2] = [
    ("crates/deloop/src/allocator.rs", "an allocator can't be written without; it chooses between two"),
    ("crates/engine/tests/memory.rs", "counts what the system's allocator gives out"),
];
const FOLDERS: [&str; 5] = ["crates", "bindings", "conformance", "fuzz", "xtask"];
/// What can't be written without `unsafe`, in the lint's attributes and in code.
const SIGNS: [&str; 6] =
    ["unsafe {", "unsafe fn ", "unsafe impl ", "unsafe extern ", "unsafe trait ", "#[unsafe("];

/// Fails when a file uses `unsafe` that isn't known, or a known one doesn't any more.
pub(super) fn check(name: &'static str) -> (Verdict, String) {
    let found = files_with_uses(Path::new(""));
    for (file, uses) in &found {
        let why = KNOWN.iter().find(|(known, _)| known == file).map_or("NOT KNOWN", |(_, why)| why);
        println!("── {name}: {file}: {uses} uses; {why}");
    }
    let files: Vec<&str> = found.iter().map(|(file, _)| file.as_str()).collect();
    let problems = problems(&files);
    problems.iter().for_each(|problem| println!("── {name}: {problem}"));
    (if problems.is_empty() { Verdict::Passed } else { Verdict::Failed }, String::new())
}

/// Returns the files below the workspace's folder that use `unsafe`, and how often.
fn files_with_uses(workspace: &Path) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    FOLDERS.iter().for_each(|folder| walk(&workspace.join(folder), &mut found));
    let relative = |path: PathBuf| {
        let path = path.strip_prefix(workspace).map(Path::to_path_buf).unwrap_or(path);
        path.to_string_lossy().replace('\\', "/")
    };
    let mut found: Vec<(String, usize)> =
        found.into_iter().map(|(path, uses)| (relative(path), uses)).collect();
    found.sort();
    found
}

fn problems(files: &[&str]) -> Vec<String> {
    let is_known = |file: &str| KNOWN.iter().any(|(known, _)| *known == file);
    let unknown = files.iter().filter(|file| !is_known(file)).map(|file| {
        format!("{file} uses `unsafe`; write it without, or add it with a reason to {}", file!())
    });
    let unused = KNOWN.iter().filter(|(known, _)| !files.contains(known));
    unknown
        .chain(unused.map(|(file, _)| format!("{file} uses no `unsafe`; remove it from {}", file!())))
        .collect()
}

fn walk(folder: &Path, found: &mut Vec<(PathBuf, usize)>) {
    let entries: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "node_modules", ".venv"].contains(&name.as_str()) {
                walk(&path, found);
            }
        } else if name.ends_with(".rs") {
            let uses = uses(&std::fs::read_to_string(&path).unwrap_or_default());
            if uses > 0 {
                found.push((path, uses));
            }
        }
    }
}

/// Counts the lines that use `unsafe`, without comments and texts.
fn uses(text: &str) -> usize {
    let is_use = |line: &&str| {
        let code = line.trim_start();
        // In a text, a sign has a quote before it.
        !code.starts_with("//")
            && SIGNS.iter().any(|sign| {
                code.find(sign).is_some_and(|at| !code[..at].contains('"') && !code[..at].ends_with('_'))
            })
    };
    text.lines().filter(is_use).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_told_from_comments_and_texts() {
        assert_eq!(uses("    unsafe { a() }\nunsafe impl X for Y {}\npub unsafe fn f() {}\n"), 3);
        assert_eq!(
            uses("// unsafe { }\nlet a = \"unsafe { }\";\n#![expect(unsafe_code)]\nunsafe_code {\n"),
            0
        );
        assert_eq!(uses("let x = unsafe {\n#[unsafe(no_mangle)]\nunsafe extern \"C\" {}\n"), 3);
    }

    #[test]
    fn this_workspace_uses_unsafe_only_where_it_is_known() {
        let found = files_with_uses(&crate::sources::workspace());
        let files: Vec<&str> = found.iter().map(|(file, _)| file.as_str()).collect();
        assert_eq!(problems(&files), Vec::<String>::new());
    }

    #[test]
    fn an_unknown_file_and_one_that_needs_no_entry_are_reported() {
        let [(one, _), (other, _)] = KNOWN;
        assert!(problems(&[one, other]).is_empty());
        assert!(problems(&[one, other, "crates/new.rs"])[0].starts_with("crates/new.rs uses `unsafe`"));
        assert!(problems(&[one])[0].starts_with(other));
    }
}
