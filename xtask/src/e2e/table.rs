//! Agents down, cases across.

use super::agents::Agent;
use super::cases::{Case, Verdict};

/// One agent's verdicts.
pub(super) struct Row {
    agent: &'static str,
    version: &'static str,
    verdicts: Vec<Verdict>,
    cases: Vec<Case>,
}

impl Row {
    /// Nothing is known yet.
    pub(super) fn new(agent: &dyn Agent) -> Self {
        Self {
            agent: agent.name(),
            version: agent.package().map_or("", |package| package.version),
            verdicts: Vec::new(),
            cases: Vec::new(),
        }
    }

    pub(super) fn agent(&self) -> &'static str {
        self.agent
    }

    /// Keeps the verdict on the next case of the table.
    pub(super) fn add(&mut self, case: Case, verdict: Verdict) {
        self.verdicts.push(verdict);
        self.cases.push(case);
    }

    /// The name of each case that wasn't skipped, and whether it passed.
    pub(super) fn results(&self) -> impl Iterator<Item = (String, bool)> {
        let passed = |verdict: &Verdict| matches!(verdict, Verdict::Passed(_));
        let cases = self.cases.iter().zip(&self.verdicts);
        let cases = cases.filter(|(_, verdict)| !matches!(verdict, Verdict::Skipped(_)));
        cases.map(move |(case, verdict)| (format!("e2e::{}::{}", self.agent, case.name()), passed(verdict)))
    }

    /// Whether any case failed.
    pub(super) fn failed(&self) -> bool {
        self.verdicts.iter().any(|verdict| matches!(verdict, Verdict::Failed(_)))
    }
}

/// Prints a verdict as soon as it is there, because a run takes its time.
pub(super) fn say(agent: &dyn Agent, case: Case, verdict: &Verdict) {
    let (word, detail) = describe(verdict);
    println!("{:12} {:15} {word}: {detail}", agent.name(), case.name());
}

/// The table as text.
pub(super) fn render(cases: &[Case], rows: &[Row]) -> String {
    let mut text = format!("{:24}", "");
    for case in cases {
        text += &format!("{:16}", case.name());
    }
    for Row { agent, version, verdicts, .. } in rows {
        text += &format!("\n{:24}", format!("{agent} {version}"));
        for verdict in verdicts {
            text += &format!("{:16}", describe(verdict).0);
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
