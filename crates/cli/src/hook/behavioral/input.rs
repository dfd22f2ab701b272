//! The input of the hook, and its check against the schema.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;

use crate::exit::Failure;

/// The action, before or after it is taken.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Input of deloop hook behavioral")]
#[schemars(extend("anyOf" = [{"required": ["args"]}, {"required": ["rawArgs"]}]))]
pub(crate) struct Input {
    /// The current task.
    #[schemars(extend("minLength" = 1))]
    pub(super) task_id: String,
    /// The tool to be called.
    #[schemars(extend("minLength" = 1))]
    pub(super) tool_name: String,
    /// The tool's arguments, any JSON but null; `{}` for a tool without arguments.
    #[serde(default)]
    #[schemars(schema_with = "arguments")]
    pub(super) args: Value,
    /// Another name of `args`.
    #[serde(default)]
    #[schemars(schema_with = "arguments")]
    raw_args: Value,
    /// The session, if one session works on several tasks.
    pub(super) session_id: Option<String>,
    /// The time, in milliseconds since 1970.
    pub(super) timestamp: Option<i64>,
    /// For post-execute: whether the call succeeded.
    pub(super) success: Option<bool>,
    /// For post-execute: the same as `success`.
    pub(super) ok: Option<bool>,
    /// For post-execute: what the call returned, a string or any JSON.
    #[serde(default)]
    pub(super) output: Value,
    /// For post-execute: the error, a string or any JSON. An error without `success` means that the call failed.
    #[serde(default)]
    pub(super) error: Value,
}

/// Reads the input.
///
/// # Errors
/// When it isn't JSON, or doesn't match the schema. The message names the field.
pub(super) fn read(text: &[u8]) -> Result<Input, Failure> {
    let wrong = |why: &str| Failure::new(format!("the input doesn't match `deloop schema input`: {why}"));
    let input: Value = deloop_formats::read_json(text).map_err(|e| wrong(&e))?;
    let schema = schemars::schema_for!(Input).to_value();
    check(&input, &schema).map_err(|why| wrong(&why))?;
    let stray = stray_arguments(&input, &schema).map(str::to_owned);
    let mut input: Input = serde_json::from_value(input).map_err(|e| wrong(&e.to_string()))?;
    let raw = std::mem::take(&mut input.raw_args);
    match (input.args.is_null(), raw.is_null()) {
        (true, true) => return Err(wrong(&no_arguments(stray.as_deref()))),
        (true, false) => input.args = raw,
        (false, false) if input.args != raw => {
            return Err(wrong("`args` and `rawArgs` differ; give one of them"));
        }
        (false, _) => {}
    }
    Ok(input)
}

/// Describes arguments: anything but null, which would be taken for none.
fn arguments(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "array", "string", "number", "boolean"]})
}

/// Reads the session that is over.
///
/// # Errors
/// When the input isn't JSON with a `sessionId`.
pub(super) fn read_session(text: &[u8]) -> Result<String, Failure> {
    let input: Value = deloop_formats::read_json(text).map_err(Failure::new)?;
    let session = input["sessionId"].as_str().filter(|session| !session.is_empty());
    session.map(str::to_owned).ok_or_else(|| Failure::new("session-end needs a sessionId"))
}

/// Returns the first field that may have been meant for the arguments.
fn stray_arguments<'a>(input: &'a Value, schema: &Value) -> Option<&'a str> {
    let fields = input.as_object()?.keys().map(String::as_str);
    let mut unknown = fields.filter(|field| schema["properties"].get(field).is_none());
    unknown.find(|field| {
        let field = field.to_lowercase();
        ["arg", "input", "param"].iter().any(|part| field.contains(part))
    })
}

fn no_arguments(stray: Option<&str>) -> String {
    match stray {
        Some(field) => {
            format!("unknown field `{}`; name it `args` or `rawArgs`", deloop_detect::clean(field, 40))
        }
        None => "the input needs args (or rawArgs); give {} for a tool without arguments".to_owned(),
    }
}

/// Checks an object against the keywords that the schema of a flat object uses.
fn check(input: &Value, schema: &Value) -> Result<(), String> {
    let Some(object) = input.as_object() else {
        return Err(format!("it must be an object, not {}", kind(input)));
    };
    for field in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if object.get(field).is_none_or(Value::is_null) {
            return Err(format!("the input needs a {field}"));
        }
    }
    for (field, rules) in schema["properties"].as_object().into_iter().flatten() {
        // Without arguments, the message says more than their types.
        let Some(value) = object.get(field).filter(|value| !is_arguments(field) || !value.is_null()) else {
            continue;
        };
        let allowed: Vec<&str> = match &rules["type"] {
            Value::String(one) => vec![one],
            Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
            _ => continue,
        };
        let fits = |name: &&str| *name == kind_name(value) || *name == "number" && value.is_number();
        if !allowed.iter().any(fits) {
            let wanted = allowed.iter().find(|name| **name != "null").copied().unwrap_or("null");
            return Err(format!("`{field}` must be {}, not {}", with_article(wanted), kind(value)));
        }
        let least = rules["minLength"].as_u64().unwrap_or(0);
        if value.as_str().is_some_and(|text| (text.chars().count() as u64) < least) {
            return Err(format!("the input needs a {field}; it is empty"));
        }
    }
    Ok(())
}

fn is_arguments(field: &str) -> bool {
    matches!(field, "args" | "rawArgs")
}

fn kind(value: &Value) -> &'static str {
    with_article(kind_name(value))
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn with_article(name: &str) -> &'static str {
    match name {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a string",
        "array" => "a list",
        "object" => "an object",
        _ => "null",
    }
}
