use deloop_types::Origin;
use xxhash_rust::xxh3::xxh3_64;

use super::items::Items;
use crate::apis::envelope::{Envelope, Speech};
use crate::apis::tokens;
use crate::json::field::{self, Field};
use crate::scribe::{self, Scribe};
use crate::{Item, Sink};

/// The Responses API.
pub(super) struct Responses;

impl Speech for Responses {
    fn messages(messages: Field<'_>, out: &mut Sink<'_>) -> Vec<Item> {
        scribe::collect(out, |out| {
            let scribe = Scribe::default();
            if let Some(text) = field::text(messages) {
                return scribe.user(&text, Origin::Human, out);
            }
            read(messages, &scribe, out);
        })
    }

    fn response(response: &Envelope<'_>, out: &mut Sink<'_>) -> Vec<Item> {
        scribe::collect(out, |out| {
            let scribe = Scribe { ts: field::time(response.created_at), ..Scribe::default() };
            read(response.output, &scribe, out);
            if let Some(usage) = tokens::usage(response.usage, field::name(response.model)) {
                let key = field::name(response.id).map(|id| xxh3_64(id.as_bytes()));
                scribe.usage(usage, key, out);
            }
        })
    }
}

fn read(list: Field<'_>, scribe: &Scribe, out: &mut Sink<'_>) {
    let mut items = Items::default();
    for item in field::items(list) {
        items.push(item, scribe, out);
    }
    items.flush(scribe, out);
}
