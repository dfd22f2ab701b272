#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The settings of `deloop run`. Only your own configuration can have them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RunBlock {
    /// How long nothing may happen before deloop ends the agent, such as `90m` or `3h`; if absent, `2h`, or `52m` while a call
    /// runs; `0` for never.
    pub stall: Option<String>,
    /// What happens when an agent ignored two nudges: `"fresh"` starts it again in a new session, `{ model = "…" }` does
    /// that with another model. Without it, deloop blocks the call and then stops the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recover: Option<RecoverWith>,
}

/// How an agent that ignored two nudges is started again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum RecoverWith {
    /// In a new session.
    Fresh,
    /// In a new session, with this model.
    Model(String),
}

impl<'de> Deserialize<'de> for RecoverWith {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(de)?;
        let model = value.get("model").and_then(Value::as_str);
        match (&value, model) {
            (Value::String(word), _) if word == "fresh" => Ok(Self::Fresh),
            (Value::Object(table), Some(model)) if table.len() == 1 && !model.trim().is_empty() => {
                Ok(Self::Model(model.to_owned()))
            }
            _ => Err(D::Error::custom("`recover` takes \"fresh\" or { model = \"NAME\" }")),
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for RecoverWith {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RecoverWith".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "How an agent that ignored two nudges is started again.",
            "oneOf": [
                {"const": "fresh", "description": "In a new session."},
                {
                    "type": "object",
                    "description": "In a new session, with another model.",
                    "properties": {"model": {"type": "string"}},
                    "required": ["model"],
                    "additionalProperties": false
                }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recover_is_a_word_or_a_model() {
        let read = |text: &str| toml::from_str::<RunBlock>(text).map(|block| block.recover);
        assert_eq!(read("recover = 'fresh'").unwrap(), Some(RecoverWith::Fresh));
        assert_eq!(read("recover = { model = 'm' }").unwrap(), Some(RecoverWith::Model("m".to_owned())));
        assert_eq!(read("stall = '3h'").unwrap(), None);
        for wrong in [
            "recover = 'new'",
            "recover = { model = ' ' }",
            "recover = { model = 'm', x = 1 }",
            "recover = 3",
        ] {
            assert!(read(wrong).unwrap_err().to_string().contains("takes \"fresh\" or"), "{wrong}");
        }
    }
}
