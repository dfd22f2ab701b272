//! What a call changes in which file, as far as its arguments tell.

use deloop_types::Call;
use serde_json::{Map, Value};

use super::command::command_line;
use super::shell::{Script, SimpleCommand};
use crate::{ToolKind, short_hash};

/// One change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The file.
    pub(crate) path: String,
    pub(crate) change: Change,
}

/// What happens to the file; texts are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// A piece is replaced.
    Replace { old: u64, new: u64 },
    /// All of it is written anew.
    Whole(u64),
    /// The last change is taken back.
    Undo,
    /// Everything is as it was committed.
    Restore,
}

const PATHS: [&str; 9] =
    ["file_path", "path", "filePath", "filename", "file", "target_file", "absolute_path", "file_name", "uri"];
const OLD: [&str; 8] =
    ["old_string", "old_str", "oldString", "oldText", "old_text", "search", "old", "old_content"];
const NEW: [&str; 8] =
    ["new_string", "new_str", "newString", "newText", "new_text", "replace", "new", "new_content"];
const WHOLE: [&str; 5] = ["content", "file_text", "contents", "code_edit", "text"];
const PATCH: [&str; 3] = ["input", "patch", "diff"];

/// No more edits than this are looked at in one call.
const MOST: usize = 32;

/// The edits of a call that may write.
pub(crate) fn edits(call: &Call, kind: ToolKind) -> Vec<Edit> {
    let mut all = match kind {
        ToolKind::Write => of_tool(call),
        ToolKind::Run => command_line(&call.args).map_or_else(Vec::new, |line| of_command(&line)),
        _ => Vec::new(),
    };
    all.truncate(MOST);
    all
}

fn text<'a>(map: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| map.get(*name)?.as_str())
}

fn of_tool(call: &Call) -> Vec<Edit> {
    let map = match &call.args {
        Value::String(patch) => return of_patch(patch),
        Value::Object(map) => map,
        _ => return Vec::new(),
    };
    let undoes = |word: &str| word.contains("undo");
    let Some(path) = text(map, &PATHS) else {
        return text(map, &PATCH).map_or_else(Vec::new, of_patch);
    };
    let edit = |change| Edit { path: path.to_owned(), change };
    if undoes(&call.tool) || text(map, &["command"]).is_some_and(undoes) {
        return vec![edit(Change::Undo)];
    }
    let replace = |map: &Map<String, Value>| {
        let (old, new) = (text(map, &OLD)?, text(map, &NEW)?);
        Some(edit(Change::Replace { old: print(old), new: print(new) }))
    };
    if let Some(Value::Array(edits)) = map.get("edits") {
        return edits.iter().filter_map(|e| replace(e.as_object()?)).collect();
    }
    let whole = || Some(edit(Change::Whole(print(text(map, &WHOLE)?))));
    replace(map).or_else(whole).into_iter().collect()
}

fn print(text: &str) -> u64 {
    short_hash(text.trim_end().as_bytes())
}

/// Of a patch, file by file: what its `-` lines say becomes what its `+` lines say.
fn of_patch(patch: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut open: Option<(String, String, String)> = None;
    let mut close = |open: &mut Option<(String, String, String)>| {
        if let Some((path, old, new)) = open.take()
            && !(old.is_empty() && new.is_empty())
        {
            edits.push(Edit { path, change: Change::Replace { old: print(&old), new: print(&new) } });
        }
    };
    for line in patch.lines() {
        let begins = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ "];
        if let Some(path) = begins.iter().find_map(|b| line.strip_prefix(b)) {
            close(&mut open);
            open = Some((path.trim_start_matches("b/").trim().to_owned(), String::new(), String::new()));
        } else if line.starts_with("--- ") || line.starts_with("*** ") {
            close(&mut open);
        } else if let Some((_, old, new)) = &mut open {
            let (side, rest) = match line.as_bytes().first() {
                Some(b'-') => (old, &line[1..]),
                Some(b'+') => (new, &line[1..]),
                _ => continue,
            };
            side.push_str(rest);
            side.push('\n');
        }
    }
    close(&mut open);
    edits
}

fn of_command(line: &str) -> Vec<Edit> {
    if line.contains("*** Begin Patch") {
        return of_patch(line);
    }
    let script = Script::parse(line);
    script.commands.iter().flat_map(of_program).collect()
}

fn of_program(command: &SimpleCommand<'_>) -> Vec<Edit> {
    let arguments = command.arguments();
    let words: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    match command.program() {
        "git" => restored(&words),
        "sed" if words.iter().any(|w| w.starts_with("-i") || *w == "--in-place") => {
            let mut plain = words.iter().filter(|w| !w.starts_with('-') && !w.is_empty());
            let Some((old, new)) = plain.next().and_then(|script| substitution(script)) else {
                return Vec::new();
            };
            let change = Change::Replace { old: print(old), new: print(new) };
            plain.map(|path| Edit { path: (*path).to_owned(), change }).collect()
        }
        _ => Vec::new(),
    }
}

/// The files that git puts back; one without a name stands for all of them.
fn restored(words: &[&str]) -> Vec<Edit> {
    let all = || vec![Edit { path: String::new(), change: Change::Restore }];
    let paths = |words: &[&str]| -> Vec<Edit> {
        let named = words.iter().filter(|w| !w.starts_with('-'));
        named
            .map(|path| {
                let path = if *path == "." { String::new() } else { (*path).to_owned() };
                Edit { path, change: Change::Restore }
            })
            .collect()
    };
    match words {
        ["restore", rest @ ..] => paths(rest),
        ["checkout", rest @ ..] => {
            let after = rest.iter().position(|w| *w == "--").map(|at| &rest[at + 1..]);
            after.or(if rest == ["."] { Some(rest) } else { None }).map_or_else(Vec::new, paths)
        }
        ["reset", rest @ ..] if rest.contains(&"--hard") => all(),
        ["stash"] | ["stash", "push" | "save", ..] => all(),
        _ => Vec::new(),
    }
}

/// The two sides of `s/old/new/`.
fn substitution(script: &str) -> Option<(&str, &str)> {
    let mut letters = script.char_indices();
    if letters.next()?.1 != 's' {
        return None;
    }
    let (_, mark) = letters.next()?;
    let inner = script.get(1 + mark.len_utf8()..)?;
    let mut parts = inner.split(mark);
    let found = (parts.next()?, parts.next()?);
    parts.next().filter(|flags| flags.len() <= 2).map(|_| found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(tool: &str, args: Value, kind: ToolKind) -> Vec<(String, Change)> {
        let call = Call { id: None, tool: tool.to_owned(), args };
        edits(&call, kind).into_iter().map(|e| (e.path, e.change)).collect()
    }

    #[test]
    fn the_tools_of_agents_say_what_they_change() {
        let change = Change::Replace { old: print("a"), new: print("b") };
        let expected = vec![("f".to_owned(), change)];
        for args in [
            json!({"file_path": "f", "old_string": "a", "new_string": "b"}),
            json!({"command": "str_replace", "path": "f", "old_str": "a", "new_str": "b"}),
            json!({"path": "f", "edits": [{"oldText": "a", "newText": "b"}]}),
            json!({"input": "*** Begin Patch\n*** Update File: f\n@@\n x\n-a\n+b\n*** End Patch"}),
            json!("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b"),
        ] {
            assert_eq!(of("edit", args.clone(), ToolKind::Write), expected, "{args}");
        }
        let command = json!({"command": "cd x && sed -i 's/a/b/' f"});
        assert_eq!(of("bash", command, ToolKind::Run), expected);
        let undo = json!({"command": "undo_edit", "path": "f"});
        assert_eq!(of("str_replace_editor", undo, ToolKind::Write), [("f".to_owned(), Change::Undo)]);
    }

    #[test]
    fn git_puts_back() {
        for (command, path) in [
            ("git checkout -- f", "f"),
            ("git restore f", "f"),
            ("git checkout .", ""),
            ("git stash", ""),
            ("git reset --hard HEAD", ""),
        ] {
            let expected = [(path.to_owned(), Change::Restore)];
            assert_eq!(of("bash", json!({ "command": command }), ToolKind::Run), expected, "{command}");
        }
        for command in ["git checkout main", "git stash pop", "git status", "sed -n s/a/b/p f"] {
            assert_eq!(of("bash", json!({ "command": command }), ToolKind::Run), [], "{command}");
        }
    }
}
