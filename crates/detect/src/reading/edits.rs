//! Reads which files a call edits, and the text it replaces.

use std::borrow::Cow;

use deloop_types::Call;
use serde_json::Value;

use super::tools::{ToolKind, name_words};

/// The arguments that name the file of an edit, best first.
const PATHS: &[&str] = &[
    "file_path",
    "path",
    "filename",
    "file",
    "filepath",
    "filePath",
    "target_file",
    "targetFile",
    "notebook_path",
    "relative_path",
    "absolute_path",
];
/// The arguments that hold the text to be replaced.
const OLD: &[&str] = &["old_string", "old_str", "oldString", "old_text", "oldText", "search"];
/// The arguments that hold the text in its place.
const NEW: &[&str] =
    &["new_string", "new_str", "newString", "new_text", "newText", "replace", "replacement", "insert_text"];
/// The arguments that hold a whole file.
const WHOLE: &[&str] = &["content", "contents", "file_text", "fileText"];

/// One change of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileEdit<'a> {
    /// The file, with `/` between folders and no `./` in front.
    pub(crate) path: String,
    /// The text that is replaced; empty when the call doesn't show it.
    pub(crate) old: Cow<'a, str>,
    /// The text in its place.
    pub(crate) new: Cow<'a, str>,
    /// Whether `new` is the whole file.
    pub(crate) whole: bool,
}

/// Returns the edits that a call makes: those of a patch in its arguments, or those of an editing tool that names a
/// file. A shell command that writes a file isn't recognized.
pub(crate) fn file_edits<'a>(call: &'a Call, kind: ToolKind) -> Vec<FileEdit<'a>> {
    if matches!(kind, ToolKind::Write | ToolKind::Run | ToolKind::Other)
        && let Some(patch) = patch_in(&call.args)
    {
        return patched(patch);
    }
    let Some(path) = text(&call.args, PATHS).filter(|path| !path.trim().is_empty()) else {
        return Vec::new();
    };
    // One tool for several actions names the action: only reading it is no edit.
    let only_looks = matches!(call.args["command"].as_str(), Some("view" | "open" | "read"));
    if kind != ToolKind::Write || only_looks {
        return Vec::new();
    }
    let path = same_path(path);
    let one = |args: &'a Value| {
        let adds =
            name_words(&call.tool).any(|w| ["append", "insert"].iter().any(|a| w.eq_ignore_ascii_case(a)));
        let old = text(args, OLD).unwrap_or_default();
        let whole = text(args, WHOLE);
        let new = text(args, NEW).or(whole).unwrap_or_default();
        let whole = whole.is_some() && old.is_empty() && text(args, NEW).is_none() && !adds;
        FileEdit { path: path.clone(), old: Cow::Borrowed(old), new: Cow::Borrowed(new), whole }
    };
    match call.args["edits"].as_array() {
        Some(edits) if !edits.is_empty() => edits.iter().map(one).collect(),
        _ => vec![one(&call.args)],
    }
}

fn text<'a>(args: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| args.get(*key)?.as_str())
}

/// Returns a path in the form by which two spellings of it are the same.
fn same_path(path: &str) -> String {
    let mut path = path.trim().replace('\\', "/");
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.to_owned();
    }
    path
}

/// Returns the argument that contains a patch in the format of `apply_patch`.
fn patch_in(args: &Value) -> Option<&str> {
    let patch = |value: &'_ Value| value.as_str().is_some_and(|text| text.contains("*** Begin Patch"));
    let found = match args {
        Value::Object(map) => map.values().find_map(|value| match value {
            Value::Array(words) => words.iter().find(|word| patch(word)),
            other => Some(other).filter(|value| patch(value)),
        }),
        Value::Array(words) => words.iter().find(|word| patch(word)),
        other => Some(other).filter(|value| patch(value)),
    };
    found.and_then(Value::as_str)
}

fn patched(patch: &str) -> Vec<FileEdit<'static>> {
    let mut edits: Vec<FileEdit<'static>> = Vec::new();
    for line in patch.lines() {
        let named = ["*** Update File: ", "*** Add File: "]
            .iter()
            .find_map(|mark| line.strip_prefix(mark).map(|path| (same_path(path), mark.contains("Add"))));
        if let Some((path, whole)) = named {
            edits.push(FileEdit { path, whole, ..FileEdit::default() });
            continue;
        }
        let Some(edit) = edits.last_mut() else { continue };
        let mut add = |old: bool, new: bool, rest: &str| {
            for (wanted, text) in [(old, &mut edit.old), (new, &mut edit.new)] {
                if wanted {
                    let text = text.to_mut();
                    text.push_str(rest);
                    text.push('\n');
                }
            }
        };
        match line.split_at_checked(1) {
            Some(("-", rest)) => add(true, false, rest),
            Some(("+", rest)) => add(false, true, rest),
            Some((" ", rest)) => add(true, true, rest),
            _ => {}
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(tool: &str, args: Value) -> Vec<(String, String, String, bool)> {
        let call = Call::new(tool, args);
        let kind = super::super::Tools::default().kind(tool);
        let edits = file_edits(&call, kind);
        edits.into_iter().map(|e| (e.path, e.old.into_owned(), e.new.into_owned(), e.whole)).collect()
    }

    #[test]
    fn edits_of_all_kinds() {
        let edit = |path: &str, old: &str, new: &str, whole| {
            (path.to_owned(), old.to_owned(), new.to_owned(), whole)
        };
        assert_eq!(
            of("Edit", json!({"file_path": "./a\\b.rs", "old_string": "x", "new_string": "y"})),
            [edit("a/b.rs", "x", "y", false)]
        );
        assert_eq!(of("Write", json!({"file_path": "a", "content": "c"})), [edit("a", "", "c", true)]);
        assert_eq!(of("append_file", json!({"path": "a", "content": "c"})), [edit("a", "", "c", false)]);
        assert_eq!(
            of("MultiEdit", json!({"file_path": "a", "edits": [{"old_string": "1", "new_string": "2"}, {}]})),
            [edit("a", "1", "2", false), edit("a", "", "", false)]
        );
        let patch =
            "*** Begin Patch\n*** Update File: a.md\n@@\n # A\n-x\n+y\n*** Add File: b\n+z\n*** End Patch";
        let both = [edit("a.md", "# A\nx\n", "# A\ny\n", false), edit("b", "", "z\n", true)];
        assert_eq!(of("apply_patch", json!({"input": patch})), both);
        assert_eq!(of("shell", json!({"command": ["apply_patch", patch]})), both);
        for (tool, args) in [
            ("Read", json!({"file_path": "a"})),
            ("str_replace_based_edit_tool", json!({"command": "view", "path": "a"})),
            ("update_order", json!({"id": 3})),
            ("bash", json!({"command": "sed -i s/a/b/ x"})),
        ] {
            assert_eq!(of(tool, args), [], "{tool}");
        }
    }
}
