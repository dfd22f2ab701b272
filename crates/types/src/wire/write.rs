use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{Body, Call, Step, Turn};

struct OutCall<'a>(&'a Call);

impl Serialize for OutCall<'_> {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        let mut map = ser.serialize_map(None)?;
        put(&mut map, "id", self.0.id.as_ref())?;
        map.serialize_entry("tool", &self.0.tool)?;
        map.serialize_entry("args", &self.0.args)?;
        map.end()
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        let mut map = ser.serialize_map(None)?;
        map.serialize_entry("type", kind(&self.body))?;
        map.serialize_entry("session", &self.session)?;
        put(&mut map, "agent", self.agent.as_ref())?;
        put(&mut map, "swarm", self.swarm.as_ref())?;
        put(&mut map, "controller", self.controller.as_ref())?;
        put(&mut map, "task", self.task.as_ref())?;
        put(&mut map, "project", self.project.as_ref())?;
        put(&mut map, "ts", self.ts)?;
        match &self.body {
            Body::Turn(turn) => put_turn(&mut map, turn)?,
            Body::Result(result) => {
                put(&mut map, "id", result.id.as_ref())?;
                put(&mut map, "ok", result.ok)?;
                put(&mut map, "outcome", result.outcome)?;
                put(&mut map, "output", unless_null(&result.output))?;
                put(&mut map, "error_type", result.error_type.as_ref())?;
            }
            Body::User(user) => {
                map.serialize_entry("text", &user.text)?;
                map.serialize_entry("origin", &user.origin)?;
            }
            Body::Usage(usage) => {
                put(&mut map, "model", usage.model.as_ref())?;
                map.serialize_entry("input_tokens", &usage.input_tokens)?;
                map.serialize_entry("output_tokens", &usage.output_tokens)?;
                map.serialize_entry("cache_read_tokens", &usage.cache_read_tokens)?;
                let written = Some(usage.cache_write_tokens).filter(|n| *n > 0);
                put(&mut map, "cache_write_tokens", written)?;
                let for_an_hour = Some(usage.cache_write_1h_tokens).filter(|n| *n > 0);
                put(&mut map, "cache_write_1h_tokens", for_an_hour)?;
                put(&mut map, "cost_usd", usage.cost_usd)?;
                put(&mut map, "weighted_tokens", usage.weighted_tokens)?;
            }
            Body::Chunk(text) => map.serialize_entry("text", text)?,
            Body::Delivery(delivery) => {
                map.serialize_entry("ok", &delivery.ok)?;
                map.serialize_entry("step", &delivery.step)?;
            }
            Body::Embedding(embedding) => {
                map.serialize_entry("step", &embedding.step)?;
                map.serialize_entry("embedding", &embedding.vector)?;
            }
            Body::Compact | Body::Intervention | Body::End | Body::SwarmEnd | Body::State => {}
        }
        map.end()
    }
}

/// Returns the `type` of a line.
fn kind(body: &Body) -> &'static str {
    match body {
        Body::Turn(turn) if is_call(turn) => "call",
        Body::Turn(_) => "turn",
        Body::Result(_) => "result",
        Body::User(_) => "user",
        Body::Usage(_) => "usage",
        Body::Chunk(_) => "chunk",
        Body::Compact => "compact",
        Body::Delivery(_) => "delivery",
        Body::Embedding(_) => "embedding",
        Body::Intervention => "intervention",
        Body::End => "end",
        Body::SwarmEnd => "swarm_end",
        Body::State => "state",
    }
}

/// Returns whether to write a turn as a `call`, which nests its arguments no deeper than they arrived: JSON parsers
/// limit the depth.
fn is_call(turn: &Turn) -> bool {
    turn.text.is_empty() && turn.embedding.is_none() && turn.calls.len() == 1
}

fn put_turn<M: SerializeMap>(map: &mut M, turn: &Turn) -> Result<(), M::Error> {
    put(map, "turn_id", turn.id.as_ref())?;
    if is_call(turn) {
        let call = &turn.calls[0];
        put(map, "id", call.id.as_ref())?;
        map.serialize_entry("tool", &call.tool)?;
        return put(map, "args", unless_null(&call.args));
    }
    put(map, "text", Some(&turn.text).filter(|text| !text.is_empty()))?;
    if !turn.calls.is_empty() {
        let calls: Vec<OutCall<'_>> = turn.calls.iter().map(OutCall).collect();
        map.serialize_entry("calls", &calls)?;
    }
    put(map, "embedding", turn.embedding.as_ref())
}

fn put<M: SerializeMap, T: Serialize>(map: &mut M, key: &str, value: Option<T>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, &value))
}

fn unless_null(value: &Value) -> Option<&Value> {
    Some(value).filter(|value| !value.is_null())
}
