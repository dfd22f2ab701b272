use deloop_types::{Call, Origin, Outcome};
use serde_json::json;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use super::record::{
    Envelope, Environment, Extra, MiniSweAction, MiniSweChoice, MiniSweConfig, MiniSweInfo, MiniSweResponse,
    MiniSweRun,
};
use super::{fence, observation};
use crate::apis::openai_messages::message::ChatMessage;
use crate::apis::openai_responses::items::Items;
use crate::apis::tokens;
use crate::json::document;
use crate::json::field;
use crate::step_writer::StepWriter;
use crate::{Reader, Sink, Source};

/// Reads one document.
pub(super) struct MiniSweTrajectory {
    stem: Option<String>,
}

impl MiniSweTrajectory {
    /// Files are named `INSTANCE.traj.json` or `INSTANCE.json`.
    pub(super) fn new(source: &Source<'_>) -> Self {
        Self { stem: source.stem().map(|stem| stem.strip_suffix(".traj").unwrap_or(stem).to_owned()) }
    }
}

impl Reader for MiniSweTrajectory {
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>) {
        let mut room = Vec::new();
        let Some(document) = document::one(bytes, &mut room, out) else { return };
        let Some(run) = field::object::<MiniSweRun<'_>>(Some(document)) else {
            return out.unreadable("not an object");
        };
        let info: MiniSweInfo<'_> = field::object(run.info).unwrap_or_default();
        let config: MiniSweConfig<'_> = field::object(info.config).unwrap_or_default();
        let environment: Environment<'_> = field::object(config.environment).unwrap_or_default();
        out.report.version = field::name(info.mini_version);
        out.report.project = field::name(environment.cwd);
        let session = field::name(run.instance_id).or_else(|| self.stem.take());
        let mut conversation = Conversation { writer: StepWriter::new(session), open: 0, begun: false };
        for message in field::items(run.messages) {
            conversation.message(message, out);
        }
    }
}

/// Where a conversation stands.
struct Conversation {
    writer: StepWriter,
    /// How many calls have no result yet.
    open: usize,
    /// Whether the model has said anything.
    begun: bool,
}

impl Conversation {
    fn message(&mut self, raw: &RawValue, out: &mut Sink<'_>) {
        let Some(message) = ChatMessage::read(raw) else { return out.unknown("message") };
        let extra: Extra<'_> = field::object(message.extra).unwrap_or_default();
        self.writer.ts = field::seconds(extra.timestamp);
        match message.role().as_ref() {
            "assistant" => self.assistant(&message, &extra, out),
            "tool" => self.result(message.answers(), &extra, message.said(), out),
            "user" => self.user(&message.said(), &extra, out),
            "exit" => self.exit(message.said(), &extra, out),
            "system" => {}
            "" => self.envelope(raw, &extra, out),
            other => out.unknown(other),
        }
    }

    /// Some messages of the Responses API have no role.
    fn envelope(&mut self, raw: &RawValue, extra: &Extra<'_>, out: &mut Sink<'_>) {
        let envelope: Envelope<'_> = field::object(Some(raw)).unwrap_or_default();
        match field::text(envelope.object.or(envelope.kind)).as_deref() {
            Some("response") => self.response(raw, extra, out),
            Some("function_call_output") => {
                let text = field::content(envelope.output);
                self.result(field::name(envelope.call_id), extra, text, out);
            }
            other => out.unknown(other.unwrap_or("message")),
        }
    }

    fn assistant(&mut self, message: &ChatMessage<'_>, extra: &Extra<'_>, out: &mut Sink<'_>) {
        let said = message.said();
        let mut calls = message.calls();
        let text = if calls.is_empty() {
            let (text, command) = fence::split(&said);
            let actions = field::list::<MiniSweAction<'_>>(extra.actions).into_iter().flatten();
            calls.extend(
                actions.filter_map(|action| field::name(action.command)).map(|command| bash(&command)),
            );
            if calls.is_empty() {
                calls.extend(command.map(bash));
            }
            text
        } else {
            said
        };
        let response: MiniSweResponse<'_> = field::object(extra.response).unwrap_or_default();
        self.time(&response);
        self.turn(&text, calls, out);
        self.usage(&response, extra, out);
    }

    /// A whole response of the Responses API stands where the model's message would.
    fn response(&mut self, raw: &RawValue, extra: &Extra<'_>, out: &mut Sink<'_>) {
        let response: MiniSweResponse<'_> = field::object(Some(raw)).unwrap_or_default();
        self.time(&response);
        self.items(&response, out);
        self.usage(&response, extra, out);
    }

    /// Before 2.0 only the response has a time.
    fn time(&mut self, response: &MiniSweResponse<'_>) {
        self.writer.ts = self.writer.ts.or_else(|| field::seconds(response.created.or(response.created_at)));
    }

    fn items(&mut self, response: &MiniSweResponse<'_>, out: &mut Sink<'_>) {
        let mut items = Items::default();
        for item in field::items(response.output) {
            items.push(item, &self.writer, out);
        }
        self.begun = true;
        self.open = items.flush(&self.writer, out);
    }

    fn user(&mut self, text: &str, extra: &Extra<'_>, out: &mut Sink<'_>) {
        let interrupt = field::text(extra.interrupt_type).unwrap_or_default();
        let by_person = interrupt.starts_with("User") || is_by_person(text);
        let origin = if by_person || !self.begun { Origin::Human } else { Origin::Harness };
        if interrupt == "FormatError" {
            self.refused(extra, out);
            return self.writer.user(text.trim(), Origin::Harness, out);
        }
        if by_person {
            let outcome = if observation::is_rejection(text) { Outcome::Denied } else { Outcome::Cancelled };
            for _ in 0..std::mem::take(&mut self.open) {
                self.writer.result(None, Some(outcome), text.to_owned(), out);
            }
        } else if self.open > 0 {
            return self.result(None, extra, text.to_owned(), out);
        }
        self.writer.user(text.trim(), origin, out);
    }

    /// From 2.0 on, a response that could not be used is no message, but stands beside the complaint about it.
    fn refused(&mut self, extra: &Extra<'_>, out: &mut Sink<'_>) {
        let response: MiniSweResponse<'_> = field::object(extra.response).unwrap_or_default();
        self.time(&response);
        if response.output.is_some() {
            self.items(&response, out);
        } else {
            let choice = field::list::<MiniSweChoice<'_>>(response.choices).into_iter().flatten().next();
            let message = choice.and_then(|choice| ChatMessage::read(choice.message?));
            let said = message.map_or_else(|| field::string(extra.model_response), |message| message.said());
            self.turn(&said, Vec::new(), out);
        }
        self.open = 0;
        self.usage(&response, extra, out);
    }

    /// The run is over; the command that submits its work gets no observation.
    fn exit(&mut self, text: String, extra: &Extra<'_>, out: &mut Sink<'_>) {
        let submitted = field::text(extra.exit_status).is_some_and(|status| status == "Submitted");
        if submitted && self.open > 0 {
            self.open = 0;
            self.writer.result(None, Some(Outcome::Ok), text, out);
        } else if !submitted {
            self.writer.user(text.trim(), Origin::Harness, out);
        }
    }

    fn turn(&mut self, text: &str, calls: Vec<Call>, out: &mut Sink<'_>) {
        self.begun = true;
        self.open = calls.len();
        self.writer.turn(text.trim(), calls, out);
    }

    fn result(&mut self, id: Option<String>, extra: &Extra<'_>, text: String, out: &mut Sink<'_>) {
        self.open = self.open.saturating_sub(1);
        let outcome = observation::outcome(extra, &text);
        self.writer.result(id, outcome, text, out);
    }

    fn usage(&self, response: &MiniSweResponse<'_>, extra: &Extra<'_>, out: &mut Sink<'_>) {
        let Some(mut usage) = tokens::usage(response.usage, field::name(response.model)) else { return };
        usage.cost_usd = field::number(extra.cost).filter(|cost| *cost > 0.0).or(usage.cost_usd);
        let key = field::name(response.id).map(|id| xxh3_64(id.as_bytes()));
        self.writer.usage(usage, key, out);
    }
}

/// How the messages begin that tell the model what a person did.
fn is_by_person(text: &str) -> bool {
    observation::is_rejection(text)
        || ["Interrupted by user: ", "The user added a new task: ", "User command: "]
            .iter()
            .any(|w| text.starts_with(w))
}

fn bash(command: &str) -> Call {
    Call::new("bash", json!({ "command": command }))
}
