use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use crate::limits;
use crate::step::{Body, Call, Delivery, Origin, Outcome, Step, ToolResult, Turn, UserText};
use crate::{Millis, SessionId, TurnEmbedding, Usage};

/// Why a line isn't a [`Step`]. The message names the fix.
#[derive(Debug)]
#[non_exhaustive]
pub enum StepError {
    /// It isn't JSON, or a field has the wrong type.
    Json(serde_json::Error),
    /// It is a list.
    List,
    /// It has no `type`.
    NoType,
    /// Its `type` isn't a known type of Step.
    UnknownType(String),
    /// It lacks a field that its `type` needs.
    Missing {
        /// The `type`.
        step: String,
        /// The field.
        field: &'static str,
    },
}

impl std::fmt::Display for StepError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Json(error) if error.is_data() => error.fmt(f),
            Self::Json(error) => write!(f, "not JSON: {error}"),
            Self::List => f.write_str("a Step is a JSON object, not a list"),
            Self::NoType => write!(f, "missing field `type`: one of {TYPES}"),
            Self::UnknownType(other) => write!(f, "unknown type `{other}`: one of {TYPES}"),
            Self::Missing { step, field } => write!(f, "a `{step}` step needs the field `{field}`"),
        }
    }
}

impl std::error::Error for StepError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Json(error) => Some(error),
            _ => None,
        }
    }
}

const TYPES: &str = "turn, call, result, user, usage, chunk, compact, delivery, embedding, intervention, end, \
                     swarm_end, state";

/// One thing that happened in an agent's session, as one JSON object per line.
#[derive(Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "schema", schemars(title = "Step", rename = "Step"))]
pub(super) struct Line<'a> {
    /// Determines which fields apply: turn, call, result, user, usage, chunk, compact, delivery, embedding,
    /// intervention, end, swarm_end or state.
    #[serde(borrow, rename = "type")]
    #[cfg_attr(feature = "schema", schemars(with = "super::schema::Kind"))]
    kind: Option<Cow<'a, str>>,
    /// The session; `default` if absent.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    session: Option<Cow<'a, str>>,
    /// The worker or subagent of the session.
    agent: Option<String>,
    /// The swarm: a group of workers with one goal, across sessions.
    swarm: Option<String>,
    /// The session that started this one and is responsible for it.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    controller: Option<Cow<'a, str>>,
    /// The task the session works on.
    task: Option<String>,
    /// The project the session works on. What keeps failing is remembered per project, across sessions.
    project: Option<String>,
    /// The time: RFC 3339, or milliseconds since 1970.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::TimeText>"))]
    ts: Option<Time>,
    /// On a turn, chunk or user step: the text.
    text: Option<String>,
    /// On a turn or call: the turn's id. Steps with the same id are one turn.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::IdText>"))]
    turn_id: Option<Id>,
    /// On a turn: the calls.
    calls: Option<Vec<CallLine>>,
    /// On a turn: the text's embedding. On an embedding: that of an earlier turn.
    embedding: Option<Vec<f32>>,
    /// On a call or result: the call's id.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::IdText>"))]
    id: Option<Id>,
    /// On a call: the tool.
    tool: Option<String>,
    /// On a call: its arguments, any JSON.
    args: Option<Value>,
    /// On a result: whether the call succeeded. On a delivery: whether the message reached the agent.
    ok: Option<bool>,
    /// On a result: how the call ended; more specific than `ok`.
    outcome: Option<Outcome>,
    /// On a result: the output, a string or any JSON.
    output: Option<Value>,
    /// On a result: the kind of error, as the tool or framework names it.
    error_type: Option<String>,
    /// On a user step: who wrote it.
    origin: Option<Origin>,
    /// On usage: the model.
    model: Option<String>,
    /// On usage: input tokens, without those from the cache.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    input_tokens: Option<WholeNumber>,
    /// On usage: output tokens.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    output_tokens: Option<WholeNumber>,
    /// On usage: tokens read from the cache.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    cache_read_tokens: Option<WholeNumber>,
    /// On usage: tokens written to the cache.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    cache_write_tokens: Option<WholeNumber>,
    /// On usage: the part of `cache_write_tokens` that was written for one hour.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    cache_write_1h_tokens: Option<WholeNumber>,
    /// On usage: the cost in dollars.
    cost_usd: Option<f64>,
    /// On usage: all tokens as input tokens of the same price. Set by deloop.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    weighted_tokens: Option<WholeNumber>,
    /// On a delivery or embedding: the step of the decision it refers to.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    step: Option<WholeNumber>,
}

/// A tool call.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Call"))]
struct CallLine {
    /// The id that the result refers to.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::IdText>"))]
    id: Option<Id>,
    /// The tool.
    tool: String,
    /// Its arguments, any JSON.
    #[serde(default)]
    args: Option<Value>,
}

/// A call id. Some agents write strings, others numbers.
struct Id(String);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        match Value::deserialize(de)? {
            Value::String(id) => Ok(Self(id)),
            Value::Number(id) => Ok(Self(id.to_string())),
            _ => Err(de::Error::custom("`id` must be a string or a number")),
        }
    }
}

/// A number without a fraction. Some programs write `3` as `3.0`.
struct WholeNumber(u64);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        struct Whole;
        impl de::Visitor<'_> for Whole {
            type Value = WholeNumber;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number from 0")
            }

            fn visit_u64<E>(self, number: u64) -> Result<WholeNumber, E> {
                Ok(WholeNumber(number))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<WholeNumber, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
                u64::try_from(number).map(WholeNumber).map_err(wrong)
            }

            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "only whole numbers in range"
            )]
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<WholeNumber, E> {
                // 2^64
                let fits = number.fract() == 0.0 && (0.0..18_446_744_073_709_551_616.0).contains(&number);
                let wrong = || E::invalid_value(de::Unexpected::Float(number), &self);
                fits.then_some(WholeNumber(number as u64)).ok_or_else(wrong)
            }
        }
        de.deserialize_u64(Whole)
    }
}

struct Time(Millis);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(de)?;
        let millis = match &value {
            Value::String(text) => Millis::parse(text),
            #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
            Value::Number(n) => n.as_i64().or_else(|| n.as_f64().map(|f| f as i64)).map(Millis),
            _ => None,
        };
        millis.map(Self).ok_or_else(|| {
            de::Error::custom("`ts` must be RFC 3339 (\"2026-01-31T12:00:00Z\") or milliseconds since 1970")
        })
    }
}

impl Step {
    /// Parses one JSON line.
    ///
    /// # Errors
    /// When it isn't a JSON object, a field has the wrong type, or a required field is missing.
    pub fn from_slice(line: &[u8]) -> Result<Self, StepError> {
        // A list would be read as a struct's fields in their order.
        if line.trim_ascii().first() == Some(&b'[') {
            return Err(StepError::List);
        }
        let line: Line<'_> = serde_json::from_slice(line).map_err(StepError::Json)?;
        line.into_step()
    }
}

impl std::str::FromStr for Step {
    type Err = StepError;

    fn from_str(line: &str) -> Result<Self, StepError> {
        Self::from_slice(line.as_bytes())
    }
}

impl Line<'_> {
    fn into_step(self) -> Result<Step, StepError> {
        let kind = self.kind.as_deref().ok_or(StepError::NoType)?;
        let missing = |field| StepError::Missing { step: kind.to_owned(), field };
        let body = match kind {
            "turn" => Body::Turn(Turn {
                id: self.turn_id.map(|id| id.0),
                text: self.text.unwrap_or_default(),
                calls: self.calls.unwrap_or_default().into_iter().map(CallLine::into_call).collect(),
                embedding: self.embedding,
            }),
            "call" => Body::Turn(Turn {
                id: self.turn_id.map(|id| id.0),
                calls: vec![Call {
                    id: self.id.map(|id| id.0),
                    tool: self.tool.ok_or_else(|| missing("tool"))?,
                    args: self.args.unwrap_or(Value::Null),
                }],
                ..Turn::default()
            }),
            "result" => Body::Result(ToolResult {
                id: self.id.map(|id| id.0),
                ok: self.ok,
                outcome: self.outcome,
                output: self.output.unwrap_or(Value::Null),
                error_type: self.error_type.map(limits::name),
            }),
            "user" => Body::User(UserText {
                text: self.text.unwrap_or_default(),
                origin: self.origin.unwrap_or_default(),
            }),
            "usage" => Body::Usage(Usage {
                model: self.model.map(limits::name),
                input_tokens: self.input_tokens.map_or(0, |number| number.0),
                output_tokens: self.output_tokens.map_or(0, |number| number.0),
                cache_read_tokens: self.cache_read_tokens.map_or(0, |number| number.0),
                cache_write_tokens: self.cache_write_tokens.map_or(0, |number| number.0),
                cache_write_1h_tokens: self.cache_write_1h_tokens.map_or(0, |number| number.0),
                cost_usd: self.cost_usd,
                weighted_tokens: self.weighted_tokens.map(|number| number.0),
            }),
            "chunk" => Body::Chunk(self.text.ok_or_else(|| missing("text"))?),
            "compact" => Body::Compact,
            "delivery" => Body::Delivery(Delivery {
                step: self.step.ok_or_else(|| missing("step"))?.0,
                ok: self.ok.ok_or_else(|| missing("ok"))?,
            }),
            "embedding" => Body::Embedding(TurnEmbedding {
                step: self.step.ok_or_else(|| missing("step"))?.0,
                vector: self.embedding.ok_or_else(|| missing("embedding"))?,
            }),
            "intervention" => Body::Intervention,
            "end" => Body::End,
            "swarm_end" if self.swarm.is_none() => return Err(missing("swarm")),
            "swarm_end" => Body::SwarmEnd,
            "state" => Body::State,
            other => return Err(StepError::UnknownType(other.to_owned())),
        };
        Ok(Step {
            session: self.session.map_or_else(SessionId::default, |s| s.into_owned().into()),
            agent: self.agent.map(limits::name),
            swarm: self.swarm.map(limits::name),
            controller: self.controller.map(|s| s.into_owned().into()),
            task: self.task.map(limits::name),
            project: self.project.map(limits::name),
            ts: self.ts.map(|t| t.0),
            body,
        })
    }
}

impl CallLine {
    fn into_call(self) -> Call {
        Call { id: self.id.map(|id| id.0), tool: self.tool, args: self.args.unwrap_or(Value::Null) }
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Line::deserialize(de)?.into_step().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_fix() {
        let error = |line: &str| line.parse::<Step>().unwrap_err().to_string();
        assert!(error("{}").contains("missing field `type`"));
        assert!(error(r#"{"type":"tool"}"#).contains("unknown type `tool`: one of turn, call"));
        assert!(error(r#"{"type":"call"}"#).contains("needs the field `tool`"));
        assert!(error(r#"{"type":"call","tool":"a","ts":"noon"}"#).contains("RFC 3339"));
        assert!(error("nope").starts_with("not JSON"));
        assert!(error(r#"{"type":"delivery","ok":true}"#).contains("`step`"));
        assert!(error(r#"{"type":"swarm_end"}"#).contains("a `swarm_end` step needs the field `swarm`"));
    }

    #[test]
    fn a_call_is_a_turn_and_unknown_fields_are_ignored() {
        let call: Step = r#"{"type":"call","tool":"ls","args":{},"colour":"red"}"#.parse().unwrap();
        let turn: Step = r#"{"type":"turn","calls":[{"tool":"ls","args":{}}]}"#.parse().unwrap();
        assert_eq!(call, turn);
    }

    #[test]
    fn what_can_be_read_can_be_written_and_read_again() {
        let nested = format!(r#"{{"type":"call","tool":"t","args":{}{}}}"#, "[".repeat(126), "]".repeat(126));
        let cents = r#"{"type":"usage","cost_usd":0.30000000000000004,"input_tokens":1}"#;
        let plain = [
            r#"{"type":"call","tool":"t","args":1e23}"#,
            r#"{"type":"swarm_end","swarm":"w"}"#,
            r#"{"type":"state","agent":"a"}"#,
        ];
        for line in [nested.as_str(), cents].into_iter().chain(plain) {
            let step: Step = line.parse().unwrap();
            let written = serde_json::to_string(&step).unwrap();
            assert_eq!(written.parse::<Step>().unwrap(), step, "{written}");
        }
    }

    #[test]
    fn whole_numbers_may_have_a_point() {
        let step =
            |number: &str| format!(r#"{{"type":"delivery","ok":true,"step":{number}}}"#).parse::<Step>();
        for (number, expected) in [("7", 7), ("7.0", 7), ("7e2", 700), ("-0.0", 0)] {
            let Body::Delivery(delivery) = step(number).unwrap().body else { panic!("{number}") };
            assert_eq!(delivery.step, expected, "{number}");
        }
        for number in ["7.5", "-1", "-1.0", "18446744073709551616", "1e20", "\"7\""] {
            assert!(step(number).unwrap_err().to_string().contains("a whole number from 0"), "{number}");
        }
    }

    #[test]
    fn time_is_rfc_3339_or_milliseconds() {
        let at = |ts: &str| format!(r#"{{"type":"end","ts":{ts}}}"#).parse::<Step>().unwrap().ts;
        assert_eq!(at("1500"), Some(Millis(1500)));
        assert_eq!(at("1500.7"), Some(Millis(1500)));
        assert_eq!(at(r#""1970-01-01T00:00:01.5Z""#), Some(Millis(1500)));
        assert_eq!(at(r#""1970-01-01T02:00:01.5+02:00""#), Some(Millis(1500)));
    }
}
