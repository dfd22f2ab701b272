//! Three lines of JSON: what the user set, a project's configuration and its profile file. What the user set is never looser
//! afterwards, nothing that a project may not set is there, and its messages are marked.

use deloop_policy::{
    Profile, ProjectFile, ProjectMerge, check_project_file, config_schema, merge_project, profile_document,
    wrong_value,
};
use serde_json::{Value, json};

/// # Panics
/// When a project loosens something, or sets what it may not.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let mut next = || lines.next().and_then(|line| serde_json::from_str(line).ok()).filter(Value::is_object);
    let (own, configuration, profile) = (next().unwrap_or_default(), next().unwrap_or_default(), next());
    let own = if own.is_object() { own } else { json!({}) };
    let _ = wrong_value(&own, &config_schema(&deloop_policy::Registry::default()));
    let built_in = profile_document("default").expect("a built-in profile");
    let base = if profile.is_some() { json!({}) } else { built_in.clone() };
    let merged = merge_project(ProjectMerge {
        base: &base,
        own_base: &built_in,
        own: &own,
        profile: profile.as_ref(),
        configuration: &configuration,
        source: "deloop.toml",
    });
    let Ok(merged) = merged else { return };
    assert!(check_project_file(&configuration, ProjectFile::Configuration).is_ok());
    let after = &merged.document;
    for key in ["server", "serve", "run", "embeddings", "holdout"] {
        let before = own.get(key).or_else(|| base.get(key));
        assert_eq!(after.get(key), before, "`{key}` is not the project's to set");
    }
    for (key, limit) in own["ceilings"].as_object().into_iter().flatten() {
        let Some(limit) = limit.as_f64().filter(|limit| *limit > 0.0) else { continue };
        let now = after["ceilings"][key].as_f64();
        assert!(now.is_some_and(|now| now > 0.0 && now <= limit), "`ceilings.{key}`: {limit} became {now:?}");
    }
    let mode =
        |document: &Value| ["shadow", "nudge", "enforce"].iter().position(|mode| document["mode"] == *mode);
    assert!(mode(after) >= mode(&own), "the mode is weaker");
    for name in own["order"].as_array().into_iter().flatten().filter(|name| name.is_string()) {
        assert!(after["order"].as_array().is_none_or(|order| order.contains(name)), "{name} is gone");
    }
    let before = |value: &Value| {
        built_in["ladders"].to_string().contains(&value.to_string())
            || own.to_string().contains(&value.to_string())
    };
    for ladder in after["ladders"].as_object().into_iter().flatten().map(|(_, ladder)| ladder) {
        for rung in ladder["rungs"].as_array().into_iter().flatten() {
            let Some(message) = rung["message"].as_str().filter(|message| !message.trim().is_empty()) else {
                continue;
            };
            let marked = message.starts_with("[deloop, from this project's deloop.toml] ");
            assert!(marked || before(&rung["message"]), "{message}");
        }
    }
    // It may be no profile, but it never panics.
    let _ = Profile::configured(merged.document, true);
}
