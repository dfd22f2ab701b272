//! Calls that the model writes as tags into its text: `<read_file><path>a</path></read_file>`.

use deloop_types::Call;
use serde_json::{Map, Value};

/// How many tags of a text may lack their end before the rest is taken as it is: each is searched for to the end.
const PATIENCE: usize = 50;

/// The longest name of a tool.
const LONGEST: usize = 64;

/// Takes the calls out of a text; gives the text without them and without thinking.
pub(super) fn calls(text: &str) -> (String, Vec<Call>) {
    let mut said = String::new();
    let mut calls = Vec::new();
    let mut patience = PATIENCE;
    let mut rest = text;
    while let Some(start) = rest.find('<').filter(|_| patience > 0) {
        let (before, tagged) = rest.split_at(start);
        said.push_str(before);
        let tag = tag(tagged);
        match tag.and_then(|(name, after)| Some((name, element(name, after)?))) {
            Some((name, (body, after))) => {
                if name != THINKING {
                    calls.push(Call::new(name.to_owned(), parameters(body)));
                }
                rest = after;
            }
            None => {
                patience -= usize::from(tag.is_some());
                said.push('<');
                rest = &tagged[1..];
            }
        }
    }
    said.push_str(rest);
    (said.trim().to_owned(), calls)
}

/// The inside of all elements of this name, and nothing else.
pub(super) fn inside<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(&open) {
        let Some((body, after)) = after.split_once(&close) else { break };
        found.push(body.trim());
        rest = after;
    }
    found
}

/// Returns whether a tag of this name is a call: tools are named in snake case, other tags of the model are not.
pub(super) fn is_tool(name: &str) -> bool {
    name == "condense" || (name.contains('_') && name != "task_progress")
}

const THINKING: &str = "thinking";

/// The name of the tag that a text begins with, if it is of a call or of thinking, and what follows it.
fn tag(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().take(LONGEST).position(|b| b == b'>')?;
    let (name, after) = (text.get(1..end)?, text.get(end + 1..)?);
    let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    (plain && (name == THINKING || is_tool(name))).then_some((name, after))
}

/// The inside of an element that was just begun, and what follows it. Thinking without an end goes on to the end.
fn element<'a>(name: &str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let close = format!("</{name}>");
    let mut ends = text.match_indices(&close).map(|(at, _)| at);
    let end = if name == THINKING {
        ends.next()
    } else {
        // A file's content may hold the end tag too: the true one follows the end of a parameter.
        ends.find(|at| ends_parameter(&text[..*at]))
    };
    match end {
        Some(end) => Some((text.get(..end)?, text.get(end + close.len()..)?)),
        None if name == THINKING => Some((text, "")),
        None => None,
    }
}

fn ends_parameter(text: &str) -> bool {
    let text = text.trim_end();
    text.is_empty() || (text.ends_with('>') && text.rfind('<').is_some_and(|at| text[at..].starts_with("</")))
}

fn parameters(body: &str) -> Value {
    let mut fields = Map::new();
    let mut patience = PATIENCE;
    let mut rest = body;
    while let Some((name, after)) = rest.split_once('<').and_then(|(_, tag)| tag.split_once('>')) {
        let close = format!("</{name}>");
        let whole = matches!(name, "content" | "diff" | "args");
        let end = if whole { after.rfind(&close) } else { after.find(&close) };
        let Some(end) = end else {
            patience -= 1;
            if patience == 0 {
                break;
            }
            rest = after;
            continue;
        };
        let (value, after) = after.split_at(end);
        fields.insert(name.to_owned(), Value::String(value.trim_matches('\n').to_owned()));
        rest = &after[close.len()..];
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_taken_out_of_the_text() {
        let (said, found) = calls(
            "<thinking>hm</thinking>\nI read <b>both</b>.\n<read_file>\n<path>a</path>\n</read_file>\n\
             <execute_command>\n<command>ls < x</command>\n<requires_approval>false</requires_approval>\n</execute_command>",
        );
        assert_eq!(said, "I read <b>both</b>.");
        let tools: Vec<_> = found.iter().map(|call| (call.tool.as_str(), call.args.clone())).collect();
        assert_eq!(
            tools,
            [
                ("read_file", json!({"path": "a"})),
                ("execute_command", json!({"command": "ls < x", "requires_approval": "false"})),
            ]
        );
    }

    #[test]
    fn content_may_hold_any_tag() {
        let (_, found) = calls(
            "<write_to_file>\n<path>a</path>\n<content>\n</write_to_file> in </content> it\n</content>\n</write_to_file>",
        );
        assert_eq!(found[0].args, json!({"path": "a", "content": "</write_to_file> in </content> it"}));
    }

    #[test]
    fn what_is_no_call_stays_text() {
        for text in [
            "a < b",
            "<",
            "<read_file>",
            "<READ_FILE></READ_FILE>",
            "</x>",
            "<a_b",
            "<task_progress>x</task_progress>",
        ] {
            assert_eq!(calls(text), (text.to_owned(), Vec::new()), "{text}");
        }
        assert_eq!(calls("a<thinking>b").0, "a");
    }

    #[test]
    fn tags_without_an_end_take_no_time() {
        for tag in ["<a_b>", "<", "<a_b", "<a_b></a_b", "<a_b><c>"] {
            let text = tag.repeat(20_000);
            assert_eq!(calls(&text), (text, Vec::new()));
        }
        let (_, found) = calls(&format!("<a_b>{}<c></c></a_b>", "<c>".repeat(20_000)));
        assert_eq!(found.len(), 1);
    }
}
