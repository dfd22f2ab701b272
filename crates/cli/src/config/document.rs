//! Configuration files as documents.

use std::path::{Path, PathBuf};

use deloop_policy::{DocumentError, ProjectFile, check_project_file, profile_document};
use serde::Deserialize;
use serde_json::Value;

use super::sources::{LONGEST, Layer, Reach};
use crate::exit::Failure;
use crate::safe_file::{self, Links};

/// Parses the document in a layer.
pub(super) fn of_layer(layer: &Layer) -> Result<Value, Failure> {
    let text = layer.text.as_ref().map_err(|why| told(&layer.path, why))?;
    parse(&layer.path, text)
}

/// Reads the document of a built-in profile or of a file. `from` is the layer that names it; `None` if the user named
/// it on the command line or in the environment.
pub(super) fn of_profile(name: &str, from: Option<&Layer>) -> Result<Value, Failure> {
    if !is_file_name(name) {
        return profile_document(name).map_err(|e| {
            Failure::new(format!("{e}; to use a profile of your own, give a path that ends in .toml"))
        });
    }
    let path = profile_path(name, from);
    let text = match from.map(|layer| &layer.reach) {
        None | Some(Reach::Anywhere) => {
            safe_file::read_text(&path, LONGEST, Links::Follow).map_err(|e| told(&path, &e))?
        }
        Some(Reach::Inside { profile, .. }) => match profile {
            Some((known, text)) if known == name => text.clone(),
            _ => return Err(told(&path, &"this profile didn't exist when you trusted the configuration")),
        },
    };
    let document = parse(&path, &text)?;
    if from.is_some_and(Layer::is_of_project) {
        check_project_file(&document, ProjectFile::Profile).map_err(|e| told(&path, &e))?;
    }
    if document.as_object().is_some_and(serde_json::Map::is_empty) {
        let why =
            "the profile is empty, so it detects nothing; `deloop profiles show default` prints a template";
        return Err(told(&path, &why));
    }
    Ok(document)
}

/// Returns the path of the profile file that a layer names, or the command line.
pub(super) fn profile_path(name: &str, from: Option<&Layer>) -> PathBuf {
    match from {
        None => Path::new(name).to_owned(),
        Some(layer) => layer.path.parent().unwrap_or(Path::new("")).join(name),
    }
}

/// Returns whether a profile is a file, not a built-in one.
pub(crate) fn is_file_name(profile: &str) -> bool {
    Path::new(profile).extension().is_some_and(|e| e == "toml" || e == "yaml" || e == "yml")
}

/// Parses TOML or YAML, depending on the file's extension.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Value, Failure> {
    let yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
    let document: Value = if yaml {
        let mut document = serde_saphyr::from_str(text).map_err(|e| told(path, &e))?;
        keep_message(text, &mut document);
        document
    } else {
        toml::from_str(text).map_err(|e| told(path, &e))?
    };
    match document {
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Object(_) => Ok(document),
        _ => Err(told(path, &DocumentError("a configuration must be a table of keys".to_owned()))),
    }
}

/// Puts `agent.loopMsg` back as it is written. It is a string, and YAML takes `007` or `yes` for something else.
fn keep_message(text: &str, document: &mut Value) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Written {
        agent: WrittenAgent,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct WrittenAgent {
        loop_msg: Option<String>,
    }
    let Some(message) = document.pointer_mut("/agent/loopMsg") else { return };
    if let Ok(Written { agent: WrittenAgent { loop_msg: Some(written) } }) = serde_saphyr::from_str(text) {
        *message = Value::String(written);
    }
}

pub(super) fn told(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("{}: {why}", path.display()))
}
