//! Reads which parts of a plan a call writes: sections of a plan file, or items of a plan tool's list. Only hashes of
//! the text leave this file.

use deloop_types::Call;
use serde_json::Value;

use super::canonical::write_canonical;
use super::edits::FileEdit;
use super::{PatternOf, Tools, Vocabulary};
use crate::fingerprint::half;
use crate::short_hash;

/// The arguments that hold the list of a plan tool, best first.
const LISTS: &[&str] = &[
    "todos",
    "plan",
    "items",
    "steps",
    "tasks",
    "todo_list",
    "todoList",
    "task_list",
    "taskList",
    "entries",
];
/// The arguments that identify an item.
const IDS: &[&str] = &["id", "taskId", "task_id", "todoId"];
/// The arguments of an item that say how far it is, not what it is.
const STATES: &[&str] = &["status", "state", "done", "completed", "checked", "activeForm", "active_form"];

/// Number of sections of one text that are read. Text below later headings isn't.
const SECTIONS: usize = 64;

/// How a call touches a section or an item of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Touch {
    /// An edit replaces text of the section.
    Replaced,
    /// An edit adds to the section, or adds the section.
    Added,
    /// The whole file is written, and this section is part of it.
    Written,
    /// The whole list is written, and this item is part of it.
    Listed,
    /// One item is written.
    Item,
}

/// A section or an item that a call touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct PlanTouch {
    /// Identifies the plan: a file or a tool.
    pub(crate) plan: u32,
    /// Identifies the section or item in it.
    pub(crate) part: u32,
    /// Hash of its text, without marks of progress.
    pub(crate) text: u32,
    /// How it is touched.
    pub(crate) how: Touch,
    /// Whether it is an item that is over.
    pub(crate) done: bool,
}

/// The state of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemState {
    /// It isn't started, or its state isn't known.
    Open,
    /// It is being worked on.
    Started,
    /// It is over.
    Done,
}

/// An item of a plan tool's list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanItem {
    /// The item's part in the plan.
    pub(crate) touch: PlanTouch,
    /// Identifies the item as a task: its id, else its text.
    pub(crate) task: u32,
    /// How far it is.
    pub(crate) state: ItemState,
    /// Whether the call writes the item's text, not only its state.
    pub(crate) says: bool,
}

/// Returns the sections of a plan file that an edit touches.
pub(crate) fn plan_sections(edit: &FileEdit<'_>) -> Vec<PlanTouch> {
    let plan = hash(&edit.path);
    let part = |heading: &str, text: &str, how| PlanTouch {
        plan,
        part: hash(heading),
        text: hash(text),
        how,
        done: false,
    };
    let new = sections(&edit.new);
    if edit.whole {
        return new.iter().map(|(heading, text)| part(heading, text, Touch::Written)).collect();
    }
    let old = sections(&edit.old);
    let in_new = |heading: &str| new.iter().find(|(h, _)| h == heading).map_or("", |(_, text)| text);
    let mut touched: Vec<PlanTouch> = Vec::new();
    for (heading, before) in &old {
        let after = in_new(heading);
        if before != after {
            let adds = after.contains(before.as_str());
            touched.push(part(heading, after, if adds { Touch::Added } else { Touch::Replaced }));
        }
    }
    let fresh = new.iter().filter(|(heading, _)| !old.iter().any(|(h, _)| h == heading));
    touched.extend(fresh.map(|(heading, text)| part(heading, text, Touch::Added)));
    touched
}

/// Splits Markdown into headings and the texts below them; text before the first heading has the heading "". Blank
/// lines, surrounding spaces and the marks of check boxes are left out.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let (mut at, mut fenced) = (None, false);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        fenced ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        let is_heading = !fenced && (1..=6).contains(&level) && title.starts_with(' ');
        let heading = if is_heading { Some(title.trim()) } else { at.is_none().then_some("") };
        if let Some(heading) = heading {
            let known = all.iter().position(|(h, _)| h == heading);
            if known.is_none() && all.len() >= SECTIONS {
                break;
            }
            at = Some(known.unwrap_or(all.len()));
            if known.is_none() {
                all.push((heading.to_owned(), String::new()));
            }
        }
        if let Some((_, body)) = at.and_then(|at| all.get_mut(at)).filter(|_| !is_heading) {
            body.push_str(&without_mark(line).0);
            body.push('\n');
        }
    }
    all
}

/// Returns a line without the mark of its check box, and the state that the mark shows.
fn without_mark(line: &str) -> (String, ItemState) {
    let bare = line.trim_start_matches(['-', '*', '+', ' ']);
    let mut chars = bare.chars();
    let (open, mark, close) = (chars.next(), chars.next(), chars.next());
    if (open, close) != (Some('['), Some(']')) {
        return (line.to_owned(), ItemState::Open);
    }
    let state = match mark {
        Some('x' | 'X' | '✓') => ItemState::Done,
        Some('-' | '~' | '>' | '/') => ItemState::Started,
        _ => ItemState::Open,
    };
    (chars.as_str().trim().to_owned(), state)
}

/// The task that a call completes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletedTask {
    /// The one with this id.
    Named(String),
    /// The one that the agent works on.
    Current,
}

/// Returns the task that a task tool's call completes. A list of tasks completes none by itself.
///
/// ```
/// use deloop_detect::{CompletedTask, Tools, completed_task};
/// use deloop_types::Call;
/// let call = Call::new("TaskUpdate", serde_json::json!({"taskId": "t1", "status": "completed"}));
/// assert_eq!(completed_task(&call, &Tools::default()), Some(CompletedTask::Named("t1".into())));
/// ```
#[must_use]
pub fn completed_task(call: &Call, tools: &Tools) -> Option<CompletedTask> {
    let vocabulary = tools.vocabulary();
    let map = call.args.as_object().filter(|_| vocabulary.is_a(PatternOf::TaskTool, &call.tool))?;
    let is_list = LISTS.iter().any(|key| map.get(*key).is_some_and(|v| v.is_array() || v.is_string()));
    if is_list || state_of(map, vocabulary) != ItemState::Done {
        return None;
    }
    Some(id_of(map).map_or(CompletedTask::Current, CompletedTask::Named))
}

fn id_of(item: &serde_json::Map<String, Value>) -> Option<String> {
    IDS.iter().find_map(|key| match item.get(*key)? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    })
}

/// Returns the items that a plan tool's call writes.
pub(crate) fn plan_items(call: &Call, vocabulary: &Vocabulary) -> Vec<PlanItem> {
    let list = match &call.args {
        Value::Array(_) => Some(&call.args),
        args => LISTS.iter().find_map(|key| args.get(*key)).filter(|v| v.is_array() || v.is_string()),
    };
    let read = |item: &Value, position: usize, how| read_item(&call.tool, item, position, how, vocabulary);
    match list {
        Some(Value::Array(items)) => {
            items.iter().enumerate().filter_map(|(at, item)| read(item, at, Touch::Listed)).collect()
        }
        Some(Value::String(text)) => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let items = lines.enumerate().map(|(at, line)| read(&Value::from(line), at, Touch::Listed));
            items.flatten().collect()
        }
        _ => read(&call.args, 0, Touch::Item).into_iter().collect(),
    }
}

fn read_item(
    tool: &str,
    item: &Value,
    position: usize,
    how: Touch,
    vocabulary: &Vocabulary,
) -> Option<PlanItem> {
    let (id, text, state) = match item {
        Value::String(line) => {
            let (text, state) = without_mark(line);
            (None, text, state)
        }
        Value::Object(map) => {
            let id = id_of(map);
            let says = |key: &str| !STATES.contains(&key) && !IDS.contains(&key);
            let rest = map.iter().filter(|(key, _)| says(key));
            let rest: serde_json::Map<String, Value> = rest.map(|(k, v)| (k.clone(), v.clone())).collect();
            let mut text = String::new();
            if !rest.is_empty() {
                write_canonical(&Value::Object(rest), &mut text);
            }
            (id, text, state_of(map, vocabulary))
        }
        _ => return None,
    };
    let part = id.as_ref().map_or_else(|| hash(&format!("#{position}")), |id| hash(&format!("id {id}")));
    let task = id.as_ref().map_or_else(|| hash(&text), |_| part);
    let touch = PlanTouch { plan: hash(tool), part, text: hash(&text), how, done: state == ItemState::Done };
    // A single item without an id is a new one.
    let says = !text.is_empty() && (how == Touch::Listed || id.is_some());
    Some(PlanItem { touch, task, state, says })
}

fn state_of(item: &serde_json::Map<String, Value>, vocabulary: &Vocabulary) -> ItemState {
    let named = ["status", "state"].iter().find_map(|key| item.get(*key)?.as_str());
    let over = ["done", "completed", "checked"].iter().any(|key| item.get(*key) == Some(&Value::Bool(true)));
    match named {
        _ if over => ItemState::Done,
        Some(state) if vocabulary.is_a(PatternOf::Done, state) => ItemState::Done,
        Some(state) if vocabulary.is_a(PatternOf::Started, state) => ItemState::Started,
        _ => ItemState::Open,
    }
}

fn hash(text: &str) -> u32 {
    half(short_hash(text.as_bytes())).max(1)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::*;
    use deloop_testing::assert_reads_linearly;

    fn touched(old: &str, new: &str, whole: bool) -> Vec<Touch> {
        let edit =
            FileEdit { path: "PLAN.md".into(), old: Cow::Borrowed(old), new: Cow::Borrowed(new), whole };
        plan_sections(&edit).into_iter().map(|t| t.how).collect()
    }

    #[test]
    fn edits_touch_the_sections_they_show() {
        assert_eq!(touched("do a", "do b", false), [Touch::Replaced]);
        assert_eq!(touched("## A\ndo a", "## A\ndo b", false), [Touch::Replaced]);
        assert_eq!(touched("do a", "do a\ndo b", false), [Touch::Added]);
        assert_eq!(touched("", "## B\nx", false), [Touch::Added]);
        assert_eq!(touched("- [ ] a", "- [x] a", false), [], "a check mark is progress");
        assert_eq!(touched("", "# P\n## A\na\n```\n# no heading\n```\n## B\nb", true).len(), 3);
    }

    #[test]
    fn hostile_input_stays_linear() {
        let vocabulary = Vocabulary::builtin();
        assert_reads_linearly(&["# a\n", "x\n", "- [x] a\n", "# a\n# b\nx\n", "```\n"], |text| {
            let numbered: String =
                text.lines().enumerate().map(|(n, line)| format!("{line} {n}\n")).collect();
            for text in [text, &numbered] {
                assert!(touched(text, text, true).len() <= SECTIONS);
                touched(text, "", false);
                touched("a", text, false);
                plan_items(&Call::new("TodoWrite", json!({"todos": text})), &vocabulary);
            }
        });
    }

    #[test]
    fn items_by_id_or_position() {
        let vocabulary = Vocabulary::builtin();
        let items = |args| plan_items(&Call::new("TodoWrite", args), &vocabulary);
        let one = items(
            json!({"todos": [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "completed"}]}),
        );
        assert_eq!((one[0].state, one[1].state), (ItemState::Started, ItemState::Done));
        let two = items(json!({"todos": [{"content": "a", "status": "completed"}]}));
        assert_eq!(one[0].touch.text, two[0].touch.text, "the state is no part of it");
        assert_eq!(items(json!({"todos": "- [x] a\n- [ ] b"})).len(), 2);
        let update = items(json!({"taskId": 7, "status": "done"}));
        assert!(!update[0].says && update[0].state == ItemState::Done);
    }
}
