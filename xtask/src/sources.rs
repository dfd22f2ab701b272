//! The names of tests, vectors, pages and examples, from the sources: nothing has to be built to know them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns the folder of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A test that `cargo test` leaves out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IgnoredTest {
    /// As in the documents: `BINARY::PATH`.
    pub(crate) name: String,
    /// Its modules and its name in its binary.
    pub(crate) path: String,
    /// What its attribute says; empty if it says nothing.
    pub(crate) reason: String,
}

/// Returns the tests with an attribute `#[ignore]`.
pub(crate) fn ignored_tests(workspace: &Path) -> Vec<IgnoredTest> {
    let with_reason =
        |test: FoundTest| Some(IgnoredTest { name: test.name(), reason: test.ignored?, path: test.path });
    let mut ignored: Vec<IgnoredTest> = all_tests(workspace).into_iter().filter_map(with_reason).collect();
    ignored.sort_by(|a, b| a.path.cmp(&b.path));
    ignored
}

/// Returns the names of all tests, vectors, detector pages and examples below the workspace's folder.
pub(crate) fn names(workspace: &Path) -> BTreeSet<String> {
    let tests = all_tests(workspace).into_iter().map(|test| test.name());
    let mut names: BTreeSet<String> = tests.collect();
    let vectors = workspace.join("conformance/vectors");
    for profile in folders(&vectors) {
        let files = named(&profile, "json");
        names.extend(files.into_iter().map(|name| format!("vector::{}/{name}", last(&profile))));
    }
    let pages = named(&workspace.join("crates/detect/src/detectors"), "md");
    names.extend(pages.into_iter().map(|name| format!("page::{name}")));
    let examples = named(&workspace.join("crates/deloop/examples"), "rs");
    names.extend(examples.into_iter().map(|name| format!("example::{name}")));
    names
}

/// A test in the sources.
struct FoundTest {
    binary: String,
    /// Its modules and its name.
    path: String,
    /// The reason in its attribute `#[ignore]`, if it has one.
    ignored: Option<String>,
}

impl FoundTest {
    fn name(&self) -> String {
        format!("{}::{}", self.binary, self.path)
    }
}

fn all_tests(workspace: &Path) -> Vec<FoundTest> {
    let mut tests = Vec::new();
    let crates = folders(&workspace.join("crates"));
    for package in crates.into_iter().chain([workspace.join("conformance"), workspace.join("xtask")]) {
        tests_of(&package, &mut tests);
    }
    tests
}

/// Adds the tests in the library of a package, and those in its folder `tests`.
fn tests_of(package: &Path, found: &mut Vec<FoundTest>) {
    let library = match last(package).as_str() {
        "deloop" | "xtask" => last(package),
        name => format!("deloop_{name}"),
    };
    walk(&package.join("src"), &library, &[], found);
    let tests = package.join("tests");
    for name in named(&tests, "rs") {
        walk_file(&tests.join(format!("{name}.rs")), &name, &[], found);
    }
    for folder in folders(&tests) {
        walk(&folder, &last(&folder), &[], found);
    }
}

fn walk(folder: &Path, binary: &str, path: &[String], found: &mut Vec<FoundTest>) {
    for name in named(folder, "rs") {
        let root = ["lib", "main", "mod"].contains(&name.as_str());
        let module: Vec<String> = path.iter().cloned().chain((!root).then(|| name.clone())).collect();
        walk_file(&folder.join(format!("{name}.rs")), binary, &module, found);
    }
    for inner in folders(folder) {
        let module: Vec<String> = path.iter().cloned().chain([last(&inner)]).collect();
        walk(&inner, binary, &module, found);
    }
}

fn walk_file(file: &Path, binary: &str, path: &[String], found: &mut Vec<FoundTest>) {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    for (test, ignored) in tests_in(&text) {
        let path = path.iter().cloned().chain([test]).collect::<Vec<_>>().join("::");
        found.push(FoundTest { binary: binary.to_owned(), path, ignored });
    }
}

/// Returns the functions behind `#[test]`, below their modules, and why they are ignored. rustfmt puts the end of a module
/// under its beginning.
fn tests_in(text: &str) -> Vec<(String, Option<String>)> {
    let mut modules: Vec<(usize, &str)> = Vec::new();
    let mut tests = Vec::new();
    let (mut is_test, mut ignored) = (false, None);
    for line in text.lines() {
        let item = line.trim_start();
        let indent = line.len() - item.len();
        let visible = item.strip_prefix("pub ").unwrap_or(item);
        if let Some(name) = visible.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            modules.push((indent, name));
        } else if item == "}" && modules.last().is_some_and(|(start, _)| *start == indent) {
            modules.pop();
        } else if item == "#[test]" {
            (is_test, ignored) = (true, None);
        } else if let Some(reason) = item.strip_prefix("#[ignore") {
            ignored = Some(
                reason.trim_start_matches(" = \"").trim_end_matches(']').trim_end_matches('"').to_owned(),
            );
        } else if is_test && let Some((name, _)) = item.strip_prefix("fn ").and_then(|f| f.split_once('(')) {
            is_test = false;
            let path = modules.iter().map(|(_, module)| *module).chain([name]);
            tests.push((path.collect::<Vec<_>>().join("::"), ignored.take()));
        }
    }
    tests
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_dir()).collect()
}

/// Returns the names of the files with this ending, without it.
fn named(folder: &Path, ending: &str) -> Vec<String> {
    let files = entries(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == ending));
    files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

fn last(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_have_their_modules() {
        let text = "mod a;\n#[test]\nfn one() {\n}\nfn none() {}\nmod tests {\n    #[test]\n    #[ignore = \"needs luck\"]\n    fn two() {\n    }\n    mod deep {\n        #[test]\n        fn three() {}\n    }\n    #[test]\n    fn four() {}\n}\n#[test]\nfn five() {}\n";
        let (names, ignored): (Vec<String>, Vec<Option<String>>) = tests_in(text).into_iter().unzip();
        assert_eq!(names, ["one", "tests::two", "tests::deep::three", "tests::four", "five"]);
        assert_eq!(ignored, [None, Some("needs luck".to_owned()), None, None, None]);
    }

    #[test]
    fn this_workspace_has_names_of_every_kind() {
        let names = names(&workspace());
        for name in [
            "xtask::sources::tests::this_workspace_has_names_of_every_kind",
            "it::conformance::every_vector_holds",
            "it::reproductions::found::an_output_that_quotes_deloop",
            "pages::every_page_is_true",
            "deloop_store::sqlite::tests::keeps_the_contract",
            "deloop_conformance::random::tests::x",
            "vector::behavioral/ladder",
            "page::similar-call",
            "example::harness",
        ] {
            assert_eq!(names.contains(name), !name.ends_with("::x"), "{name}");
        }
    }
}
