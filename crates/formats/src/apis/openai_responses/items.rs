use deloop_types::{Body, Call, Origin, Outcome, Step};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::output;
use crate::Sink;
use crate::apis::openai_messages::message::{ChatMessage, arguments};
use crate::json::field::{self, Field};
use crate::step_writer::StepWriter;

/// Turns the items of the Responses API into Steps. What the model said between two items that are not its own is
/// one turn.
#[derive(Default)]
pub(crate) struct Items {
    texts: Vec<String>,
    calls: Vec<Call>,
    /// The results of tools that the vendor itself runs; they come with the call and follow its turn.
    results: Vec<(String, Option<Outcome>, Option<String>)>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponsesItem<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    call_id: Field<'a>,
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    arguments: Field<'a>,
    #[serde(borrow)]
    input: Field<'a>,
    #[serde(borrow)]
    action: Field<'a>,
    #[serde(borrow)]
    operation: Field<'a>,
    #[serde(borrow)]
    code: Field<'a>,
    #[serde(borrow)]
    queries: Field<'a>,
    #[serde(borrow)]
    output: Field<'a>,
    #[serde(borrow)]
    error: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
}

impl Items {
    /// Takes the next item.
    pub(crate) fn push(&mut self, raw: &RawValue, writer: &StepWriter, out: &mut Sink<'_>) {
        let Some(item) = field::object::<ResponsesItem<'_>>(Some(raw)) else { return out.unknown("item") };
        let kind = field::text(item.kind).unwrap_or_default();
        match kind.as_ref() {
            "" | "message" => self.message(raw, writer, out),
            "reasoning" | "item_reference" | "mcp_list_tools" | "mcp_approval_request" => {}
            "compaction" | "compaction_summary" => {
                self.flush(writer, out);
                out.step({
                    let mut made = Step::new(writer.session.clone(), Body::Compact);
                    made.ts = writer.ts;
                    made
                });
            }
            kind if kind.ends_with("_output") => self.result(&item, writer, out),
            kind if kind.ends_with("_call") => self.call(kind, &item),
            other => out.unknown(other),
        }
    }

    /// The model's turn is over: hands it out, and says how many of its calls are still to be answered.
    pub(crate) fn flush(&mut self, writer: &StepWriter, out: &mut Sink<'_>) -> usize {
        let calls = std::mem::take(&mut self.calls);
        let open = calls.len().saturating_sub(self.results.len());
        writer.turn(std::mem::take(&mut self.texts).join("\n").trim(), calls, out);
        for (id, outcome, output) in self.results.drain(..) {
            writer.result(Some(id), outcome, output, out);
        }
        open
    }

    fn message(&mut self, raw: &RawValue, writer: &StepWriter, out: &mut Sink<'_>) {
        let Some(message) = ChatMessage::read(raw) else { return };
        match message.role().as_ref() {
            "assistant" => self.texts.push(message.said()),
            "user" => {
                self.flush(writer, out);
                writer.user(message.said().trim(), Origin::Human, out);
            }
            "system" | "developer" => {}
            other => out.unknown(other),
        }
    }

    fn call(&mut self, kind: &str, item: &ResponsesItem<'_>) {
        let id = field::name(item.call_id.or(item.id));
        let tool = field::name(item.name).unwrap_or_else(|| kind.trim_end_matches("_call").to_owned());
        let asked = [item.arguments, item.input, item.action, item.operation, item.code, item.queries];
        let args = match kind {
            "code_interpreter_call" => serde_json::json!({"code": field::string(item.code)}),
            _ => asked.into_iter().find(Option::is_some).map_or(Value::Null, arguments),
        };
        // A tool of the client answers with an item of its own.
        let own = item.call_id.is_some();
        if let (false, Some(id)) = (own, &id) {
            let failed = item.error.is_some() || field::text(item.status).is_some_and(|s| s == "failed");
            let text = output::text(item.error.or(item.output));
            let outcome = if failed {
                Some(Outcome::Error)
            } else {
                output::outcome(item.output, text.as_deref().unwrap_or_default())
            };
            self.results.push((id.clone(), outcome, text));
        }
        self.calls.push({
            let mut made = Call::new(tool, args);
            made.id = id;
            made
        });
    }

    fn result(&mut self, item: &ResponsesItem<'_>, writer: &StepWriter, out: &mut Sink<'_>) {
        self.flush(writer, out);
        let text = output::text(item.output);
        let outcome = match field::text(item.status).as_deref() {
            Some("failed") => Some(Outcome::Error),
            _ => output::outcome(item.output, text.as_deref().unwrap_or_default()),
        };
        writer.result(field::name(item.call_id), outcome, text, out);
    }
}
