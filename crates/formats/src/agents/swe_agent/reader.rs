use deloop_types::{Origin, Outcome, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{action, observation};
use crate::json::document;
use crate::json::field::{self, Field};
use crate::step_writer::StepWriter;
use crate::{Reader, Sink, Source};

/// Reads one `.traj` document.
pub(super) struct SweTrajectory {
    session: Option<String>,
}

impl SweTrajectory {
    pub(super) fn new(source: &Source<'_>) -> Self {
        Self { session: source.stem().map(str::to_owned) }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SweRun<'a> {
    #[serde(borrow)]
    trajectory: Field<'a>,
    #[serde(borrow)]
    history: Field<'a>,
    #[serde(borrow)]
    info: Field<'a>,
    #[serde(borrow)]
    replay_config: Field<'a>,
    #[serde(borrow)]
    attempts: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SweStep<'a> {
    #[serde(borrow)]
    action: Field<'a>,
    #[serde(borrow)]
    observation: Field<'a>,
    #[serde(borrow)]
    response: Field<'a>,
    #[serde(borrow)]
    thought: Field<'a>,
    #[serde(borrow)]
    state: Field<'a>,
    #[serde(borrow)]
    query: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SweMessage<'a> {
    #[serde(borrow)]
    role: Field<'a>,
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    message_type: Field<'a>,
    #[serde(borrow)]
    is_demo: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SweInfo<'a> {
    #[serde(borrow)]
    model_stats: Field<'a>,
    #[serde(borrow)]
    swe_agent_version: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SweStats<'a> {
    #[serde(borrow)]
    instance_cost: Field<'a>,
    #[serde(borrow)]
    tokens_sent: Field<'a>,
    #[serde(borrow)]
    tokens_received: Field<'a>,
}

impl Reader for SweTrajectory {
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>) {
        let mut room = Vec::new();
        let Some(document) = document::one(bytes, &mut room, out) else { return };
        let Some(run) = field::object::<SweRun<'_>>(Some(document)) else {
            return out.unreadable("not an object");
        };
        let attempts = field::items(run.attempts);
        let mut writer = StepWriter::new(self.session.take());
        if attempts.is_empty() {
            return read_run(&run, &writer, out);
        }
        // Beside its attempts the document repeats the best of them.
        for (index, attempt) in attempts.into_iter().enumerate() {
            let Some(attempt) = field::object::<SweRun<'_>>(Some(attempt)) else { continue };
            writer.agent = Some(format!("attempt-{}", index + 1));
            read_run(&attempt, &writer, out);
        }
    }
}

fn read_run(run: &SweRun<'_>, writer: &StepWriter, out: &mut Sink<'_>) {
    task(run.history, writer, out);
    let mut before = None;
    for step in field::items(run.trajectory) {
        let Some(step) = field::object::<SweStep<'_>>(Some(step)) else {
            out.unknown("step");
            continue;
        };
        if let Some(before) = before {
            answer(&before, requery(&before, &step), writer, out);
        }
        before = ask(step, writer, out);
    }
    if let Some(before) = before {
        answer(&before, None, writer, out);
    }
    info(run, writer, out);
}

/// The messages to the agent before it said anything, without the demonstrations.
fn task(history: Field<'_>, writer: &StepWriter, out: &mut Sink<'_>) {
    for message in field::items(history) {
        let Some(message) = field::object::<SweMessage<'_>>(Some(message)) else { continue };
        if field::flag(message.is_demo) == Some(true) {
            continue;
        }
        match field::text(message.role).as_deref() {
            Some("assistant") => break,
            Some("user") => writer.user(field::content(message.content).trim(), Origin::Human, out),
            _ => {}
        }
    }
}

/// A step whose turn is out and whose observation is not.
struct PendingCall<'a> {
    step: SweStep<'a>,
    /// The tool and its command, if an action could be made out.
    call: Option<(String, String)>,
}

/// Hands out the turn of a step; a step with which SWE-agent itself ends the run has none.
fn ask<'a>(step: SweStep<'a>, writer: &StepWriter, out: &mut Sink<'_>) -> Option<PendingCall<'a>> {
    let (action, thought) = (field::string(step.action), field::string(step.thought));
    if out.report.project.is_none() {
        out.report.project = working_dir(step.state);
    }
    if is_exit(&thought) && (action.is_empty() || action.starts_with("exit_")) {
        writer.user(thought.trim(), Origin::Harness, out);
        return None;
    }
    let call = action::call(&action);
    let named = call.as_ref().map(|call| (call.tool.clone(), action.trim().to_owned()));
    let text =
        if thought.trim().is_empty() && call.is_none() { field::string(step.response) } else { thought };
    writer.turn(text.trim(), call.into_iter().collect(), out);
    Some(PendingCall { step, call: named })
}

/// How SWE-agent begins the thought of a step of its own.
fn is_exit(thought: &str) -> bool {
    thought.starts_with("Exit due to ") || thought.starts_with("Exiting due to ")
}

/// Hands out what a step came back with: its observation, or SWE-agent's complaint about a response that it did not
/// run.
fn answer(pending: &PendingCall<'_>, complaint: Option<String>, writer: &StepWriter, out: &mut Sink<'_>) {
    let observation = field::string(pending.step.observation);
    match (&pending.call, complaint) {
        (Some(_), Some(complaint)) => {
            let blocked = complaint.starts_with("Operation '") && complaint.contains("is not supported");
            let outcome = if blocked { Outcome::Denied } else { Outcome::Error };
            writer.result(None, Some(outcome), complaint, out);
        }
        (Some((tool, command)), None) => {
            let outcome = observation::outcome(tool, command, &observation);
            writer.result(None, outcome, observation, out);
        }
        (None, complaint) => writer.user(complaint.unwrap_or(observation).trim(), Origin::Harness, out),
    }
}

/// The complaint about the step before that was added to the query of this one, and to no history. What goes into
/// the history looks alike, but is marked as an observation.
fn requery(before: &PendingCall<'_>, step: &SweStep<'_>) -> Option<String> {
    if before.step.observation.is_some_and(|raw| raw.get() != "\"\"") {
        return None;
    }
    let query = field::items(step.query);
    let [.., said, complaint] = query.as_slice() else { return None };
    let said = field::object::<SweMessage<'_>>(Some(said))?;
    let complaint = field::object::<SweMessage<'_>>(Some(complaint))?;
    let echoes = field::text(said.role)? == "assistant"
        && field::text(complaint.role)? == "user"
        && field::text(complaint.message_type).as_deref() != Some("observation")
        && same(said.content, before.step.response);
    echoes.then(|| field::content(complaint.content))
}

fn same(a: Field<'_>, b: Field<'_>) -> bool {
    a.map(RawValue::get) == b.map(RawValue::get)
}

/// The state is an object in 1.x and JSON in a string before.
fn working_dir(state: Field<'_>) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct SweState<'a> {
        #[serde(borrow)]
        working_dir: Field<'a>,
    }
    let text = field::text(state);
    let inner = text.as_deref().and_then(|t| serde_json::from_str(t).ok());
    field::name(field::object::<SweState<'_>>(inner.or(state))?.working_dir)
}

fn info(run: &SweRun<'_>, writer: &StepWriter, out: &mut Sink<'_>) {
    let info: SweInfo<'_> = field::object(run.info).unwrap_or_default();
    if let Some(version) = field::name(info.swe_agent_version) {
        out.report.version = Some(version);
    }
    let stats: SweStats<'_> = field::object(info.model_stats).unwrap_or_default();
    let mut usage = Usage::default();
    usage.model = model(run.replay_config);
    usage.input_tokens = field::count(stats.tokens_sent);
    usage.output_tokens = field::count(stats.tokens_received);
    usage.cost_usd = field::number(stats.instance_cost);
    writer.usage(usage, None, out);
}

/// The model's name stands in the configuration, which is JSON in a string.
fn model(config: Field<'_>) -> Option<String> {
    let text = field::text(config)?;
    let config: serde_json::Value = serde_json::from_str(&text).ok()?;
    config.pointer("/agent/model/name")?.as_str().map(str::to_owned)
}
