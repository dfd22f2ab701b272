use deloop_types::Origin;
use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64;

use super::message::Message;
use crate::apis::envelope::{Envelope, Speech};
use crate::apis::tokens;
use crate::json::field::{self, Field};
use crate::scribe::{self, Scribe};
use crate::{Item, Sink};

/// Chat Completions.
pub(crate) struct Chat;

impl Speech for Chat {
    fn messages(messages: Field<'_>, out: &mut Sink<'_>) -> Vec<Item> {
        scribe::collect(out, |out| {
            let mut talk = Talk::default();
            for message in field::list::<Message<'_>>(messages) {
                match message {
                    Some(message) => talk.message(&message, out),
                    None => out.unknown("message"),
                }
            }
        })
    }

    fn response(response: &Envelope<'_>, out: &mut Sink<'_>) -> Vec<Item> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Choice<'a> {
            #[serde(borrow)]
            message: Field<'a>,
        }
        scribe::collect(out, |out| {
            let scribe = Scribe { ts: field::time(response.created), ..Scribe::default() };
            let choice = field::list::<Choice<'_>>(response.choices).into_iter().flatten().next();
            if let Some(message) = choice.and_then(|choice| Message::read(choice.message?)) {
                scribe.turn(&message.said(), message.calls(), out);
            }
            if let Some(usage) = tokens::usage(response.usage, field::name(response.model)) {
                let key = field::name(response.id).map(|id| xxh3_64(id.as_bytes()));
                scribe.usage(usage, key, out);
            }
        })
    }
}

#[derive(Default)]
struct Talk {
    scribe: Scribe,
    /// Whether the model has said anything.
    begun: bool,
}

impl Talk {
    fn message(&mut self, message: &Message<'_>, out: &mut Sink<'_>) {
        self.scribe.ts = field::time(message.time());
        match message.role().as_ref() {
            "assistant" => {
                self.begun = true;
                self.scribe.turn(&message.said(), message.calls(), out);
                if let Some(usage) = tokens::usage(message.usage, field::name(message.model)) {
                    self.scribe.usage(usage, None, out);
                }
            }
            "tool" | "function" => {
                let output = message.said();
                let outcome = message.outcome(&output);
                self.scribe.result(scribe::result(message.answers(), outcome, output), out);
            }
            "user" => self.scribe.user(&message.said(), Origin::Human, out),
            "system" | "developer" if self.begun => self.scribe.user(&message.said(), Origin::Harness, out),
            "system" | "developer" => {}
            other => out.unknown(other),
        }
    }
}
