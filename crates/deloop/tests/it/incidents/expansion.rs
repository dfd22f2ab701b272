use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use super::report::{IncidentReport, LossUnit, RoundTemplate};

/// A step of an incident, with its part of the loss.
#[derive(Debug)]
pub(super) struct IncidentStep {
    pub(super) json: Value,
    pub(super) loss: f64,
}

/// All steps of an incident, and the one after which a person would have stepped in.
#[derive(Debug)]
pub(super) struct IncidentStream {
    pub(super) steps: Vec<IncidentStep>,
    pub(super) person_step: usize,
}

/// Writes out the rounds of an incident.
pub(super) fn expand(report: &IncidentReport) -> IncidentStream {
    let mut stream = StreamBuilder::new(report);
    let prologue = RoundTemplate {
        times: 1,
        seconds: report.seconds,
        steps: report.steps.clone(),
        lost: true,
        vary: [].into(),
    };
    stream.round(&prologue, 0, 1);
    let mut person_step = None;
    for (block, rounds) in report.rounds.iter().enumerate() {
        for round in 1..=rounds.times {
            stream.round(rounds, block + 1, round);
            if (block + 1, round) == (report.person_at.block, report.person_at.round) {
                person_step = Some(stream.steps.len() - 1);
            }
        }
    }
    share_out_sessions(report, &mut stream.steps);
    let person_step = person_step.unwrap_or_else(|| panic!("{}: `person_at` is no round", report.slug));
    IncidentStream { steps: stream.steps, person_step }
}

/// The steps so far, the time, and the calls that have no result yet.
struct StreamBuilder<'a> {
    report: &'a IncidentReport,
    steps: Vec<IncidentStep>,
    now: f64,
    calls: usize,
    unanswered: HashMap<(String, String), VecDeque<String>>,
}

impl<'a> StreamBuilder<'a> {
    fn new(report: &'a IncidentReport) -> Self {
        Self { report, steps: Vec::new(), now: report.started_at(), calls: 0, unanswered: HashMap::new() }
    }

    fn round(&mut self, rounds: &RoundTemplate, block: usize, round: usize) {
        let placeholders = Placeholders { report: self.report, rounds, block, round };
        let steps: Vec<Value> = rounds.steps.iter().map(|template| placeholders.step(template)).collect();
        let tools: f64 = steps.iter().map(time_of_the_tool).sum();
        let others: f64 = steps.iter().filter(|step| step["type"] != "result").map(|_| 1.0).sum();
        for mut step in steps {
            let mut seconds = time_of_the_tool(&step);
            if step["type"] != "result" {
                seconds += (rounds.seconds - tools).max(0.0) / others;
            }
            step.as_object_mut().expect("an object").remove("took");
            self.push(step, seconds * 1000.0, rounds.lost);
        }
    }

    fn push(&mut self, mut step: Value, elapsed: f64, lost: bool) {
        self.now += elapsed;
        let report = self.report;
        if step["agent"].as_str().is_some_and(is_main) {
            step.as_object_mut().expect("an object").remove("agent");
        }
        if step["session"].is_null() {
            step["session"] = json!("s1");
        }
        if let Some(project) = &report.project {
            step["project"] = json!(project);
        }
        if let (Some(model), true) = (&report.model, step["type"] == "usage" && step["model"].is_null()) {
            step["model"] = json!(model);
        }
        #[expect(clippy::cast_possible_truncation, reason = "whole milliseconds are meant")]
        let milliseconds = self.now as i64;
        step["ts"] = json!(milliseconds);
        self.name_calls(&mut step);
        let loss = if lost { report.loss.unit.of(&step, elapsed) } else { 0.0 };
        self.steps.push(IncidentStep { json: step, loss });
    }

    /// Gives each call an id, and each result that of the oldest call without one.
    fn name_calls(&mut self, step: &mut Value) {
        let text = |key: &str| step[key].as_str().unwrap_or_default().to_owned();
        let unanswered = self.unanswered.entry((text("session"), text("agent"))).or_default();
        if step["type"] == "result" {
            let id = unanswered.pop_front();
            step["id"] = json!(id.unwrap_or_else(|| panic!("{}: a result without a call", self.report.slug)));
        }
        for call in step["calls"].as_array_mut().into_iter().flatten() {
            self.calls += 1;
            let id = format!("c{}", self.calls);
            call["id"] = json!(id);
            unanswered.push_back(id);
        }
    }
}

/// Returns the seconds that a call took: most are fast, and the rest of a round is the model's.
fn time_of_the_tool(step: &Value) -> f64 {
    let usual = if step["type"] == "result" { 0.6 } else { 0.0 };
    step["took"].as_f64().unwrap_or(usual)
}

/// The agent with the number 0 is the one that the user talks to, which has no name.
fn is_main(agent: &str) -> bool {
    agent.strip_suffix('0').is_some_and(|rest| rest.chars().all(|c| c.is_ascii_lowercase()))
}

/// Spreads each session, if sessions are what is counted, over its steps.
fn share_out_sessions(report: &IncidentReport, steps: &mut [IncidentStep]) {
    if report.loss.unit != LossUnit::Sessions {
        return;
    }
    let mut lengths: HashMap<String, f64> = HashMap::new();
    for step in &*steps {
        *lengths.entry(step.json["session"].to_string()).or_default() += 1.0;
    }
    for step in steps {
        step.loss = 1.0 / lengths[&step.json["session"].to_string()];
    }
}

/// What the placeholders of a round stand for.
struct Placeholders<'a> {
    report: &'a IncidentReport,
    rounds: &'a RoundTemplate,
    block: usize,
    round: usize,
}

/// Replaces `{n}` and the like.
fn fill(template: &str, placeholders: &Placeholders<'_>) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        let (before, after) = rest.split_at(start);
        filled.push_str(before);
        let name = after[1..].split('}').next().unwrap_or_default();
        let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_name = !letters.is_empty() && letters.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        if is_name && after[1..].len() > name.len() {
            filled.push_str(&placeholders.value(letters, &name[letters.len()..]));
            rest = &after[name.len() + 2..];
        } else {
            filled.push('{');
            rest = &after[1..];
        }
    }
    filled + rest
}

impl Placeholders<'_> {
    fn step(&self, template: &str) -> Value {
        let text = fill(template, self);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}: {text}", self.report.slug))
    }

    fn value(&self, letters: &str, digits: &str) -> String {
        let count = digits.parse::<usize>().ok().filter(|count| *count > 0);
        let index = self.round - 1;
        match (letters, count) {
            ("n", None) => self.round.to_string(),
            ("prev", None) => index.to_string(),
            ("r", None) => self.number_of_the_round().to_string(),
            ("up", Some(children)) => (self.round.div_ceil(children) - 1).to_string(),
            ("div", Some(length)) => (index / length + 1).to_string(),
            ("mod", Some(length)) => (index % length + 1).to_string(),
            (name, None) => {
                let values = self.rounds.vary.get(name);
                let values = values.unwrap_or_else(|| panic!("{}: {{{name}}} is unknown", self.report.slug));
                self.variant(&values[index % values.len()])
            }
            _ => panic!("{}: {{{letters}{digits}}} is unknown", self.report.slug),
        }
    }

    /// Returns a variant as it can stand in a JSON string.
    fn variant(&self, value: &str) -> String {
        if let Some((times, text)) = value.strip_prefix("@repeat ").and_then(|rest| rest.split_once(' ')) {
            return text.repeat(times.parse().expect("a number after `@repeat`"));
        }
        fill(value, self).replace('\n', "\\n").replace('\t', "\\t")
    }

    /// Returns a number below 10,000 that stands for ids, times and the like: the same all through a round.
    fn number_of_the_round(&self) -> u64 {
        let seed = self.report.slug.bytes().chain([b'/']);
        let mut hash = seed.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        for part in [self.block, self.round] {
            hash = (hash ^ u64::try_from(part).unwrap_or(0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        hash % 10_000
    }
}
