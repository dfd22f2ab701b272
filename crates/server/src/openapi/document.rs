use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::refusals;
use super::{ApiOperation, ApiParameter};
use crate::access::{KeyScope, is_public, needs_all_projects};

/// What clients should know before they look at the operations.
const ABOUT: &str = "Steps in, Decisions out, for many agents at once. See docs/serve.md in the repository.\n\n\
    A server with keys needs one for every operation except `GET /healthz`; each operation names the scope. A server \
    without keys answers programs on its own machine and needs none.\n\n\
    Every error is `{\"error\":\"…\"}`, with the reason.";

/// Returns the document that describes these operations.
pub(super) fn document(operations: &[ApiOperation]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        settings.transforms.push(Box::new(RecursiveTransform(bound_integers)));
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in operations {
        let described = describe(operation, &mut generator);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = described;
    }
    let responses = refusals::components(&mut generator);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "deloop serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": responses,
            "securitySchemes": {"key": {
                "type": "http",
                "scheme": "bearer",
                "description": "A key from `deloop keys add`. The scopes are ingest, attend, read, operate and admin, \
                                which includes the others.",
            }},
        },
    })
}

fn describe(operation: &ApiOperation, generator: &mut SchemaGenerator) -> Value {
    let public = is_public(operation.path);
    let project = (!public).then(|| project().describe());
    let parameters: Vec<Value> =
        operation.parameters.iter().map(ApiParameter::describe).chain(project).collect();
    let mut responses = Map::new();
    responses.insert("200".to_owned(), answer(operation, generator));
    responses.extend(refusals::responses(operation, generator));
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": details(operation),
        "parameters": parameters,
        "responses": responses,
        "security": [],
    });
    if !public {
        let scope = KeyScope::needed(&operation.method, operation.path);
        let scopes: Vec<&str> = scope.into_iter().map(KeyScope::name).collect();
        described["security"] = json!([{"key": scopes}]);
    }
    if !operation.takes.is_empty() {
        let content: Map<String, Value> = operation
            .takes
            .iter()
            .map(|content| (content.media_type.to_owned(), content.describe(generator)))
            .collect();
        described["requestBody"] = json!({"required": true, "content": content});
    }
    described
}

fn details(operation: &ApiOperation) -> String {
    let needs = match (is_public(operation.path), needs_all_projects(operation.path)) {
        (true, _) => "Needs no key.".to_owned(),
        (false, all) => {
            let scope = KeyScope::needed(&operation.method, operation.path);
            let scope = scope.map_or(String::new(), |scope| format!(" with the scope `{}`", scope.name()));
            let all = if all { " for all projects" } else { "" };
            format!("Needs a key{all}{scope}, if the server has keys.")
        }
    };
    let separator = if operation.details.is_empty() { "" } else { "\n\n" };
    format!("{}{separator}{needs}", operation.details)
}

fn answer(operation: &ApiOperation, generator: &mut SchemaGenerator) -> Value {
    let content: Map<String, Value> = operation
        .answers
        .iter()
        .map(|content| (content.media_type.to_owned(), content.describe(generator)))
        .collect();
    let mut answer = json!({"description": operation.answer, "content": content});
    for (name, about) in &operation.headers {
        answer["headers"][name] = json!({"description": about, "schema": {"type": "string"}});
    }
    answer
}

fn project() -> ApiParameter {
    ApiParameter::query(
        "project",
        "The project; that of the key, or `default`, if absent.",
        json!({"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}),
        json!("web-shop"),
    )
}

/// Adds the bounds that `format` only names, for programs that check bounds.
fn bound_integers(schema: &mut Schema) {
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("uint64") => (json!(0), json!(u64::MAX)),
        Some("uint32") => (json!(0), json!(u32::MAX)),
        Some("int64") => (json!(i64::MIN), json!(i64::MAX)),
        _ => return,
    };
    for (bound, value) in [("minimum", least), ("maximum", most)] {
        if schema.get(bound).is_none() {
            schema.insert(bound.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation that isn't described would be of no use to anyone who reads the document.
    #[test]
    fn every_operation_is_described() {
        let mut ids = std::collections::BTreeSet::new();
        for operation in crate::routes::operations() {
            let (id, path) = (operation.id, operation.path);
            assert!(ids.insert(id), "{id} is used twice");
            assert!(!operation.summary.is_empty() && !operation.answer.is_empty(), "{id}");
            assert!(!operation.tag.is_empty() && !operation.answers.is_empty(), "{id}");
            let described = describe(&operation, &mut SchemaGenerator::default());
            let named: Vec<&str> =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            let parameters = described["parameters"].as_array().unwrap();
            let in_path: Vec<&str> = parameters
                .iter()
                .filter(|p| p["in"] == "path")
                .map(|p| p["name"].as_str().unwrap())
                .collect();
            assert_eq!(in_path, named, "{id}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = crate::openapi_document();
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(references.len() > 50);
        for reference in references {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
        }
    }

    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::String(text) if name == "$ref" => found.push(text.clone()),
                        value => collect(value, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
}
