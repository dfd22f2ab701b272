//! Checks JSON against a published schema. It knows the keywords that deloop's schemas use, and fails at any other.

use std::path::Path;

use serde_json::Value;

/// Checks a document against `schemas/NAME.schema.json`.
#[track_caller]
pub(crate) fn assert_matches(name: &str, document: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let text = std::fs::read(folder.join(format!("{name}.schema.json"))).unwrap();
    let schema: Value = serde_json::from_slice(&text).unwrap();
    if let Err(why) = matches(&schema, &schema, document) {
        panic!("not as in {name}.schema.json: {why}\n{document}");
    }
}

fn matches(root: &Value, schema: &Value, document: &Value) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else {
        return if schema == true { Ok(()) } else { Err(format!("nothing matches {schema}")) };
    };
    for (keyword, rule) in keywords {
        matches_keyword(root, (keyword, rule), document).map_err(|why| format!("{keyword}: {why}"))?;
    }
    Ok(())
}

fn matches_keyword(root: &Value, (keyword, rule): (&str, &Value), document: &Value) -> Result<(), String> {
    let holds = |yes: bool| if yes { Ok(()) } else { Err(format!("{document} against {rule}")) };
    match keyword {
        "$schema" | "$defs" | "title" | "description" | "default" | "format" | "examples" => Ok(()),
        "$ref" => {
            let definition = rule.as_str().and_then(|path| root.pointer(path.strip_prefix('#')?));
            matches(root, definition.ok_or("no such definition")?, document)
        }
        "type" => match rule {
            Value::Array(types) => holds(types.iter().any(|one| is_a(document, one))),
            one => holds(is_a(document, one)),
        },
        "required" => {
            let missing = list(rule).iter().find(|field| document.get(field.as_str().unwrap()).is_none());
            missing.map_or(Ok(()), |field| Err(format!("{field} is missing")))
        }
        "properties" => rule.as_object().unwrap().iter().try_for_each(|(field, schema)| {
            let value = document.get(field);
            value.map_or(Ok(()), |v| matches(root, schema, v)).map_err(|why| format!("{field}: {why}"))
        }),
        "items" => document.as_array().into_iter().flatten().try_for_each(|item| matches(root, rule, item)),
        "anyOf" => holds(list(rule).iter().any(|schema| matches(root, schema, document).is_ok())),
        "enum" => holds(list(rule).contains(document)),
        "const" => holds(rule == document),
        "minimum" => holds(document.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap())),
        "minLength" => {
            holds(document.as_str().is_none_or(|t| t.chars().count() as u64 >= rule.as_u64().unwrap()))
        }
        other => Err(format!("the tests don't know the keyword {other}")),
    }
}

fn list(rule: &Value) -> &[Value] {
    rule.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn is_a(document: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => document.is_null(),
        "boolean" => document.is_boolean(),
        "integer" => document.is_i64() || document.is_u64(),
        "number" => document.is_number(),
        "string" => document.is_string(),
        "array" => document.is_array(),
        "object" => document.is_object(),
        other => panic!("no JSON type {other}"),
    }
}

/// The check itself can fail.
#[test]
fn what_breaks_a_schema_is_noticed() {
    let good = serde_json::json!({"level": 0, "action": "continue", "message": null, "similar": false, "runLength": 1,
        "findings": [], "knownPatterns": []});
    assert_matches("hook-output", &good);
    for (field, wrong) in [("level", serde_json::json!(-1)), ("findings", Value::Null), ("message", 5.into())]
    {
        let mut bad = good.clone();
        bad[field] = wrong;
        assert!(std::panic::catch_unwind(|| assert_matches("hook-output", &bad)).is_err(), "{field}");
    }
    let mut bad = good.clone();
    bad.as_object_mut().unwrap().remove("knownPatterns");
    assert!(std::panic::catch_unwind(|| assert_matches("hook-output", &bad)).is_err());
}
