//! Slack's incoming webhooks. The limits of blocks: <https://docs.slack.dev/reference/block-kit/blocks>.

use serde_json::{Value, json};

use super::alert::Alert;
use super::sink_text::fit;

const HEADER: usize = 150;
const SECTION: usize = 3000;
const FIELD: usize = 2000;
/// The fields of one section.
const FIELDS: usize = 10;

/// Returns the body of the request. All text is plain, which Slack shows as it is: no formatting, links or mentions.
pub(crate) fn body(alert: &Alert) -> Value {
    let plain =
        |text: &str, room| json!({"type": "plain_text", "text": fit(text, room, escape), "emoji": false});
    let mut blocks = vec![json!({"type": "header", "text": plain(&alert.title, HEADER)})];
    if !alert.reason.is_empty() {
        blocks.push(json!({"type": "section", "text": plain(&alert.reason, SECTION)}));
    }
    let fields: Vec<Value> =
        alert.fields().map(|(name, value)| plain(&format!("{name}: {value}"), FIELD)).collect();
    blocks.extend(fields.chunks(FIELDS).map(|fields| json!({"type": "section", "fields": fields})));
    let footer = format!("{} · {}", alert.ts, alert.id);
    blocks.push(json!({"type": "context", "elements": [plain(&footer, FIELD)]}));
    json!({
        // For notifications, which don't show blocks.
        "text": fit(&alert.title, SECTION, escape),
        "mrkdwn": false,
        "parse": "none",
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": blocks,
    })
}

/// The three characters that have a meaning for Slack.
fn escape(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        _ => out.push(c),
    }
}
