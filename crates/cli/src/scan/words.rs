//! A loop in words.

use crate::scan::episode::Loop;
use crate::scan::veil::Veil;

/// The longest description, in characters.
const ROOM: usize = 160;

/// What repeats and how often: "`cargo test` failed the same way 14 times".
pub(crate) fn words(one: &Loop, veil: &Veil) -> String {
    let finding = &one.finding;
    if veil.redact {
        let tool = finding.tool.as_deref().unwrap_or_default();
        let what = if tool.is_empty() { "turns" } else { tool };
        return veil.line(&format!("{what}: {} {} times", finding.detector, finding.count), ROOM);
    }
    veil.line(&finding.summary, ROOM)
}
