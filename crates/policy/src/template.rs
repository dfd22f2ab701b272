//! Messages with placeholders.

use deloop_types::{Finding, Repeats};
use serde_json::Value;

use crate::identifier::identifier;

/// Maximum length of a message, in characters.
const MOST: usize = 2000;

/// The known placeholders.
pub(crate) const PLACEHOLDERS: [&str; 13] = [
    "count",
    "tool",
    "pattern",
    "alternatives",
    "workers",
    "summary",
    "told",
    "advice",
    "unit",
    "similarity",
    "setting",
    "warning",
    "since",
];

/// Returns the first unknown placeholder of a template.
pub(crate) fn unknown_placeholder(template: &str) -> Option<&str> {
    placeholders(template).find(|name| !PLACEHOLDERS.contains(name))
}

fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    let after_escapes = template.split("{{");
    after_escapes
        .flat_map(|part| part.split('{').skip(1))
        .filter_map(|rest| rest.split_once('}').map(|(n, _)| n))
}

/// Fills in a message's placeholders. Those that the finding has no value for become empty. `{{` is a literal brace.
///
/// ```
/// use deloop_types::Finding;
/// let mut finding = Finding::new("repeated-call", 3);
/// finding.tool = Some("ls".into());
/// let text = deloop_policy::render("{tool} {count} times", &finding, &serde_json::Value::Null, &[]);
/// assert_eq!(text, "ls 3 times");
/// ```
#[must_use]
pub fn render(
    template: &str,
    finding: &Finding,
    params: &Value,
    tools: &[deloop_detect::ToolTally],
) -> String {
    let mut out = String::with_capacity(template.len() + 64);
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        if let Some(after) = from.strip_prefix("{{") {
            out.push('{');
            rest = after;
            continue;
        }
        let Some(close) = from.find('}') else {
            rest = from;
            break;
        };
        out.push_str(&value(&from[1..close], finding, params, tools));
        rest = &from[close + 1..];
    }
    out.push_str(rest);
    if let Some((end, _)) = out.char_indices().nth(MOST) {
        out.truncate(end);
        out.push('…');
    }
    out
}

fn value(name: &str, finding: &Finding, params: &Value, tools: &[deloop_detect::ToolTally]) -> String {
    match name {
        "count" => finding.count.to_string(),
        "tool" if finding.repeats == Repeats::Swarm => {
            finding.tool.as_deref().map_or_else(|| "the tool".to_owned(), identifier)
        }
        "tool" => {
            deloop_detect::quote(finding.tool.as_deref().unwrap_or("the tool"), deloop_types::limits::QUOTE)
        }
        // What is said about a swarm reaches agents that didn't make the call.
        "summary" | "pattern" if finding.repeats == Repeats::Swarm => crate::told(finding),
        "summary" => finding.summary.clone(),
        "told" => crate::told(finding),
        "advice" => crate::advice(finding).to_owned(),
        "pattern" => listed(&finding.calls),
        "alternatives" => alternatives(finding, tools),
        "similarity" => params.get("similarity").map_or_else(String::new, Value::to_string),
        other => {
            let field = finding.evidence.fields.iter().find(|(key, _)| *key == other);
            field.map_or_else(String::new, |(_, value)| value.clone())
        }
    }
}

/// Lists the calls of a cycle, numbered, up to eight.
fn listed(calls: &[deloop_types::ShortCall]) -> String {
    let mut lines: Vec<String> =
        calls.iter().take(8).enumerate().map(|(i, c)| format!("  {}. {c}", i + 1)).collect();
    if calls.len() > 8 {
        lines.push(format!("  … and {} more", calls.len() - 8));
    }
    lines.join("\n")
}

/// Suggests concrete alternatives, based on what the session has tried and what it hasn't tried lately.
fn alternatives(finding: &Finding, tools: &[deloop_detect::ToolTally]) -> String {
    let in_loop = |name: &str| finding.calls.iter().any(|call| call.tool == name);
    let name = |t: &&deloop_detect::ToolTally| deloop_detect::quote(&t.name, 40);
    let (mut working, mut looping): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
    for tool in tools {
        if in_loop(&tool.name) { looping.push(tool) } else { working.push(tool) }
    }
    working.sort_by_key(|t| (t.failures, t.calls));
    let mut lines = Vec::new();
    if !working.is_empty() {
        let names: Vec<String> = working.iter().take(3).map(name).collect();
        lines.push(format!(
            "- Use a tool that is not part of the loop; this session also has {}",
            names.join(", ")
        ));
    }
    if let Some(failing) = looping.iter().find(|t| t.failures > 0) {
        lines.push(format!(
            "- {} failed {} of {} times: read its last error and test what it assumes",
            name(failing),
            failing.failures,
            failing.calls
        ));
    }
    lines.push(another_way(finding));
    lines.push("- Say what blocks you, and what you have tried, instead of trying it again".to_owned());
    lines.join("\n")
}

/// Suggests other arguments for a call of the cycle that has some, the latest one, or else another situation.
fn another_way(finding: &Finding) -> String {
    let (count, bare) = (finding.count, finding.evidence.without_arguments);
    let earlier = finding.calls.iter().rev().skip(1).find(|call| !call.about.is_empty());
    let last = finding.tool.as_deref();
    let named = |tool: Option<&str>| tool.map_or_else(|| "it".to_owned(), |t| deloop_detect::quote(t, 40));
    match earlier.map(|call| call.tool.as_str()).filter(|_| bare) {
        None if bare => format!(
            "- Change what {} works on before you call it again; it was called {count} times without arguments",
            named(last)
        ),
        earlier => {
            let tool = named(earlier.or(last));
            format!("- Call {tool} with other arguments than those it was given {count} times")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_placeholders_that_do_not_exist() {
        assert_eq!(unknown_placeholder("a {count} {cuont} b"), Some("cuont"));
        assert_eq!(unknown_placeholder("a {count} b { c"), None);
        assert_eq!(unknown_placeholder("a {{cuont}"), None);
    }

    #[test]
    fn braces_in_a_value_are_not_placeholders() {
        let mut finding = Finding::default();
        finding.summary = "{tool}".to_owned();
        assert_eq!(render("{summary} {{x} {", &finding, &Value::Null, &[]), "{tool} {x} {");
    }
}
