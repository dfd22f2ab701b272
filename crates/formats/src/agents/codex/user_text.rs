//! Who a message to the agent is from.

use deloop_types::{Origin, UserText};
use serde_json::Value;

use crate::json::tolerant::Shaped;
use crate::text::{append, is_element};

use super::record::{CodexMetadata, CodexPart};

/// How text begins that Codex itself puts into the conversation.
const HARNESS: [&str; 19] = [
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<environment_context>",
    "<permissions instructions>",
    "<skill>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<recommended_plugins>",
    "<goal_context>",
    "<codex_internal_context ",
    "<codex_delegation>",
    "<hook_prompt ",
    "<external_",
    "Warning: apply_patch was requested via ",
    "Warning: The maximum number of ",
    "Warning: Your account was flagged ",
    "The following is the Codex agent history",
    "Another language model started to solve this problem",
];

/// What a message to the agent says and who says it; `None` when nobody says anything. `automatic` when its role says
/// that it is no person's.
pub(super) fn user_text(
    content: Shaped<'_, CodexPart<'_>>,
    metadata: Shaped<'_, CodexMetadata>,
    automatic: bool,
) -> Option<UserText> {
    let parts = match content {
        Shaped::List(parts) => parts,
        Shaped::Object(part) => vec![part],
        Shaped::Text(text) => vec![CodexPart { text: text.into(), ..CodexPart::default() }],
        Shaped::Nothing => return None,
    };
    let kinds = metadata.object().map(|metadata| metadata.content_item_kinds);
    let kinds = kinds.as_ref().and_then(Value::as_array).filter(|kinds| kinds.len() == parts.len());
    // What a person says counts, else what Codex asks for or adds, else what is news.
    let mut said = [Origin::Human, Origin::Harness, Origin::Notice].map(|origin| (origin, String::new()));
    for (at, part) in parts.into_iter().enumerate() {
        let kind = kinds.and_then(|kinds| kinds.get(at)).and_then(Value::as_str);
        let Some(text) = part.text.take().filter(|text| !text.trim().is_empty()) else { continue };
        let kind = kind.filter(|kind| !kind.is_empty() && *kind != "unknown");
        let from_harness = automatic || kind.map_or_else(|| is_context(&text), is_context_kind);
        let origin = match from_harness {
            true if is_subagent_notification(&text) => Origin::Notice,
            true => Origin::Harness,
            false => Origin::Human,
        };
        if let Some((_, said)) = said.iter_mut().find(|(of, _)| *of == origin) {
            append(said, text);
        }
    }
    said.into_iter().find(|(_, said)| !said.is_empty()).map(|(origin, said)| UserText::new(said, origin))
}

/// Returns whether a text is nothing but the news of subagents: that one has ended, and with what.
pub(crate) fn is_subagent_notification(text: &str) -> bool {
    is_element(text, "subagent_notification")
}

fn is_context(text: &str) -> bool {
    let text = text.trim_start();
    HARNESS.iter().any(|start| text.starts_with(start))
}

/// Newer versions say of each part what it is.
fn is_context_kind(kind: &str) -> bool {
    !kind.starts_with("user.")
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn say(texts: &[&'static str], kinds: Option<&[&str]>, automatic: bool) -> Option<(String, Origin)> {
        let parts =
            texts.iter().map(|text| CodexPart { text: Cow::Borrowed(*text).into(), ..CodexPart::default() });
        let metadata = kinds.map(|kinds| CodexMetadata { content_item_kinds: kinds.into() });
        let metadata = metadata.map_or(Shaped::Nothing, Shaped::Object);
        user_text(Shaped::List(parts.collect()), metadata, automatic).map(|user| (user.text, user.origin))
    }

    #[test]
    fn the_kinds_of_the_parts_count_more_than_their_words() {
        let texts = ["<skill>tests</skill>", "<environment_context> is what I ask about."];
        let human = Some((texts[1].to_owned(), Origin::Human));
        assert_eq!(say(&texts, Some(&["skill.catalog", "user.text"]), false), human);
        assert_eq!(say(&texts, None, false).unwrap().1, Origin::Harness);
        assert_eq!(say(&texts, Some(&["user.text"]), false).unwrap().1, Origin::Harness);
    }

    #[test]
    fn a_subagents_end_is_news() {
        let news =
            "<subagent_notification>\n{\"status\":{\"completed\":\"Done.\"}}\n</subagent_notification>";
        assert_eq!(say(&[news], None, false).unwrap().1, Origin::Notice);
        assert_eq!(say(&[news], None, true).unwrap().1, Origin::Notice);
        assert_eq!(say(&[news, "Go on."], None, false), Some(("Go on.".to_owned(), Origin::Human)));
        let cut = "<subagent_notification> is what it says. Why?";
        assert_eq!(say(&[cut], None, false).unwrap().1, Origin::Harness);
        assert_eq!(say(&[news], Some(&["user.text"]), false).unwrap().1, Origin::Human);
    }

    #[test]
    fn what_is_not_known_is_a_persons() {
        assert_eq!(say(&["<question>Why?</question>"], None, false).unwrap().1, Origin::Human);
        assert_eq!(say(&["Why?"], Some(&["unknown"]), false).unwrap().1, Origin::Human);
        let hook = r#"<hook_prompt hook_run_id="stop:0">Go on.</hook_prompt>"#;
        assert_eq!(say(&[hook], Some(&["unknown"]), false).unwrap().1, Origin::Harness);
        assert_eq!(say(&["Look there."], None, true).unwrap().1, Origin::Harness);
        assert_eq!(say(&["", " "], None, false), None);
    }
}
