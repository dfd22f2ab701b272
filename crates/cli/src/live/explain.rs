//! `deloop explain ID`: one decision, with its reasons.

use std::io::Write;

use deloop_detect::{AnyDetector, detector};
use deloop_live::RecordedDecision;
use deloop_types::{Outcome, Repeats, ShortCall};
use serde::Deserialize;

use super::named;
use super::words::{action, delivery, outcome, time};
use crate::exit::{self, Failure};
use crate::redaction::Redaction;
use deloop_live::RecentCall;

/// A finding as the journal has it.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedFinding {
    detector: String,
    #[serde(default)]
    rule: String,
    #[serde(default)]
    threshold: Option<serde_json::Number>,
    count: u64,
    pub(super) since: u64,
    summary: String,
    repeats: Repeats,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    calls: Vec<ShortCall>,
    /// The steps of the calls that it counted.
    #[serde(default)]
    counted: Vec<u64>,
    /// Whether the decision rests on it.
    #[serde(default)]
    decided: bool,
}

impl RecordedFinding {
    /// Returns the finding that decided. Earlier releases didn't record which; there it's the first.
    pub(super) fn main(findings: &[Self]) -> Option<&Self> {
        findings.iter().find(|finding| finding.decided).or(findings.first())
    }

    /// Returns whether it counted this call, as far as parallel calls of one step can be told apart by their short forms.
    fn counts(&self, recent: &RecentCall) -> bool {
        self.counted.contains(&recent.step)
            && match (self.repeats, self.calls.last(), &self.tool) {
                (Repeats::Call, Some(call), _) => recent.call == call.to_string(),
                (Repeats::Failure | Repeats::Everything, _, _) | (_, _, None) => true,
                (_, _, Some(tool)) => recent.tool == *tool,
            }
    }

    /// Describes the rule: its parameter, the value that was exceeded, and what the parameter means.
    fn rule(&self) -> Option<String> {
        if self.rule.is_empty() {
            return None;
        }
        let schema = detector(&self.detector).map(AnyDetector::schema);
        let means = schema.as_ref().and_then(|s| s["properties"][&self.rule]["description"].as_str());
        let value = self.threshold.as_ref().map(|value| format!(" = {value}")).unwrap_or_default();
        // The first part says what is counted, the rest how to turn it off.
        let means = means.and_then(|text| text.split(['.', ';']).next());
        let means = means.map(|text| format!(": {}", text.replace('\n', " "))).unwrap_or_default();
        Some(format!("{}.{}{value}{means}", self.detector, self.rule))
    }
}

/// Whether a word looks like the id of a decision.
pub(crate) fn is_id(word: &str) -> bool {
    word.len() > 1 && word.strip_prefix('d').is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

pub(crate) fn run(id: &str, out: &mut dyn Write) -> Result<u8, Failure> {
    let (_, row) = named::decision(id)?;
    let redaction = Redaction::new(false);
    let rung = row.rung.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
    writeln!(out, "{}: {}, {}", row.id, action(&row), time(row.ts))?;
    let subagent = row
        .subagent
        .as_ref()
        .map(|s| format!(", subagent {}", deloop_detect::clean(s, 60)))
        .unwrap_or_default();
    let session = deloop_detect::clean(&row.session, 80);
    writeln!(out, "{}, session {session}{subagent}, step {}", row.agent, row.step)?;

    writeln!(out, "\nFindings")?;
    let findings: Vec<RecordedFinding> = read(row.findings.as_deref());
    let stalled = row.status.as_deref() == Some(deloop_live::STALLED);
    let decided = RecordedFinding::main(&findings).filter(|_| !stalled);
    for found in findings.iter().filter(|_| !stalled) {
        let RecordedFinding { detector, count, since, summary, .. } = found;
        let mark = if findings.len() > 1 && found.decided { " (decided)" } else { "" };
        let summary = redaction.line(summary, 300);
        writeln!(out, "  {detector}{mark}: {summary} ({count} times, since step {since})")?;
    }
    if findings.is_empty() || stalled {
        writeln!(out, "  {}", super::words::summary(&row, &redaction, 300))?;
    }
    writeln!(out, "\nRule")?;
    if stalled {
        writeln!(out, "  `deloop run --stall` ends an agent when nothing happens for too long")?;
    } else if findings.is_empty() && row.detector.is_none() {
        writeln!(out, "  `deloop run --on-stop retry` gives a new attempt the hand-off of the stopped one")?;
    } else {
        if let Some(rule) = decided.and_then(RecordedFinding::rule) {
            writeln!(out, "  {rule}")?;
        }
        writeln!(out, "  rung {}{rung} of the profile's ladder", row.level)?;
    }
    let detector = row.detector.as_deref().filter(|_| !stalled);
    if let Some(detector) = decided.map(|f| f.detector.as_str()).or(detector) {
        writeln!(out, "  `deloop explain {detector}` explains the detector")?;
    }
    steps(&row, decided, &redaction, out)?;
    if let Some(message) = &row.message {
        writeln!(out, "\nMessage")?;
        for line in redaction.text(message, 4000).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "\nOutcome")?;
    writeln!(out, "  {}", delivery(&row))?;
    if let Some(outcome) = outcome(&row) {
        writeln!(out, "  the agent {outcome}")?;
    }
    if stalled {
        writeln!(out, "\nIf the agent was still working, give it more time with `deloop run --stall`.")?;
    } else if row.wrong {
        writeln!(out, "  You marked it as wrong.")?;
    } else {
        writeln!(out, "\nIf this was wrong, run")?;
        writeln!(out, "  deloop wrong {} --was legit --note 'why'", row.id)?;
        writeln!(out, "  deloop then ignores this pattern in this session and keeps a redacted label.")?;
    }
    Ok(exit::OK)
}

fn steps(
    row: &RecordedDecision,
    decided: Option<&RecordedFinding>,
    redaction: &Redaction,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let recent_calls: Vec<RecentCall> = read(row.recent_calls.as_deref());
    if recent_calls.is_empty() {
        return Ok(());
    }
    let marks = if decided.is_some_and(|f| !f.counted.is_empty()) { "; *: counted" } else { "" };
    writeln!(out, "\nCalls that led to it (#: fingerprints of call and output{marks})")?;
    for recent in &recent_calls {
        let mark = if decided.is_some_and(|finding| finding.counts(recent)) { '*' } else { ' ' };
        let came = match (recent.came, &recent.output) {
            (None, None) => "no result yet".to_owned(),
            (came, output) => {
                let output = output.as_deref().unwrap_or("none");
                format!("{}, output #{output}", ended(came))
            }
        };
        let call = redaction.line(&recent.call, 100);
        writeln!(out, " {mark}step {:>4}  #{}  {call}: {came}", recent.step, recent.print)?;
        if let Some(evidence) = &recent.evidence {
            writeln!(out, "             = {}", redaction.line(evidence, 100))?;
        }
    }
    Ok(())
}

/// How a call ended, in a word.
pub(crate) fn ended(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Ok) => "ok",
        Some(Outcome::Error) => "error",
        Some(Outcome::Denied) => "denied",
        Some(Outcome::Cancelled) => "cancelled",
        Some(Outcome::Timeout) => "timeout",
        Some(Outcome::Running) => "still running",
        Some(Outcome::Invalid) => "invalid call",
        _ => "ended",
    }
}

/// A list that was kept as JSON; what an earlier release kept otherwise is empty.
pub(crate) fn read<T: serde::de::DeserializeOwned>(text: Option<&str>) -> Vec<T> {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
