use std::path::Path;

use deloop_engine::Options;
use deloop_policy::{AgentBlock, DocumentError, Profile, merge_settings, profile_document, setting};
use deloop_store::Limits;
use deloop_types::{Mode, Role};
use serde_json::{Map, Value};

use crate::BoundGuard;

/// Maximum size of a profile file, in bytes, as for the command.
const LONGEST_PROFILE: u64 = 1 << 20;

/// Settings of the command that a guard in a program doesn't use.
const COMMAND_KEYS: [&str; 8] = ["embeddings", "events", "fail", "memory", "run", "serve", "server", "swarm"];

/// Settings that programs pass as arguments.
const ARGUMENTS: [&str; 3] = ["attended", "mode", "profile"];

/// Why a guard, a step or a checkpoint can't be used. The message names the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindError(pub String);

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BindError {}

impl From<DocumentError> for BindError {
    fn from(error: DocumentError) -> Self {
        Self(error.0)
    }
}

/// The arguments of a guard, as programs pass them.
///
/// ```
/// use deloop_bind::GuardSettings;
/// let guard = GuardSettings { profile: "turn-hash".into(), ..GuardSettings::default() }.guard()?;
/// assert_eq!(guard.observe_json(br#"{"type":"turn","text":"Again."}"#)?.decision.action.as_str(), "continue");
/// assert_eq!(guard.observe_json(br#"{"type":"turn","text":"Again."}"#)?.decision.action.as_str(), "nudge");
/// # Ok::<(), deloop_bind::BindError>(())
/// ```
#[derive(Debug, Clone)]
pub struct GuardSettings {
    /// A built-in profile, the path of a file that ends in `.toml`, or the text of one.
    pub profile: String,
    /// `observe` (or `shadow`), `nudge` or `enforce`.
    pub mode: String,
    /// Whether a person is there to answer questions.
    pub attended: bool,
    /// Settings over the profile's, as in a configuration file; null for none.
    pub config: Value,
    /// Where a message can be put: `user`, `tool`, `system` or `developer`. Empty means anywhere.
    pub deliver: Vec<String>,
    /// Whether the caller can take steps out of the conversation.
    pub rollback: bool,
    /// Maximum number of sessions in memory. The least recently used are dropped first.
    pub max_sessions: Option<usize>,
}

impl Default for GuardSettings {
    fn default() -> Self {
        Self {
            profile: "default".to_owned(),
            mode: "enforce".to_owned(),
            attended: false,
            config: Value::Null,
            deliver: Vec::new(),
            rollback: false,
            max_sessions: None,
        }
    }
}

impl GuardSettings {
    /// Creates the guard.
    ///
    /// # Errors
    /// When an argument has no meaning. The message names the argument and the values that it can have.
    pub fn guard(self) -> Result<BoundGuard, BindError> {
        let mode = mode(&self.mode)?;
        let mut options = Options::new(mode, self.attended);
        if !self.deliver.is_empty() {
            options = options.with_roles(
                self.deliver
                    .iter()
                    .map(|name| role(name))
                    .collect::<Result<Vec<Role>, _>>()?
                    .into_iter()
                    .collect(),
            );
        }
        if self.rollback {
            options = options.with_rollback();
        }
        let mut limits = Limits::default();
        if let Some(most) = self.max_sessions {
            if most == 0 {
                return Err(BindError("`max_sessions` must be at least 1".to_owned()));
            }
            limits.sessions = most;
        }
        let mut document = document(&self.profile)?;
        merge_settings(&mut document, over(self.config)?, AgentBlock::default())?;
        let prices = setting(&document, "prices")?.unwrap_or_default();
        let profile = Profile::configured(document, true)?;
        Ok(BoundGuard::new(profile, options, limits, prices))
    }
}

fn mode(name: &str) -> Result<Mode, BindError> {
    match name {
        "observe" | "shadow" => Ok(Mode::Shadow),
        "nudge" => Ok(Mode::Nudge),
        "enforce" => Ok(Mode::Enforce),
        _ => Err(BindError(format!("unknown mode `{name}`; known modes: observe, nudge, enforce"))),
    }
}

fn role(name: &str) -> Result<Role, BindError> {
    match name {
        "user" => Ok(Role::User),
        "tool" => Ok(Role::Tool),
        "system" => Ok(Role::System),
        "developer" => Ok(Role::Developer),
        _ => Err(BindError(format!(
            "unknown place for messages `{name}` in `deliver`; known places: user, tool, system, developer"
        ))),
    }
}

/// Returns the document of a built-in profile, of a file, or of a text: only a text has more than one line or a `=`.
fn document(profile: &str) -> Result<Value, BindError> {
    let toml = |text: &str, name: &str| {
        let document: Value = toml::from_str(text).map_err(|e| BindError(format!("{name}: {e}")))?;
        if document.as_object().is_some_and(Map::is_empty) {
            return Err(BindError(format!(
                "{name} is empty, so it detects nothing; `deloop profiles show default` prints a template"
            )));
        }
        Ok(document)
    };
    if profile.contains('\n') || profile.contains('=') {
        return toml(profile, "the profile");
    }
    let path = Path::new(profile);
    if path.extension().is_some_and(|ending| ending == "toml") {
        let failed = |e: std::io::Error| BindError(format!("{}: {e}", path.display()));
        let about = std::fs::metadata(path).map_err(failed)?;
        if !about.is_file() || about.len() > LONGEST_PROFILE {
            return Err(BindError(format!("{}: not a file of at most 1 MiB", path.display())));
        }
        return toml(&std::fs::read_to_string(path).map_err(failed)?, profile);
    }
    profile_document(profile).map_err(|e| {
        BindError(format!("{e}; to use a profile of your own, give its text or a path that ends in .toml"))
    })
}

/// Checks that settings are a table and that a guard can use each of them.
fn over(config: Value) -> Result<Value, BindError> {
    match &config {
        Value::Null => return Ok(Value::Object(Map::new())),
        Value::Object(settings) => {
            if let Some(key) = ARGUMENTS.iter().find(|key| settings.contains_key(**key)) {
                return Err(BindError(format!("`{key}` is an argument of its own; remove it from `config`")));
            }
            if let Some(key) = COMMAND_KEYS.iter().find(|key| settings.contains_key(**key)) {
                return Err(BindError(format!(
                    "`{key}` is a setting of the command `deloop`, which a guard doesn't use; remove it from `config`"
                )));
            }
        }
        _ => return Err(BindError("`config` must be a table of settings, as in deloop.yaml".to_owned())),
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(settings: GuardSettings) -> String {
        settings.guard().err().map(|e| e.0).unwrap_or_default()
    }

    fn with(config: Value) -> GuardSettings {
        GuardSettings { config, ..GuardSettings::default() }
    }

    #[test]
    fn errors_name_the_fix() {
        let named = |profile: &str| GuardSettings { profile: profile.to_owned(), ..GuardSettings::default() };
        assert!(error(named("defualt")).contains("known profiles: default"));
        assert!(error(named("none/such.toml")).starts_with("none/such.toml: "));
        assert!(error(named("oder = []\n")).contains("did you mean `order`"));
        assert!(error(named("\n")).contains("is empty"));
        assert!(error(named("order = []")).contains("`order` is empty"));
        let mode = GuardSettings { mode: "block".to_owned(), ..GuardSettings::default() };
        assert_eq!(error(mode), "unknown mode `block`; known modes: observe, nudge, enforce");
        let deliver = GuardSettings { deliver: vec!["chat".to_owned()], ..GuardSettings::default() };
        assert!(error(deliver).contains("known places: user, tool"));
        let none = GuardSettings { max_sessions: Some(0), ..GuardSettings::default() };
        assert!(error(none).contains("at least 1"));
        assert!(error(with(json!([]))).contains("must be a table"));
        assert!(error(with(json!({"mode": "nudge"}))).contains("argument of its own"));
        assert!(error(with(json!({"serve": {}}))).contains("a setting of the command"));
        assert!(error(with(json!({"ladder": {}}))).contains("did you mean `ladders`"));
    }

    #[test]
    fn a_profile_is_a_name_a_text_or_a_file() {
        let text = deloop_policy::profile_text("turn-hash").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.toml");
        std::fs::write(&path, text).unwrap();
        for profile in ["turn-hash", text, path.to_str().unwrap()] {
            let guard =
                GuardSettings { profile: profile.to_owned(), ..GuardSettings::default() }.guard().unwrap();
            let actions = [(); 2].map(|()| {
                guard.observe_json(br#"{"type":"turn","text":"a"}"#).unwrap().decision.action.as_str()
            });
            assert_eq!(actions, ["continue", "nudge"]);
        }
    }
}
