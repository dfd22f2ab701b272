use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::apis::openinference::span::{Span, Status};
use crate::apis::openinference::trace;
use crate::json::document;
use crate::json::field::{self, Field};
use crate::{Reader, Sink, Source};

/// How deep an attribute's value may be nested.
const DEPTH: usize = 16;

/// Collects the spans of a file, which may be in any order and of several traces.
pub(super) struct OtlpReader {
    stem: String,
    spans: Vec<Span>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Batch<'a> {
    #[serde(borrow, rename = "resourceSpans", alias = "resource_spans")]
    resource_spans: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource<'a> {
    #[serde(borrow, rename = "scopeSpans", alias = "scope_spans", alias = "instrumentationLibrarySpans")]
    scope_spans: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OtlpScope<'a> {
    #[serde(borrow)]
    spans: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OtlpSpan<'a> {
    #[serde(borrow, rename = "traceId", alias = "trace_id")]
    trace_id: Field<'a>,
    #[serde(borrow, rename = "spanId", alias = "span_id")]
    span_id: Field<'a>,
    #[serde(borrow, rename = "parentSpanId", alias = "parent_span_id")]
    parent_span_id: Field<'a>,
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow, rename = "startTimeUnixNano", alias = "start_time_unix_nano")]
    start: Field<'a>,
    #[serde(borrow, rename = "endTimeUnixNano", alias = "end_time_unix_nano")]
    end: Field<'a>,
    #[serde(borrow)]
    attributes: Field<'a>,
    #[serde(borrow)]
    events: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OtlpEvent<'a> {
    #[serde(borrow)]
    attributes: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OtlpStatus<'a> {
    #[serde(borrow)]
    code: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Attribute<'a> {
    #[serde(borrow)]
    key: Field<'a>,
    #[serde(borrow)]
    value: Field<'a>,
}

impl OtlpReader {
    pub(super) fn new(source: &Source<'_>) -> Self {
        Self { stem: source.stem().unwrap_or("default").to_owned(), spans: Vec::new() }
    }

    fn batch(&mut self, value: &RawValue, out: &mut Sink<'_>) {
        let Some(batch) = field::object::<Batch<'_>>(Some(value)) else {
            return out.unreadable("not an object");
        };
        let Some(resources) = batch.resource_spans else { return out.unknown("object without spans") };
        for resource in field::list::<Resource<'_>>(Some(resources)).into_iter().flatten() {
            for scope in field::list::<OtlpScope<'_>>(resource.scope_spans).into_iter().flatten() {
                for record in field::list::<OtlpSpan<'_>>(scope.spans) {
                    match record {
                        Some(record) => self.spans.push(record.span(&self.stem)),
                        None => out.unknown("span"),
                    }
                }
            }
        }
    }
}

impl Reader for OtlpReader {
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>) {
        document::each(bytes, out, |value, out| match value.get().starts_with('[') {
            true => field::items(Some(value)).into_iter().for_each(|batch| self.batch(batch, out)),
            false => self.batch(value, out),
        });
    }

    fn finish(&mut self, out: &mut Sink<'_>) {
        let mut traces: Vec<Vec<Span>> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for span in std::mem::take(&mut self.spans) {
            let place = *places.entry(span.trace.clone()).or_insert(traces.len());
            if place == traces.len() {
                traces.push(Vec::new());
            }
            if let Some(trace) = traces.get_mut(place) {
                trace.push(span);
            }
        }
        traces.sort_by_key(|spans| spans.iter().map(|span| span.start).min());
        traces.iter().for_each(|spans| trace::read(spans, out));
    }
}

impl OtlpSpan<'_> {
    fn span(&self, stem: &str) -> Span {
        let start = nanoseconds(self.start);
        let status: OtlpStatus<'_> = field::object(self.status).unwrap_or_default();
        let mut attributes = attributes(self.attributes);
        let mut error = field::string(status.message);
        for event in field::list::<OtlpEvent<'_>>(self.events).into_iter().flatten() {
            for (key, value) in self::attributes(event.attributes) {
                if key != "exception.message" {
                    attributes.entry(key).or_insert(value);
                } else if let Value::String(message) = value {
                    error = message;
                }
            }
        }
        attributes.remove("exception.message");
        Span {
            trace: field::name(self.trace_id).unwrap_or_else(|| stem.to_owned()),
            id: field::name(self.span_id).unwrap_or_default(),
            parent: field::name(self.parent_span_id).unwrap_or_default(),
            name: field::string(self.name),
            start,
            end: nanoseconds(self.end).max(start),
            status: match field::name(status.code).as_deref() {
                Some("1" | "STATUS_CODE_OK") => Status::Ok,
                Some("2" | "STATUS_CODE_ERROR") => Status::Error,
                _ => Status::Unset,
            },
            error,
            attributes,
        }
    }
}

/// A time: a string, because it does not fit into a number of JavaScript.
fn nanoseconds(field: Field<'_>) -> i64 {
    field.and_then(|raw| raw.get().trim_matches('"').parse().ok()).unwrap_or(0)
}

fn attributes(field: Field<'_>) -> HashMap<String, Value> {
    let list = field::list::<Attribute<'_>>(field).into_iter().flatten();
    list.filter_map(|attribute| {
        let key = field::name(attribute.key).filter(|key| Span::wants(key) || key == "exception.message")?;
        Some((key, plain(field::json(attribute.value), 0)))
    })
    .collect()
}

/// The value that OTLP wraps in its type: `{"stringValue": "x"}`.
fn plain(value: Value, depth: usize) -> Value {
    let Value::Object(object) = value else { return value };
    let Some((kind, value)) = object.into_iter().next() else { return Value::Null };
    let inner = |mut value: Value| value.get_mut("values").map_or(Value::Null, Value::take);
    match kind.as_str() {
        _ if depth > DEPTH => Value::Null,
        "arrayValue" | "array_value" => match inner(value) {
            Value::Array(list) => list.into_iter().map(|value| plain(value, depth + 1)).collect(),
            _ => Value::Array(Vec::new()),
        },
        "kvlistValue" | "kvlist_value" => match inner(value) {
            Value::Array(list) => {
                list.into_iter().filter_map(|pair| member(pair, depth)).collect::<Map<_, _>>().into()
            }
            _ => Value::Object(Map::new()),
        },
        _ => value,
    }
}

fn member(mut pair: Value, depth: usize) -> Option<(String, Value)> {
    let value = pair.get_mut("value").map_or(Value::Null, Value::take);
    Some((pair.get("key")?.as_str()?.to_owned(), plain(value, depth + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_unwrapped() {
        let wrapped = json!({"kvlistValue": {"values": [
            {"key": "a", "value": {"intValue": "7"}},
            {"key": "b", "value": {"arrayValue": {"values": [{"stringValue": "x"}, {"boolValue": true}]}}},
            {"key": "c", "value": {}},
            {"no": "key"},
        ]}});
        assert_eq!(plain(wrapped, 0), json!({"a": "7", "b": ["x", true], "c": null}));
        assert_eq!(plain(json!({"arrayValue": {}}), 0), json!([]));
        assert_eq!(plain(json!("bare"), 0), json!("bare"));
    }
}
