//! `--html`: one page that needs nothing but itself.
//!
//! Everything from a transcript is escaped by the template or set as text by the script; the policy in the page's head
//! lets no request out and no other script run.

mod charts;
mod data;
mod sessions;

use std::path::Path;

use deloop_engine::Engine;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::exit::Failure;
use crate::redaction::Redaction;
use crate::replay::{ReplayedFiles, Spend};
use crate::safe_file;
use crate::scan::numbers::{bytes, cost, count, dollars, plural};
use crate::scan::report::ScanReport;
use crate::scan::table::and_time;
use crate::scan::table::unpriced_note;
use crate::sessions::SessionInput;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// The script that the page may run, by its SHA-256; a test compares it with the file.
const SCRIPT_HASH: &str = "sha256-pXsOTmZ2tUfsU5Wj7+AoM5bQZkVlG1XeZtBjc6j6vcQ=";

/// Writes the page. The sessions with loops are read a second time, for their steps.
pub(crate) fn write(
    path: &Path,
    report: &ScanReport,
    read: &ReplayedFiles,
    inputs: &[SessionInput],
    engine: &Engine,
    redaction: &Redaction,
) -> Result<(), Failure> {
    let cards = sessions::cards(report, read, inputs, engine, redaction);
    let page = page(report, &cards);
    let failed = |e: std::io::Error| Failure::new(format!("{}: {e}", path.display()));
    safe_file::replace_named(path, page.into_string().as_bytes()).map_err(failed)
}

fn page(report: &ScanReport, cards: &[sessions::SessionCard<'_>]) -> Markup {
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'"
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { "deloop: " (plural(report.totals.loops, "loop")) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(report))
                main {
                    (tiles(report))
                    @if report.loops.is_empty() {
                        p.none { "No loops found." }
                    } @else {
                        (charts::over_time(&report.loops))
                        (charts::breakdowns(&report.loops))
                        (sessions::section(cards, report))
                    }
                    (problems(report))
                }
                (foot(report))
                script type="application/json" id="data" { (PreEscaped(data::json(cards))) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn head(report: &ScanReport) -> Markup {
    let from = report.sessions.iter().filter_map(|s| s.started.as_deref()).min();
    let to = report.sessions.iter().filter_map(|s| s.ended.as_deref()).max();
    html! {
        header.top {
            div.brand { span.mark aria-hidden="true" { "⟲" } "deloop" }
            p {
                (plural(report.totals.sessions, "session")) ", " (bytes(report.totals.bytes))
                @if let (Some(from), Some(to)) = (from, to) {
                    ", " time { (day(from)) }
                    @if day(from) != day(to) { " to " time { (day(to)) } }
                }
            }
            @if report.examples {
                p.example { "No sessions found on this machine. These are the example sessions that come with deloop." }
            }
        }
    }
}

fn tiles(report: &ScanReport) -> Markup {
    let totals = &report.totals;
    let spent = &totals.loop_spend;
    let after: f64 = report.loops.iter().map(|l| l.spend_after.usd).sum();
    let share =
        |part: f64, whole: f64| (whole > 0.0).then(|| format!("{:.0} % of the total", 100.0 * part / whole));
    #[expect(clippy::cast_precision_loss, reason = "a percentage needs no more")]
    let of_turns = share(totals.repeated_turns as f64, totals.turns as f64)
        .map(|share| format!("{share}{}", and_time(totals.minutes)));
    let tile = |label: &str, value: String, note: Option<String>, strong: bool| {
        html! {
            div.tile.strong[strong] {
                div.label { (label) }
                div.value { (value) }
                div.note { (note.unwrap_or_default()) }
            }
        }
    };
    let mut notes: Vec<String> = share(spent.usd, totals.spend.usd).into_iter().collect();
    notes.push(format!("{} tokens", count(spent.tokens())));
    if spent.unpriced_tokens > 0 {
        notes.push(format!("{} of unknown price", count(spent.unpriced_tokens)));
    }
    let unpriced = spent.usd == 0.0 && spent.unpriced_tokens > 0;
    let money = if unpriced { count(spent.tokens()) } else { cost(&Spend { unpriced_tokens: 0, ..*spent }) };
    let label = if unpriced { "Tokens spent on repeats" } else { "Spent on repeats" };
    let sessions = format!("in {} of {}", totals.sessions_with_loops, plural(totals.sessions, "session"));
    html! {
        section.tiles aria-label="ScanTotals" {
            (tile(label, money, Some(notes.join(", ")), true))
            (tile("Avoidable", dollars(after), Some("spent after deloop would have stepped in".to_owned()), false))
            (tile("Loops", count(totals.loops), Some(sessions), false))
            (tile("Turns repeated", count(totals.repeated_turns), of_turns, false))
        }
    }
}

fn problems(report: &ScanReport) -> Markup {
    html! {
        @if !report.problems.is_empty() {
            details.problems {
                summary { (plural(report.problems.len() as u64, "file")) " could not be read completely" }
                ul {
                    @for problem in report.problems.iter().take(200) {
                        li { code { (problem.path) } ": " (problem.problem) }
                    }
                }
            }
        }
    }
}

fn foot(report: &ScanReport) -> Markup {
    html! {
        footer {
            p {
                "Judged by the profile " code { (report.profile) } ". Costs, tokens and time are those of the turns that repeat; the first time and \
                 other work in between don't count. Costs are the transcripts' own figures, or list prices of " (report.prices) "; models without a price \
                 are not in them" @if let Some(note) = unpriced_note(report) { ": " (note) } ". Keys and tokens are masked. This page makes no network requests."
            }
        }
    }
}

/// Returns the day of a time.
fn day(rfc3339: &str) -> &str {
    rfc3339.get(..10).unwrap_or(rfc3339)
}

/// Renders text in which backticks stand for code.
fn prose(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::Digest;

    fn base64(bytes: &[u8]) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::new();
        for chunk in bytes.chunks(3) {
            let bits =
                chunk.iter().fold(0_u32, |bits, b| bits << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
            for i in 0..4 {
                let letter = LETTERS[(bits >> (18 - 6 * i)) as usize & 63];
                out.push(if i > chunk.len() { '=' } else { char::from(letter) });
            }
        }
        out
    }

    #[test]
    fn the_page_lets_its_own_script_run() {
        assert_eq!(base64(b"deloop!"), "ZGVsb29wIQ==");
        let hash = format!("sha256-{}", base64(&sha2::Sha256::digest(SCRIPT.as_bytes())));
        assert_eq!(SCRIPT_HASH, hash, "report.js has changed: this is its new hash");
    }

    #[test]
    fn prose_escapes_and_marks_code() {
        assert_eq!(
            prose("`a<b` failed & <script>").into_string(),
            "<code>a&lt;b</code> failed &amp; &lt;script&gt;"
        );
    }
}
