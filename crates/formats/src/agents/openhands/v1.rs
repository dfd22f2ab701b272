//! V1: events of the software agent SDK, told apart by their `kind`.

use std::collections::BTreeMap;

use deloop_types::{Body, Call, Millis, Origin, Outcome, Usage};
use serde_json::Value;

use super::event::{Fields, OpenhandsEvent, OpenhandsMetrics};
use super::usage_meters::UsageMeters;
use super::v0::of_exit_code;
use crate::Sink;
use crate::json::tolerant::Object;
use crate::step_writer::StepWriter;

pub(super) fn read(writer: StepWriter, events: Vec<OpenhandsEvent<'_>>, out: &mut Sink<'_>) {
    let mut reader =
        OpenhandsV1Reader { writer, held: None, used: Vec::new(), meters: UsageMeters::default() };
    for event in events {
        reader.event(event, out);
    }
    reader.flush(out);
}

struct OpenhandsV1Reader {
    writer: StepWriter,
    /// The calls of the last response, of which more may follow.
    held: Option<Held>,
    /// What was used, to be told after what is held.
    used: Vec<(Option<Millis>, Usage)>,
    meters: UsageMeters,
}

struct Held {
    response: Option<String>,
    ts: Option<Millis>,
    text: String,
    calls: Vec<Call>,
}

impl OpenhandsV1Reader {
    fn event(&mut self, event: OpenhandsEvent<'_>, out: &mut Sink<'_>) {
        let ts = event.timestamp.0;
        match event.kind.as_str() {
            "ActionEvent" => self.action(event, out),
            "ObservationEvent" => {
                let fields = event.observation.fields.unwrap_or_default();
                self.result(ts, event.tool_call_id.owned(), Some(ended(&fields)), output(&fields), out);
            }
            "UserRejectObservation" => {
                let output = format!("Action rejected: {}", event.rejection_reason.as_str());
                self.result(ts, event.tool_call_id.owned(), Some(Outcome::Denied), output, out);
            }
            "AgentErrorEvent" => {
                let output = event.error.owned().unwrap_or_default();
                self.result(ts, event.tool_call_id.owned(), Some(Outcome::Error), output, out);
            }
            "MessageEvent" => self.message(&event, out),
            "Condensation" => {
                self.flush(out);
                self.writer.at(ts).write(Body::Compact, out);
            }
            "ConversationStateUpdateEvent" => self.state(event, out),
            "SystemPromptEvent"
            | "CondensationRequest"
            | "CondensationSummaryEvent"
            | "PauseEvent"
            | "InterruptEvent"
            | "TokenEvent"
            | "StreamingDeltaEvent"
            | "LLMCompletionLogEvent"
            | "HookExecutionEvent"
            | "SecurityAnalysisEvent"
            | "ConversationErrorEvent" => {}
            "" => out.unknown("(no kind)"),
            other => out.unknown(other),
        }
    }

    fn action(&mut self, event: OpenhandsEvent<'_>, out: &mut Sink<'_>) {
        let response = event.llm_response_id.owned();
        let same = self.held.as_ref().is_some_and(|held| response.is_some() && held.response == response);
        if !same {
            self.flush(out);
        }
        let mut call = Call::new(
            event.tool_name.owned().unwrap_or_default(),
            match event.action.0 {
                Value::Object(mut fields) => {
                    fields.remove("kind");
                    Value::Object(fields)
                }
                _ => unread(event.tool_call.0.unwrap_or_default().arguments.into_args()),
            },
        );
        call.id = event.tool_call_id.owned();
        let held = self.held.get_or_insert_with(|| Held {
            response,
            ts: event.timestamp.0,
            text: event.thought.joined(),
            calls: Vec::new(),
        });
        held.calls.push(call);
    }

    fn flush(&mut self, out: &mut Sink<'_>) {
        if let Some(held) = self.held.take() {
            self.writer.at(held.ts).turn(held.text, held.calls, out);
        }
        for (ts, usage) in self.used.drain(..) {
            self.writer.at(ts).usage(usage, None, out);
        }
    }

    fn result(
        &mut self,
        ts: Option<Millis>,
        id: Option<String>,
        ended: Option<Outcome>,
        output: String,
        out: &mut Sink<'_>,
    ) {
        self.flush(out);
        self.writer.at(ts).result(id, ended, output, out);
    }

    fn message(&mut self, event: &OpenhandsEvent<'_>, out: &mut Sink<'_>) {
        self.flush(out);
        let ts = event.timestamp.0;
        let text = event.llm_message.0.as_ref().map(|message| message.content.joined()).unwrap_or_default();
        let writer = self.writer.at(ts);
        match event.source.as_str() {
            "agent" => writer.turn(text, Vec::new(), out),
            "user" if event.sender.get().is_none() => writer.user(text, Origin::Human, out),
            _ => writer.user(text, Origin::Harness, out),
        }
    }

    fn state(&mut self, event: OpenhandsEvent<'_>, out: &mut Sink<'_>) {
        let Some(state) = event.value.0 else { return };
        let all: Option<BTreeMap<String, Object<OpenhandsMetrics<'_>>>> =
            state.usage_to_metrics.0.or_else(|| state.stats.0?.usage_to_metrics.0);
        for (meter, metrics) in all.unwrap_or_default() {
            let usage = self.meters.since(&meter, &metrics.0.unwrap_or_default());
            self.used.push((event.timestamp.0, usage));
        }
        if self.held.is_none() {
            self.flush(out);
        }
    }
}

/// Arguments that are no action, without what the model adds to all of them.
fn unread(mut args: Value) -> Value {
    if let Value::Object(fields) = &mut args {
        fields.remove("security_risk");
        fields.remove("summary");
    }
    args
}

fn ended(fields: &Fields<'_>) -> Outcome {
    let terminal = fields.metadata.0.as_ref().and_then(|metadata| metadata.exit_code.0);
    let exit = fields.exit_code.0.or(terminal.filter(|code| *code != -1.0));
    match exit {
        Some(code) if fields.timeout.0 == Some(true) && code != -1.0 => Outcome::Timeout,
        _ if fields.is_error.0 == Some(true) => Outcome::Error,
        Some(code) => of_exit_code(code),
        None if fields.timeout.0 == Some(true) => Outcome::Running,
        None => Outcome::Ok,
    }
}

fn output(fields: &Fields<'_>) -> String {
    let said = fields.content.joined();
    let shown = fields.metadata.0.as_ref().map_or(said.clone(), |terminal| terminal.shown(&said));
    if fields.is_error.0 == Some(true) {
        format!("[An error occurred during execution.]\n{shown}")
    } else {
        shown
    }
}
