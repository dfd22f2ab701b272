use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::span::{Span, SpanKind, Status, duration, nanoseconds};
use super::trace;
use crate::json::document;
use crate::json::field::{self, Field};
use crate::{Reader, Sink, Source};

/// How deep spans may be nested.
const DEPTH: usize = 64;

/// Reads a file of traces.
pub(super) struct Traces {
    stem: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TraceRecord<'a> {
    #[serde(borrow)]
    trace_id: Field<'a>,
    #[serde(borrow)]
    spans: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Node<'a> {
    #[serde(borrow)]
    span_id: Field<'a>,
    #[serde(borrow)]
    parent_span_id: Field<'a>,
    #[serde(borrow)]
    span_name: Field<'a>,
    #[serde(borrow)]
    scope_name: Field<'a>,
    #[serde(borrow)]
    timestamp: Field<'a>,
    #[serde(borrow)]
    duration: Field<'a>,
    #[serde(borrow)]
    status_code: Field<'a>,
    #[serde(borrow)]
    status_message: Field<'a>,
    #[serde(borrow)]
    span_attributes: Field<'a>,
    #[serde(borrow)]
    events: Field<'a>,
    #[serde(borrow)]
    child_spans: Field<'a>,
}

impl Traces {
    pub(super) fn new(source: &Source<'_>) -> Self {
        Self { stem: source.stem().unwrap_or("default").to_owned() }
    }

    fn trace(&self, value: &RawValue, out: &mut Sink<'_>) {
        let Some(trace) = field::object::<TraceRecord<'_>>(Some(value)) else {
            return out.unreadable("not an object");
        };
        let id = field::name(trace.trace_id).unwrap_or_else(|| self.stem.clone());
        let mut spans: Vec<Span> = Vec::new();
        let mut todo = vec![(trace.spans, String::new(), 0, false)];
        while let Some((list, parent, depth, in_agent)) = todo.pop() {
            for node in field::list::<Node<'_>>(list) {
                let Some(node) = node else {
                    out.unknown("span");
                    continue;
                };
                let span = node.span(&id, &parent, in_agent);
                if depth < DEPTH {
                    let in_agent = in_agent || span.kind() == SpanKind::Agent;
                    todo.push((node.child_spans, span.id.clone(), depth + 1, in_agent));
                } else {
                    out.unknown("spans nested too deep");
                }
                spans.push(span);
            }
        }
        trace::read(&spans, out);
    }
}

impl Reader for Traces {
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>) {
        document::each(bytes, out, |value, out| match value.get().starts_with('[') {
            true => field::items(Some(value)).into_iter().for_each(|trace| self.trace(trace, out)),
            false => self.trace(value, out),
        });
    }
}

impl Node<'_> {
    /// `above` is the span that it is nested in.
    fn span(&self, trace: &str, above: &str, in_agent: bool) -> Span {
        let told =
            in_agent && field::text(self.scope_name).is_some_and(|scope| scope.ends_with(".smolagents"));
        let start = field::text(self.timestamp).and_then(|text| nanoseconds(&text)).unwrap_or(0);
        let length = field::text(self.duration).and_then(|text| duration(&text)).unwrap_or(0);
        let message = field::string(self.status_message);
        Span {
            trace: trace.to_owned(),
            id: field::name(self.span_id).unwrap_or_default(),
            parent: field::name(self.parent_span_id).unwrap_or_else(|| above.to_owned()),
            name: field::string(self.span_name),
            start,
            end: start.saturating_add(length.max(0)),
            status: match field::text(self.status_code).as_deref() {
                Some("Ok" | "OK" | "STATUS_CODE_OK") => Status::Ok,
                Some("Error" | "ERROR" | "STATUS_CODE_ERROR") => Status::Error,
                _ => Status::Unset,
            },
            error: exception(self.events).unwrap_or(message),
            attributes: attributes(self.span_attributes, told),
        }
    }
}

/// `told` is whether all that a model was sent is in other spans, too: then its messages only take room.
fn attributes(field: Field<'_>, told: bool) -> HashMap<String, Value> {
    let all = members(field);
    let of_model = all.get("openinference.span.kind").is_some_and(|kind| kind.get() == "\"LLM\"");
    // A model's input stands there once more, message by message.
    let known =
        |key: &str| of_model && key == "input.value" || told && key.starts_with("llm.input_messages.");
    let wanted = all.into_iter().filter(|(key, _)| Span::wants(key) && !known(key));
    wanted.map(|(key, value)| (key.into_owned(), field::json(Some(value)))).collect()
}

fn members(field: Field<'_>) -> HashMap<Cow<'_, str>, &RawValue> {
    field::object(field).unwrap_or_default()
}

/// The message of the exception that an event tells of.
fn exception(events: Field<'_>) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct SpanEvent<'a> {
        #[serde(borrow, rename = "Attributes")]
        attributes: Field<'a>,
    }
    let mut events = field::list::<SpanEvent<'_>>(events).into_iter().flatten().rev();
    events.find_map(|event| field::name(members(event.attributes).get("exception.message").copied()))
}
