use std::collections::HashSet;

use serde_json::Value;

use super::expansion::{IncidentStream, expand};
use super::report::IncidentReport;
use crate::binary::{deloop, run, said};
use crate::parallel::in_parallel;

/// What `default` did in an incident.
#[derive(Debug)]
pub(super) struct MeasuredIncident {
    pub(super) report: IncidentReport,
    pub(super) steps: usize,
    pub(super) person: Intervention,
    pub(super) message: Option<Intervention>,
    pub(super) block: Option<Intervention>,
    pub(super) stop: Option<Intervention>,
    /// The detector whose finding led to the stop.
    pub(super) stopped_by: Option<String>,
    /// The loss of the whole stream, in the report's unit.
    pub(super) total: f64,
    /// The share of the loss that deloop didn't prevent. A session that it ended stays ended.
    pub(super) spent: f64,
}

/// A step, counted from 1, and the share of the loss up to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Intervention {
    pub(super) step: usize,
    pub(super) share: f64,
}

impl MeasuredIncident {
    /// Returns whether deloop ended the run, or any of its sessions.
    pub(super) fn is_ended(&self) -> bool {
        self.stop.is_some() || self.report.is_stall() && self.spent < 1.0
    }

    /// Returns whether deloop ended the run before a tenth of the loss.
    pub(super) fn is_ended_early(&self) -> bool {
        self.is_ended() && self.spent < 0.1
    }
}

/// Replays every incident, on as many threads as there are processors.
pub(super) fn measure_all() -> Vec<MeasuredIncident> {
    let stalls = stall_limits();
    let mut measured = in_parallel(IncidentReport::all(), |report| measure(report, stalls));
    measured.sort_by(|a, b| a.report.slug.cmp(&b.report.slug));
    measured
}

fn measure(report: IncidentReport, stalls: [f64; 2]) -> MeasuredIncident {
    let stream = expand(&report);
    let decisions = replay(&report, &stream);
    let total: f64 = stream.steps.iter().map(|step| step.loss).sum();
    let shares: Vec<f64> = stream
        .steps
        .iter()
        .scan(0.0, |sum, step| {
            *sum += step.loss;
            Some(*sum / total)
        })
        .collect();
    let at = |index: usize| Intervention { step: index + 1, share: shares[index] };
    let first = |action: &str| decisions.iter().position(|decision| decision["action"] == action).map(at);
    let mut ended = HashSet::new();
    let mut spent = 0.0;
    for (step, decision) in stream.steps.iter().zip(&decisions) {
        let session = decision["session"].to_string();
        if !ended.contains(&session) {
            spent += step.loss / total;
        }
        if decision["action"] == "stop" {
            ended.insert(session);
        }
    }
    if report.is_stall() {
        let [model, call] = stalls;
        let limit = if report.hangs_in_a_call() { call } else { model };
        spent = (limit / report.loss.amount).min(1.0);
    }
    let stop = first("stop");
    let stopped_by = stop.map(|stop| leading_detector(&decisions[stop.step - 1]));
    MeasuredIncident {
        stopped_by: stopped_by.and_then(Value::as_str).map(str::to_owned),
        steps: stream.steps.len(),
        person: at(stream.person_step),
        message: first("nudge"),
        block: first("block"),
        stop,
        total,
        spent,
        report,
    }
}

/// Returns the detector whose finding the message of a stop is about. Others may have found something at that step too, and of
/// a turn with several calls the last finding is listed, which may count more.
fn leading_detector(decision: &Value) -> &Value {
    let words = |text: &Value| text.as_str().unwrap_or_default().replace(|c: char| c.is_ascii_digit(), "");
    let message = words(&decision["message"]);
    let findings = decision["findings"].as_array().map_or(&[][..], Vec::as_slice);
    let told = |finding: &&Value| message.contains(&words(&finding["summary"]));
    findings.iter().find(told).map_or(&Value::Null, |finding| &finding["detector"])
}

/// Gives the stream to the real binary, in the mode of an unattended run: everything is allowed and nobody is asked.
/// Each incident has a home of its own, so that none remembers another.
fn replay(report: &IncidentReport, stream: &IncidentStream) -> Vec<Value> {
    let home = tempfile::tempdir().expect("a folder");
    let input: String = stream.steps.iter().map(|step| step.json.to_string() + "\n").collect();
    let output = run(
        deloop(home.path()).args(["stream", "--profile", "default", "--mode", "enforce"]),
        input.as_bytes(),
    );
    assert!(output.status.success(), "{}: {}", report.slug, said(&output));
    let decisions = crate::binary::lines(&output.stdout);
    assert_eq!(decisions.len(), stream.steps.len(), "{}: every step is answered", report.slug);
    decisions
}

/// Returns the hours after which `deloop run` ends an agent that hangs, from its help: while it waits for its model, and
/// while a call runs.
fn stall_limits() -> [f64; 2] {
    let home = tempfile::tempdir().expect("a folder");
    let help = run(deloop(home.path()).args(["run", "--help"]), b"").stdout;
    let help = String::from_utf8_lossy(&help).into_owned();
    let about = help.split("--stall").nth(1).expect("the option");
    let text = about.split("[default: ").nth(1).expect("its default");
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let mut limits = words.filter_map(|word| {
        let (number, unit) = word.split_at(word.find(|c: char| c.is_ascii_alphabetic())?);
        let hours = ["h", "m"].iter().position(|known| *known == unit).map(|at| [1.0, 60.0][at])?;
        Some(number.parse::<f64>().ok()? / hours)
    });
    [(); 2].map(|()| limits.next().expect("two limits"))
}
