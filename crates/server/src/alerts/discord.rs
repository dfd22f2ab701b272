//! Discord's webhooks. Its limits: <https://discord.com/developers/docs/resources/message#embed-object-embed-limits>.

use serde_json::{Value, json};

use super::alert::Alert;
use super::sink_text::{fit, units};
use deloop_policy::AlertLevel;

const TITLE: usize = 256;
const DESCRIPTION: usize = 4096;
const FIELDS: usize = 25;
const FIELD_NAME: usize = 256;
const FIELD_VALUE: usize = 1024;
/// All texts of all embeds together.
const TOTAL: usize = 6000;

/// Returns the body of the request: one embed that mentions nobody.
pub(crate) fn body(alert: &Alert) -> Value {
    let title = fit(&alert.title, TITLE, escape);
    let mut left = TOTAL - units(&title) - units(&alert.id);
    let description = fit(&alert.reason, DESCRIPTION.min(left), escape);
    left -= units(&description);
    let mut fields = Vec::new();
    for (name, value) in alert.fields().take(FIELDS) {
        let (name, value) = (fit(name, FIELD_NAME, escape), fit(value, FIELD_VALUE, escape));
        let Some(rest) = left.checked_sub(units(&name) + units(&value)) else { break };
        left = rest;
        fields.push(json!({"name": name, "value": value, "inline": true}));
    }
    let color = match alert.level {
        AlertLevel::Info => 0x34_98_db,
        AlertLevel::Warning => 0xf1_c4_0f,
        AlertLevel::Critical => 0xe7_4c_3c,
    };
    let mut embed = json!({
        "title": title,
        "color": color,
        "timestamp": alert.ts.to_string(),
        "fields": fields,
        "footer": {"text": alert.id},
    });
    if !description.is_empty() {
        embed["description"] = description.into();
    }
    json!({"embeds": [embed], "allowed_mentions": {"parse": []}})
}

/// A backslash makes these plain text for Discord: no formatting, mention, link, emoji or timestamp.
fn escape(c: char, out: &mut String) {
    if matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '>' | '#' | '[' | ']' | '<' | ':' | '@') {
        out.push('\\');
    }
    out.push(c);
}

/// Returns how long Discord asks to wait, in its answer to too many requests.
pub(crate) fn retry_after(answer: &str) -> Option<f64> {
    serde_json::from_str::<Value>(answer).ok()?.get("retry_after")?.as_f64()
}
