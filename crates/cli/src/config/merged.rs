//! Merges the user's configuration, the project's and the profile that they name.

use deloop_policy::{
    KeptSetting, ProjectFile, ProjectMerge, ProjectMerged, Registry, check_project_file, config_schema,
    merge, merge_project, unknown_key,
};
use serde_json::{Map, Value};

use super::sources::Layer;
use super::{Defaults, Given, document, serve};
use crate::exit::Failure;

/// The profile and all settings.
pub(super) struct Merged<'a> {
    pub(super) document: Value,
    /// The settings of the project that don't apply.
    pub(super) kept: Vec<KeptSetting>,
    pub(super) project: ProjectShare<'a>,
}

/// Which settings are the project's.
pub(super) struct ProjectShare<'a> {
    layer: Option<&'a Layer>,
    /// What the user set.
    own: Value,
}

impl<'a> ProjectShare<'a> {
    /// Returns the project's layer if this setting can be its own, because the user didn't set it.
    pub(super) fn naming(&self, pointer: &str) -> Option<&'a Layer> {
        self.layer.filter(|_| self.own.pointer(pointer).is_none_or(Value::is_null))
    }
}

/// The document of a layer, and the profile that it names.
struct ReadLayer<'a> {
    layer: Option<&'a Layer>,
    document: Value,
    profile: Option<String>,
}

/// Merges the layers over the profile that they name.
pub(super) fn merge_layers<'a>(
    layers: &[&'a Layer],
    given: Given<'_>,
    base: Defaults<'_>,
) -> Result<Merged<'a>, Failure> {
    let find = |of_project: bool| layers.iter().copied().find(|layer| layer.is_of_project() == of_project);
    let (own, project) = (read(find(false), base)?, read(find(true), base)?);
    let named = given.args.profile.clone().filter(|_| given.profile);
    let (name, from) = match named {
        Some(name) => (Some(name), None),
        None => (own.profile, own.layer),
    };
    let (own_base, mut settings) = match &name {
        Some(name) => split(name, from)?,
        None => split(base.profile, None)?,
    };
    merge(&mut settings, own.document);
    let Some(layer) = project.layer else {
        let mut document = own_base;
        merge(&mut document, settings);
        return Ok(Merged {
            document,
            kept: Vec::new(),
            project: ProjectShare { layer: None, own: empty() },
        });
    };
    // The user's choice of a profile stays.
    let theirs = match project.profile.filter(|_| name.is_none()) {
        Some(name) => Some((document::is_file_name(&name), document::of_profile(&name, Some(layer))?)),
        None => None,
    };
    let (base, profile) = match theirs {
        None => (own_base.clone(), None),
        Some((false, built_in)) => (built_in, None),
        Some((true, file)) => (empty(), Some(file)),
    };
    if let (Some(name), Some(map)) = (name, settings.as_object_mut()) {
        map.insert("profile".to_owned(), name.into());
    }
    let source = layer.path.file_name().unwrap_or_default().to_string_lossy();
    let ProjectMerged { document, kept } = merge_project(ProjectMerge {
        base: &base,
        own_base: &own_base,
        own: &settings,
        profile: profile.as_ref(),
        configuration: &project.document,
        source: &deloop_detect::clean(&source, 40),
    })
    .map_err(|why| document::told(&layer.path, &why))?;
    Ok(Merged { document, kept, project: ProjectShare { layer: Some(layer), own: settings } })
}

/// Reads a layer and checks its keys.
fn read<'a>(layer: Option<&'a Layer>, base: Defaults<'_>) -> Result<ReadLayer<'a>, Failure> {
    let Some(layer) = layer else { return Ok(ReadLayer { layer: None, document: empty(), profile: None }) };
    let told = |why: &dyn std::fmt::Display| document::told(&layer.path, why);
    let mut document = document::of_layer(layer)?;
    if base.checked
        && let Some(error) = unknown_key(&document, &config_schema(&Registry::default()))
    {
        return Err(told(&error));
    }
    if layer.is_of_project() {
        check_project_file(&document, ProjectFile::Configuration).map_err(|why| told(&why))?;
    }
    serve::anchor_files(&mut document, layer);
    let profile = match document.get("profile") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.clone()),
        Some(_) => return Err(told(&"`profile` must be the name of a profile, in quotes")),
    };
    Ok(ReadLayer { layer: Some(layer), document, profile })
}

/// Returns a profile as what is built in and what a file of the user's sets.
fn split(name: &str, from: Option<&Layer>) -> Result<(Value, Value), Failure> {
    let document = document::of_profile(name, from)?;
    Ok(if document::is_file_name(name) { (empty(), document) } else { (document, empty()) })
}

fn empty() -> Value {
    Value::Object(Map::new())
}
