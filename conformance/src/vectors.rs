//! The conformance vectors, read from their files.

#![expect(clippy::disallowed_methods, reason = "the vectors are files")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One file of `vectors/`: steps, and the decision that each of them must get.
#[derive(Debug, Clone)]
pub struct Vector {
    /// `PROFILE/NAME`.
    pub name: String,
    /// The profile to judge by.
    pub profile: String,
    /// Which sentence of the document it shows.
    pub about: String,
    /// Settings over the profile's own, as in `deloop.yaml`; null if there are none.
    pub config: Value,
    /// The steps, as they are on the wire.
    pub steps: Vec<Value>,
    /// One a step: `action`, `level`, and sometimes `message` and `findings`.
    pub decisions: Vec<Value>,
}

/// The folder that holds the vectors.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// All vectors, by name; or what is wrong with the first bad one.
pub fn load() -> Result<Vec<Vector>, String> {
    let mut vectors = Vec::new();
    for profile in crate::PROFILES {
        let folder = folder().join(profile);
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                vectors.push(read(&path)?);
            }
        }
    }
    vectors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(vectors)
}

fn read(path: &Path) -> Result<Vector, String> {
    let wrong = |what: &str| format!("{}: {what}", path.display());
    let text = fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
    let string = |key: &str| {
        let value = json[key].as_str().map(str::to_owned);
        value.ok_or_else(|| wrong(&format!("`{key}` is not a string")))
    };
    let list = |key: &str| {
        let value = json[key].as_array().cloned();
        value.ok_or_else(|| wrong(&format!("`{key}` is not a list")))
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let vector = Vector {
        name: format!("{}/{stem}", string("profile")?),
        profile: string("profile")?,
        about: string("about")?,
        config: json["config"].clone(),
        steps: list("steps")?,
        decisions: list("decisions")?,
    };
    if vector.steps.len() == vector.decisions.len() {
        Ok(vector)
    } else {
        Err(wrong("not one decision a step"))
    }
}
