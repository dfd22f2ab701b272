//! A loop in words.

use crate::scan::episode::Loop;
use crate::scan::veil::Veil;

/// The longest description, in characters.
const ROOM: usize = 160;
/// How much of a call's arguments it has, in characters.
const ARGUMENT: usize = 56;

/// What repeats and how often: "`cargo test` failed the same way 14 times".
pub(crate) fn words(one: &Loop, veil: &Veil) -> String {
    let finding = &one.finding;
    let tool = finding.tool.as_deref().unwrap_or_default();
    if veil.redact {
        let what = if tool.is_empty() { "turns" } else { tool };
        return veil.line(&format!("{what}: {} {} times", finding.detector, finding.count), ROOM);
    }
    let mut text = finding.summary.clone();
    let call = one.call.as_deref().filter(|_| finding.period <= 1);
    let calls = || finding.evidence.calls.iter().map(String::as_str).chain(call).filter(|c| c.contains('('));
    if calls().any(|call| text.contains(call)) {
        for call in calls() {
            text = text.replace(call, &pretty(call));
        }
    } else if let Some(call) = call.filter(|_| !tool.is_empty())
        && let Some(rest) = text.strip_prefix(tool).filter(|rest| rest.starts_with(' '))
    {
        text = format!("{}{rest}", pretty(call));
    }
    veil.line(&plainer(&text).replace(" in a row", ""), ROOM)
}

/// "x came back 3 times with the same error" is "x failed the same way 3 times".
fn plainer(text: &str) -> String {
    let parts =
        text.split_once(" came back ").and_then(|(what, rest)| Some((what, rest.split_once(" with ")?)));
    match parts {
        Some((what, (times, "the same error"))) => format!("{what} failed the same way {times}"),
        Some((what, (times, outcome))) => format!("{what} gave {outcome} {times}"),
        None => text.to_owned(),
    }
}

/// `bash(cargo test)` as a person would write it: a command is itself, other calls start with their tool.
pub(crate) fn pretty(call: &str) -> String {
    let Some((tool, argument)) = call.split_once('(').and_then(|(t, a)| Some((t, a.strip_suffix(')')?)))
    else {
        return format!("`{call}`");
    };
    if argument.is_empty() {
        return format!("`{tool}`");
    }
    let argument = deloop::clean(argument, ARGUMENT);
    if deloop::Tools::default().kind(tool) == deloop::ToolKind::Run {
        return format!("`{argument}`");
    }
    format!("`{tool} {argument}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_written_as_people_write_them() {
        assert_eq!(pretty("bash(cargo test --all)"), "`cargo test --all`");
        assert_eq!(pretty("Read(src/(a).rs)"), "`Read src/(a).rs`");
        assert_eq!(pretty("ls()"), "`ls`");
        assert_eq!(pretty("odd"), "`odd`");
    }

    #[test]
    fn outcomes_are_said_plainly() {
        assert_eq!(plainer("`a` came back 3 times with the same error"), "`a` failed the same way 3 times");
        assert_eq!(plainer("`a` came back 3 times with the same output"), "`a` gave the same output 3 times");
        assert_eq!(plainer("the same error 4 times"), "the same error 4 times");
    }
}
