//! What the five documents ask for and no vector can show; docs/documents lists the sentences.

mod behavioral;
mod doom_loop;
mod signature;
mod turn_hash;
mod turn_similarity;

use std::path::Path;

use serde_json::Value;

use crate::binary::{deloop, run, said};

/// Runs steps and returns the state that they leave, as a checkpoint has it.
fn state_after(profile: &str, steps: &[Value]) -> Value {
    let home = tempfile::tempdir().unwrap();
    let mut command = deloop(home.path());
    let output = run(command.args(["stream", "-p", profile, "--checkpoint", "c.json"]), &text(steps));
    assert_eq!(said(&output), "");
    serde_json::from_slice(&std::fs::read(home.path().join("c.json")).unwrap()).unwrap()
}

/// Returns the first list with this name, wherever it is.
fn list<'a>(value: &'a Value, name: &str) -> Option<&'a Vec<Value>> {
    match value {
        Value::Object(fields) => {
            let here = fields.get(name).and_then(Value::as_array);
            here.or_else(|| fields.values().find_map(|field| list(field, name)))
        }
        Value::Array(items) => items.iter().find_map(|item| list(item, name)),
        _ => None,
    }
}

/// Steps as lines.
fn text(steps: &[Value]) -> Vec<u8> {
    steps.iter().flat_map(|step| format!("{step}\n").into_bytes()).collect()
}

/// Writes the user's own configuration, which needs no trust.
fn user_config(home: &Path, name: &str, text: &str) {
    let folder = home.join(".config/deloop");
    let folder = if cfg!(windows) { home.join("deloop") } else { folder };
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}
