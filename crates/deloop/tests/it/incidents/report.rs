use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deloop_types::Millis;
use serde::Deserialize;
use serde_json::Value;

/// A public report of a runaway, as a file in `corpus/incidents`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IncidentReport {
    #[serde(skip)]
    pub(super) slug: String,
    pub(super) source: String,
    pub(super) agent: String,
    pub(super) kind: String,
    pub(super) reported: String,
    pub(super) loss: ReportedLoss,
    pub(super) person_at: PersonAt,
    pub(super) started: String,
    /// How long the prologue took.
    #[serde(default)]
    pub(super) seconds: f64,
    /// The model of usage steps that name none.
    pub(super) model: Option<String>,
    /// The project of all steps.
    pub(super) project: Option<String>,
    /// `run` for hangs, which only `deloop run` can see.
    pub(super) seen_by: Option<String>,
    pub(super) steps: Vec<String>,
    pub(super) rounds: Vec<RoundTemplate>,
}

/// What the runaway cost, in the report's own unit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportedLoss {
    pub(super) amount: f64,
    pub(super) unit: LossUnit,
}

/// What a loss is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LossUnit {
    Calls,
    Turns,
    Tokens,
    Dollars,
    Hours,
    Compactions,
    Subagents,
    Sessions,
}

/// When a person who watches would have stepped in: after this round of this block, both counted from 1.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PersonAt {
    pub(super) block: usize,
    pub(super) round: usize,
    pub(super) why: String,
}

/// Steps that occur a number of times, with placeholders.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoundTemplate {
    pub(super) times: usize,
    /// How long a round took.
    pub(super) seconds: f64,
    pub(super) steps: Vec<String>,
    /// Whether the rounds are part of the loss. Work that came before it isn't.
    #[serde(default = "yes")]
    pub(super) lost: bool,
    #[serde(default)]
    pub(super) vary: BTreeMap<String, Vec<String>>,
}

fn yes() -> bool {
    true
}

impl IncidentReport {
    /// Reads every report, by name.
    pub(super) fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/incidents");
        let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
            .expect("corpus/incidents")
            .map(|entry| entry.expect("a file").path())
            .filter(|path| path.extension().is_some_and(|end| end == "toml"))
            .collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a report");
        let mut report: Self =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        report.slug = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        for text in [&report.source, &report.agent, &report.kind, &report.reported, &report.person_at.why] {
            assert!(!text.trim().is_empty(), "{}: a text is empty", report.slug);
        }
        report
    }

    /// Returns whether the incident is a hang that no event reports.
    pub(super) fn is_stall(&self) -> bool {
        self.seen_by.as_deref() == Some("run")
    }

    /// Returns whether a call that starts no subagent is what never returned.
    pub(super) fn hangs_in_a_call(&self) -> bool {
        let hung = |step: &&String| step.contains("\"calls\"");
        let last =
            self.steps.iter().rev().find(hung).and_then(|step| serde_json::from_str::<Value>(step).ok());
        let calls = last.as_ref().and_then(|step| step["calls"].as_array());
        calls.is_some_and(|calls| calls.iter().any(|call| !starts_an_agent(call)))
    }

    /// Returns when the first step happened, in milliseconds.
    pub(super) fn started_at(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a date has far fewer digits")]
        let start = Millis::parse(&self.started).expect("`started` is a time").0 as f64;
        start
    }
}

impl LossUnit {
    /// Returns the word for amounts of it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Dollars => "dollars",
            Self::Hours => "hours",
            Self::Compactions => "compactions",
            Self::Subagents => "subagents",
            Self::Sessions => "sessions",
        }
    }

    /// Returns what a step adds to the loss, given the milliseconds since the step before it. Sessions are counted
    /// elsewhere, since it takes all steps to share one out.
    pub(super) fn of(self, step: &Value, elapsed: f64) -> f64 {
        let number = |key: &str| step[key].as_f64().unwrap_or(0.0);
        let calls = || step["calls"].as_array().into_iter().flatten();
        let kind = step["type"].as_str().unwrap_or_default();
        match self {
            Self::Calls => calls().map(|_| 1.0).sum(),
            Self::Turns => f64::from(kind == "turn"),
            Self::Tokens => {
                ["input_tokens", "output_tokens", "cache_read_tokens"].into_iter().map(number).sum()
            }
            Self::Dollars => number("cost_usd"),
            Self::Hours => elapsed / 3_600_000.0,
            Self::Compactions => f64::from(kind == "compact"),
            Self::Subagents => calls().filter(|call| starts_an_agent(call)).map(|_| 1.0).sum(),
            Self::Sessions => 0.0,
        }
    }
}

fn starts_an_agent(call: &Value) -> bool {
    ["Agent", "Task", "task", "subagent", "spawn_agent", "delegate_task"]
        .contains(&call["tool"].as_str().unwrap_or_default())
}
