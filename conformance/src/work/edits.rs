//! Files that are edited.

use serde_json::Value;

use crate::step::Call;

/// A change of one file: the text it takes away, the text it puts there, and whether that is all of the file.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    pub path: String,
    pub old: String,
    pub new: String,
    pub whole: bool,
}

/// The changes that a call makes, if it is one of an editing tool.
pub(super) fn of(call: &Call) -> Vec<Edit> {
    if let Some(patch) = call.args["input"].as_str().filter(|text| text.contains("*** Begin Patch")) {
        return patched(patch);
    }
    let tool = call.tool.to_lowercase();
    let verbs = ["edit", "write", "create", "update", "replace", "insert", "append"];
    let edits = verbs.iter().any(|verb| tool.contains(verb)) && tool != "todowrite";
    let keys = ["file_path", "path"];
    let Some(path) = keys.iter().find_map(|key| call.args[*key].as_str()).filter(|_| edits) else {
        return Vec::new();
    };
    let text = |keys: &[&str]| keys.iter().find_map(|key| call.args[*key].as_str()).map(str::to_owned);
    let old = text(&["old_string"]);
    let new = text(&["new_string"]);
    let content = text(&["content"]);
    vec![Edit {
        path: spelled(path),
        whole: old.is_none() && new.is_none() && content.is_some() && !tool.contains("append"),
        old: old.unwrap_or_default(),
        new: new.or(content).unwrap_or_default(),
    }]
}

fn patched(patch: &str) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    for line in patch.lines() {
        for (mark, whole) in [("*** Update File: ", false), ("*** Add File: ", true)] {
            if let Some(path) = line.strip_prefix(mark) {
                edits.push(Edit { path: spelled(path), old: String::new(), new: String::new(), whole });
            }
        }
        let Some(edit) = edits.last_mut() else { continue };
        let mut chars = line.chars();
        let sign = chars.next();
        let rest = format!("{}\n", chars.as_str());
        if matches!(sign, Some('-' | ' ')) {
            edit.old.push_str(&rest);
        }
        if matches!(sign, Some('+' | ' ')) {
            edit.new.push_str(&rest);
        }
    }
    edits
}

fn spelled(path: &str) -> String {
    path.trim().replace('\\', "/").trim_start_matches("./").to_owned()
}

/// Whether a file holds tests, by its name or its folder.
pub(super) fn is_test_file(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let in_folder = folders.split('/').any(|folder| ["tests", "test", "__tests__", "spec"].contains(&folder));
    in_folder
        || name.starts_with("test_") && name.ends_with(".py")
        || ["_test.py", "_test.go", "Test.java", "_test.rs"].iter().any(|end| name.ends_with(end))
        || name.contains(".test.")
        || name.contains(".spec.")
}

/// How often each file was edited since the last progress.
#[derive(Default)]
pub(super) struct Edits(Vec<String>);

impl Edits {
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Counts the files of one call, each once; the most edits of one of them.
    pub fn count(&mut self, edits: &[Edit], concerns: fn(&str) -> bool) -> Option<u64> {
        let mut paths: Vec<&String> =
            edits.iter().map(|edit| &edit.path).filter(|path| concerns(path)).collect();
        paths.sort();
        paths.dedup();
        let mut most = None;
        for path in paths {
            self.0.push(path.clone());
            most = most.max(Some(self.0.iter().filter(|edited| *edited == path).count() as u64));
        }
        most
    }
}

/// A text argument.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
