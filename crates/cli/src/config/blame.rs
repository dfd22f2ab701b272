//! Finds the file and the key that an error in the configuration is about.

use std::path::{Path, PathBuf};

use deloop_policy::{Registry, config_schema, wrong_value};

use super::document;
use super::sources::{LONGEST, Layer};
use crate::exit::Failure;
use crate::safe_file::{self, Links};

/// Adds the file to an error that doesn't name it, and replaces it by a better one if a value has the wrong type. `works`
/// tells whether the configuration works with these layers only; `profile` is the one on the command line.
pub(super) fn name_file(
    layers: &[&Layer],
    profile: Option<&str>,
    failure: Failure,
    works: &dyn Fn(&[&Layer]) -> bool,
) -> Failure {
    let Failure::Message(why) = failure else { return failure };
    let files = files(layers, profile);
    let named = |path: &Path| why.starts_with(&format!("{}: ", path.display()));
    if files.iter().any(|(path, _)| named(path)) || layers.iter().any(|layer| named(&layer.path)) {
        return Failure::Message(why);
    }
    if let Some(better) = files.iter().find_map(|(path, text)| wrong_type(path, text)) {
        return better;
    }
    let culprit = (0..=layers.len()).find(|n| !works(&layers[..*n]));
    match culprit.and_then(|n| n.checked_sub(1)).and_then(|at| layers.get(at)) {
        Some(layer) => document::told(&layer.path, &why),
        None => Failure::Message(why),
    }
}

/// Returns the files that were merged, and their texts: each layer after the profile file that it names.
fn files(layers: &[&Layer], profile: Option<&str>) -> Vec<(PathBuf, String)> {
    let read = |name: &str, from: Option<&Layer>| {
        if !document::is_file_name(name) {
            return None;
        }
        let path = document::profile_path(name, from);
        let text = match from.map(|layer| &layer.reach) {
            Some(super::Reach::Inside { profile, .. }) => profile.as_ref().map(|(_, text)| text.clone()),
            _ => safe_file::read_text(&path, LONGEST, Links::Follow).ok(),
        };
        Some((path, text?))
    };
    let mut files: Vec<(PathBuf, String)> = profile.and_then(|name| read(name, None)).into_iter().collect();
    for layer in layers {
        let Ok(text) = &layer.text else { continue };
        let named = document::parse(&layer.path, text).ok();
        let named =
            named.as_ref().and_then(|document| document.get("profile")).and_then(|name| name.as_str());
        files.extend(named.and_then(|name| read(name, Some(layer))));
        files.push((layer.path.clone(), text.clone()));
    }
    files
}

fn wrong_type(path: &Path, text: &str) -> Option<Failure> {
    let document = document::parse(path, text).ok()?;
    let why = wrong_value(&document, &config_schema(&Registry::default()))?;
    Some(document::told(path, &why))
}
