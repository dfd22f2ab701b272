use deloop_types::Origin;
use xxhash_rust::xxh3::xxh3_64;

use super::items::Items;
use crate::apis::conversations::{ConversationFields, MessageFormat};
use crate::apis::tokens;
use crate::json::field::{self, Field};
use crate::step_writer::{self, StepWriter};
use crate::{Item, Sink};

/// The Responses API.
pub(super) struct Responses;

impl MessageFormat for Responses {
    fn messages(messages: Field<'_>, out: &mut Sink<'_>) -> Vec<Item> {
        step_writer::collect(out, |out| {
            let writer = StepWriter::default();
            if let Some(text) = field::text(messages) {
                return writer.user(text.trim(), Origin::Human, out);
            }
            read(messages, &writer, out);
        })
    }

    fn response(response: &ConversationFields<'_>, out: &mut Sink<'_>) -> Vec<Item> {
        step_writer::collect(out, |out| {
            let writer = StepWriter { ts: field::time(response.created_at), ..StepWriter::default() };
            read(response.output, &writer, out);
            if let Some(usage) = tokens::usage(response.usage, field::name(response.model)) {
                let key = field::name(response.id).map(|id| xxh3_64(id.as_bytes()));
                writer.usage(usage, key, out);
            }
        })
    }
}

fn read(list: Field<'_>, writer: &StepWriter, out: &mut Sink<'_>) {
    let mut items = Items::default();
    for item in field::items(list) {
        items.push(item, writer, out);
    }
    items.flush(writer, out);
}
