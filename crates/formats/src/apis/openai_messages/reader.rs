use deloop_types::Origin;
use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64;

use super::message::ChatMessage;
use crate::apis::conversations::{ConversationFields, MessageFormat};
use crate::apis::tokens;
use crate::json::field::{self, Field};
use crate::step_writer::{self, StepWriter};
use crate::{Item, Sink};

/// Chat Completions.
pub(crate) struct ChatCompletions;

impl MessageFormat for ChatCompletions {
    fn messages(messages: Field<'_>, out: &mut Sink<'_>) -> Vec<Item> {
        step_writer::collect(out, |out| {
            let mut talk = Talk::default();
            for message in field::list::<ChatMessage<'_>>(messages) {
                match message {
                    Some(message) => talk.message(&message, out),
                    None => out.unknown("message"),
                }
            }
        })
    }

    fn response(response: &ConversationFields<'_>, out: &mut Sink<'_>) -> Vec<Item> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct ChatChoice<'a> {
            #[serde(borrow)]
            message: Field<'a>,
        }
        step_writer::collect(out, |out| {
            let writer = StepWriter { ts: field::time(response.created), ..StepWriter::default() };
            let choice = field::list::<ChatChoice<'_>>(response.choices).into_iter().flatten().next();
            if let Some(message) = choice.and_then(|choice| ChatMessage::read(choice.message?)) {
                writer.turn(message.said().trim(), message.calls(), out);
            }
            if let Some(usage) = tokens::usage(response.usage, field::name(response.model)) {
                let key = field::name(response.id).map(|id| xxh3_64(id.as_bytes()));
                writer.usage(usage, key, out);
            }
        })
    }
}

#[derive(Default)]
struct Talk {
    writer: StepWriter,
    /// Whether the model has said anything.
    begun: bool,
}

impl Talk {
    fn message(&mut self, message: &ChatMessage<'_>, out: &mut Sink<'_>) {
        self.writer.ts = field::time(message.time());
        match message.role().as_ref() {
            "assistant" => {
                self.begun = true;
                self.writer.turn(message.said().trim(), message.calls(), out);
                if let Some(usage) = tokens::usage(message.usage, field::name(message.model)) {
                    self.writer.usage(usage, None, out);
                }
            }
            "tool" | "function" => {
                let output = message.said();
                let outcome = message.outcome(&output);
                self.writer.result(message.answers(), outcome, output, out);
            }
            "user" => self.writer.user(message.said().trim(), Origin::Human, out),
            "system" | "developer" if self.begun => {
                self.writer.user(message.said().trim(), Origin::Harness, out);
            }
            "system" | "developer" => {}
            other => out.unknown(other),
        }
    }
}
