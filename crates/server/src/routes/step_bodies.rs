//! The bodies of `POST /v1/steps`, for the OpenAPI document.

use std::borrow::Cow;

use deloop_types::{Decision, Step};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::admission::STEPS;

/// One Step or an array.
pub(super) struct StepsBody;

/// What [`StepsBody`] is answered.
pub(super) struct StepsAnswer;

/// The place of an item that isn't a Step.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct RefusedStep {
    /// Why it isn't a Step.
    error: String,
    /// Its position in the batch, from 0.
    index: u64,
}

impl JsonSchema for StepsBody {
    fn schema_name() -> Cow<'static, str> {
        "StepsBody".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let step = generator.subschema_for::<Step>();
        json_schema!({
            "anyOf": [step, {
                "type": "array",
                "maxItems": STEPS,
                "items": {"anyOf": [step, {"description": "Anything else gets an error in its place."}]},
            }],
        })
    }
}

impl JsonSchema for StepsAnswer {
    fn schema_name() -> Cow<'static, str> {
        "StepsAnswer".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let decision = generator.subschema_for::<Decision>();
        let refused = generator.subschema_for::<RefusedStep>();
        json_schema!({
            "anyOf": [decision, {"type": "array", "items": {"anyOf": [decision, refused]}}],
        })
    }
}
