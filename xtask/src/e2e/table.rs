//! Agents down, cases across.

use super::agents::Agent;
use super::cases::{Case, Verdict};

/// One agent's verdicts.
pub(super) struct Row {
    agent: &'static str,
    version: &'static str,
    verdicts: Vec<Verdict>,
}

impl Row {
    /// Nothing is known yet.
    pub(super) fn new(agent: &dyn Agent) -> Self {
        Self { agent: agent.name(), version: agent.package().version, verdicts: Vec::new() }
    }

    /// Keeps the verdict, and says it at once, as a run takes its time.
    pub(super) fn add(&mut self, case: Case, verdict: Verdict) {
        let (word, detail) = describe(&verdict);
        println!("{:12} {:10} {word}: {detail}", self.agent, case.name());
        self.verdicts.push(verdict);
    }

    /// Whether any case failed.
    pub(super) fn failed(&self) -> bool {
        self.verdicts.iter().any(|verdict| matches!(verdict, Verdict::Failed(_)))
    }
}

/// The table as text.
pub(super) fn render(cases: &[Case], rows: &[Row]) -> String {
    let mut text = format!("{:24}", "");
    for case in cases {
        text += &format!("{:12}", case.name());
    }
    for Row { agent, version, verdicts } in rows {
        text += &format!("\n{:24}", format!("{agent} {version}"));
        for verdict in verdicts {
            text += &format!("{:12}", describe(verdict).0);
        }
    }
    text
}

fn describe(verdict: &Verdict) -> (&'static str, &str) {
    match verdict {
        Verdict::Passed(detail) => ("passed", detail),
        Verdict::Failed(why) => ("FAILED", why),
        Verdict::Unsupported(why) => ("unsupported", why),
        Verdict::Skipped(why) => ("skipped", why),
    }
}
