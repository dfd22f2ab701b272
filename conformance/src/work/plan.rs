//! Plans: files with sections, and lists with items.

use std::collections::HashMap;

use serde_json::Value;

use super::edits::{Edit, text};
use crate::canonical::canonical;
use crate::step::Call;

/// Items of a plan tool's list, or a single one: the item's name and its text, without its state.
#[derive(Debug, Clone)]
pub(super) struct List {
    tool: String,
    items: Vec<(String, String)>,
    /// The items that are over.
    done: Vec<String>,
    whole: bool,
}

/// The list that a call of a plan tool writes.
pub(super) fn list(call: &Call) -> Option<List> {
    let tools = ["TodoWrite", "todo_write", "update_plan", "write_todos", "TaskUpdate", "task_update"];
    if !tools.contains(&call.tool.as_str()) {
        return None;
    }
    let name = |item: &Value, at: usize| match ["id", "taskId"].iter().find(|key| !item[**key].is_null()) {
        Some(key) => format!("id {}", text(&item[*key])),
        None => format!("#{at}"),
    };
    let tool = call.tool.clone();
    let list = ["todos", "plan"].iter().find_map(|key| call.args[*key].as_array());
    if let Some(list) = list {
        let items = list.iter().enumerate().map(|(at, item)| (name(item, at), says(item)));
        let items: Vec<_> = items.filter(|(_, says)| !says.is_empty()).collect();
        let over = list.iter().enumerate().filter(|(_, item)| is_done(item));
        let done = over.map(|(at, item)| name(item, at)).collect();
        return (!items.is_empty()).then_some(List { tool, items, done, whole: true });
    }
    let (item, says) = (name(&call.args, 0), says(&call.args));
    let named = item.starts_with("id ") && !says.is_empty();
    let done = if is_done(&call.args) { vec![item.clone()] } else { Vec::new() };
    named.then(|| List { tool, items: vec![(item, says)], done, whole: false })
}

fn is_done(item: &Value) -> bool {
    item["status"] == "completed" || item["status"] == "done"
}

/// What an item says, its state aside.
fn says(item: &Value) -> String {
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        for state in ["id", "taskId", "status", "state", "activeForm"] {
            members.remove(state);
        }
        if members.is_empty() {
            return String::new();
        }
    }
    canonical(&item)
}

/// Whether a file holds a plan.
fn is_plan(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    ["PLAN.md", "plan.md", "TODO.md", "todo.md"].contains(&name) || folders.split('/').any(|f| f == "plans")
}

/// A section or item as it was last written (nothing if only a part of it was seen), and how often it was rewritten.
#[derive(Clone, Default)]
struct Part {
    text: Option<String>,
    /// An item that is over: another text in its place is a new item.
    done: bool,
    rewrites: u64,
}

/// All plans of one worker.
#[derive(Default)]
pub(super) struct Plans {
    files: HashMap<(String, String), Part>,
    lists: HashMap<String, HashMap<String, Part>>,
}

impl Plans {
    /// Counts what one call rewrites; the most rewrites of one part.
    pub fn count(&mut self, edits: &[Edit], list: Option<&List>) -> Option<u64> {
        if let Some(list) = list {
            return self.items(list);
        }
        let plans = edits.iter().filter(|edit| is_plan(&edit.path));
        plans.fold(None, |most, edit| most.max(self.file(edit)))
    }

    fn file(&mut self, edit: &Edit) -> Option<u64> {
        let mut most = None;
        let (old, new) = (sections(&edit.old), sections(&edit.new));
        let headings: Vec<&String> =
            old.iter().chain(new.iter().filter(|n| !old.iter().any(|o| o.0 == n.0))).map(|s| &s.0).collect();
        let find = |sections: &[(String, String)], heading: &String| {
            sections.iter().find(|section| section.0 == *heading).map(|section| section.1.clone())
        };
        for heading in headings {
            let part = self.files.entry((edit.path.clone(), heading.clone()));
            let (before, after) = (find(&old, heading), find(&new, heading).unwrap_or_default());
            if edit.whole {
                let part = part.or_default();
                let differs = part.text.as_ref().is_some_and(|text| *text != after);
                part.text = Some(after);
                if differs {
                    part.rewrites += 1;
                    most = most.max(Some(part.rewrites));
                }
                continue;
            }
            if before.as_ref() == Some(&after) {
                continue;
            }
            let part = part.or_default();
            part.text = None;
            if before.is_some_and(|before| !after.contains(&before)) {
                part.rewrites += 1;
                most = most.max(Some(part.rewrites));
            }
        }
        most
    }

    fn items(&mut self, list: &List) -> Option<u64> {
        let known = self.lists.entry(list.tool.clone()).or_default();
        let before = known.clone();
        let mut most = None;
        if list.whole {
            known.retain(|name, _| list.items.iter().any(|item| item.0 == *name));
        }
        for (name, says) in &list.items {
            let old = before.get(name);
            let differs = old.is_some_and(|old| old.text.as_ref() != Some(says));
            let over = old.is_some_and(|old| old.done);
            let was_there = before.values().any(|part| part.text.as_ref() == Some(says));
            let still_there =
                old.is_some_and(|old| list.items.iter().any(|item| Some(&item.1) == old.text.as_ref()));
            let again = if list.whole {
                differs && !over && !was_there && !still_there
            } else {
                old.is_none() || differs
            };
            let part = known.entry(name.clone()).or_default();
            part.text = Some(says.clone());
            part.done = list.done.contains(name);
            if over && differs {
                part.rewrites = 0;
            }
            if again {
                part.rewrites += 1;
                most = most.max(Some(part.rewrites));
            }
        }
        most
    }
}

/// The headings of a Markdown text with the lines below them; what comes before the first has the heading "".
fn sections(text: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    let mut current: Option<String> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let hashes = line.chars().take_while(|c| *c == '#').count();
        let is_heading = (1..=6).contains(&hashes) && line[hashes..].starts_with(' ');
        let heading = if is_heading { Some(line[hashes..].trim().to_owned()) } else { current.clone() };
        let heading = heading.unwrap_or_default();
        if !sections.iter().any(|section| section.0 == heading) {
            sections.push((heading.clone(), String::new()));
        }
        if !is_heading && let Some(section) = sections.iter_mut().find(|section| section.0 == heading) {
            section.1.push_str(&unmarked(line));
            section.1.push('\n');
        }
        current = Some(heading);
    }
    sections
}

/// A line without its check box.
fn unmarked(line: &str) -> String {
    let boxes = ["- [ ] ", "- [x] ", "- [X] "];
    boxes.iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).trim().to_owned()
}
