//! The swarm that live sessions belong to.

use deloop_policy::SwarmBlock;
use deloop_types::limits;
use serde_json::Value;

use super::field;
use super::sources::{Layer, Reach};
use crate::exit::Failure;
use crate::trust::digest;

/// Names a swarm: a group of workers with one goal, across sessions.
const VARIABLE: &str = "DELOOP_SWARM";

/// The swarm of the sessions that deloop guards.
#[derive(Debug, Clone, Default)]
pub(crate) struct SwarmSettings {
    /// The swarm of every session.
    pub(crate) name: Option<String>,
    /// Whether the subagents of a session form a swarm of their own.
    pub(crate) subagents: bool,
}

/// Reads the settings. `from` is the layer that names the swarm. The environment overrides it.
pub(super) fn of(
    document: &Value,
    from: Option<&Layer>,
    environment: bool,
) -> Result<SwarmSettings, Failure> {
    let SwarmBlock { name, subagents } = field(document, "swarm")?.unwrap_or_default();
    let name = name.filter(|name| !name.is_empty()).map(|name| match from.map(|layer| &layer.reach) {
        Some(Reach::Inside { root, .. }) => in_project(root, &name),
        _ => name,
    });
    let variable = std::env::var(VARIABLE).ok().filter(|name| environment && !name.is_empty());
    Ok(SwarmSettings { name: variable.or(name).map(limits::name), subagents })
}

/// Returns the name of a project's own swarm. It contains the project's folder, so that one project can't join the swarm
/// of another.
fn in_project(root: &std::path::Path, name: &str) -> String {
    let hash = &digest(root.to_string_lossy().as_bytes())[..12];
    let folder = root.file_name().unwrap_or_default().to_string_lossy();
    format!("project:{hash}/{folder}/{name}")
}
