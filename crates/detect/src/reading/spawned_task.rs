//! The task of a subagent, as a hash.

use deloop_types::Call;
use serde_json::Value;

use crate::fingerprint::short_hash;

/// Arguments that say which kind of subagent is started. The same words to another kind are another task.
const KINDS: [&str; 8] =
    ["subagent_type", "agent_type", "agent", "agent_name", "subagent", "role", "mode", "model"];

/// How deep the texts of an argument may be nested.
const NESTED: u8 = 4;

/// Returns a hash of the task that a call gives to a subagent: the words of its longest argument, whatever their order, case
/// and punctuation, and the kind of subagent. Every word counts, because forty tasks may differ in a file's name only.
/// Returns `None` if the call has no text.
///
/// ```
/// use deloop_detect::spawned_task;
/// use deloop_types::Call;
/// let of = |prompt: &str| spawned_task(&Call::new("Task", serde_json::json!({"prompt": prompt})));
/// assert_eq!(of("Review src/a.rs, please."), of("please review src/a.rs"));
/// assert_ne!(of("Review src/a.rs"), of("Review src/b.rs"));
/// ```
#[must_use]
pub fn spawned_task(call: &Call) -> Option<u64> {
    let mut texts: Vec<&str> = Vec::new();
    match &call.args {
        Value::Object(fields) => {
            let of = |value| {
                let mut texts = Vec::new();
                collect(value, &mut texts, NESTED);
                texts
            };
            let lists = fields.values().map(of);
            let length = |texts: &Vec<&str>| texts.iter().map(|text| text.len()).sum::<usize>();
            texts.extend(lists.max_by_key(length).unwrap_or_default());
        }
        other => collect(other, &mut texts, NESTED),
    }
    let words = texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
    let words = words.filter(|word| !word.is_empty());
    let mut hashes: Vec<u64> = words.map(|word| short_hash(word.to_lowercase().as_bytes())).collect();
    if hashes.is_empty() {
        return None;
    }
    hashes.sort_unstable();
    hashes.dedup();
    let kinds = KINDS.iter().filter_map(|key| call.args.get(key)?.as_str());
    hashes.extend(kinds.map(|kind| short_hash(kind.as_bytes())));
    let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
    Some(short_hash(&bytes))
}

/// Collects the texts of a value. A batch of tasks is a list.
fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>, depth: u8) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) if depth > 0 => items.iter().for_each(|item| collect(item, texts, depth - 1)),
        Value::Object(fields) if depth > 0 => fields.values().for_each(|v| collect(v, texts, depth - 1)),
        _ => {}
    }
}
