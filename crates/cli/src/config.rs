//! The configuration: flag over environment over file over profile.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use deloop::{
    AgentBlock, DocumentError, Fail, MemoryBlock, Mode, Options, Price, Profile, Registry, config_schema,
    merge, profile_text, unknown_key,
};
use serde_json::Value;

use crate::args::{ConfigArgs, RuleArgs};
use crate::exit::{self, Failure};

/// The names of a configuration file, in the order in which they are looked for.
const NAMES: [&str; 4] = ["deloop.toml", "deloop.yaml", "deloop.yml", ".deloop.toml"];

/// What the configuration amounts to.
pub(crate) struct Config {
    pub(crate) profile: Profile,
    pub(crate) options: Options,
    /// The folder for notes, if one is set.
    pub(crate) memory: Option<PathBuf>,
    /// `DELOOP=off`.
    pub(crate) off: bool,
    /// What happens when deloop itself fails.
    pub(crate) fail: Fail,
    /// The files that were read, the later laid over the earlier.
    files: Vec<PathBuf>,
    document: Value,
}

impl Config {
    /// The user's own prices of models.
    pub(crate) fn prices(&self) -> Result<BTreeMap<String, Price>, Failure> {
        Ok(field(&self.document, "prices")?.unwrap_or_default())
    }

    /// Returns the profile as it would be with this TOML laid over the whole configuration.
    ///
    /// # Errors
    /// When the overlay is not TOML, or the result is not a profile.
    pub(crate) fn profile_with(&self, overlay: &str) -> Result<Profile, Failure> {
        let overlay: Value = toml::from_str(overlay).map_err(|e| Failure::new(e.to_string()))?;
        let mut document = self.document.clone();
        merge(&mut document, overlay);
        Ok(Profile::from_document(document, &Registry::default())?)
    }
}

/// What holds where nothing says otherwise.
struct Base<'a> {
    profile: &'a str,
    mode: Mode,
    /// Whether keys that do not exist are an error.
    checked: bool,
}

/// Reads all that applies here.
pub(crate) fn load(args: &RuleArgs) -> Result<Config, Failure> {
    load_over(args, "default")
}

/// As [`load`], over this profile where nothing names another.
pub(crate) fn load_over(args: &RuleArgs, profile: &str) -> Result<Config, Failure> {
    load_base(args, &Base { profile, mode: Mode::default(), checked: true })
}

/// As [`load`], for the hook of an agent: it nudges where nothing says otherwise, and starts too often to look for
/// keys that do not exist (`deloop doctor` does).
pub(crate) fn load_for_hook(args: &RuleArgs) -> Result<Config, Failure> {
    load_base(args, &Base { profile: "default", mode: Mode::Nudge, checked: false })
}

fn load_base(args: &RuleArgs, base: &Base<'_>) -> Result<Config, Failure> {
    let files = match &args.config {
        Some(path) => vec![path.clone()],
        None => discover(),
    };
    let mut over = Value::Object(serde_json::Map::new());
    let schema = base.checked.then(|| config_schema(&Registry::default()));
    for path in &files {
        let document = read(path)?;
        if let Some(error) = schema.as_ref().and_then(|schema| unknown_key(&document, schema)) {
            return Err(Failure::new(format!("{}: {error}", path.display())));
        }
        merge(&mut over, document);
    }
    let name =
        args.profile.as_deref().or_else(|| over["profile"].as_str()).unwrap_or(base.profile).to_owned();
    let mut document = base_document(&name)?;
    merge(&mut document, over);
    if let Some(agent) = document.get("agent").filter(|a| !a.is_null()).cloned() {
        let block: AgentBlock =
            serde_json::from_value(agent).map_err(|e| Failure::new(format!("the `agent` block: {e}")))?;
        block.apply(&mut document);
    }
    AgentBlock::from_env(|variable| std::env::var(variable).ok())?.apply(&mut document);
    let mode = match args.mode {
        Some(mode) => mode.into(),
        None => field::<Mode>(&document, "mode")?.unwrap_or(base.mode),
    };
    let attended = args.attended || field::<bool>(&document, "attended")?.unwrap_or(false);
    let memory = field::<MemoryBlock>(&document, "memory")?.and_then(|m| m.folder).map(PathBuf::from);
    let fail = field::<Fail>(&document, "fail")?.unwrap_or_default();
    let profile = if base.checked {
        Profile::from_document(document.clone(), &Registry::default())?
    } else {
        Profile::from_document_unchecked(document.clone(), &Registry::default())?
    };
    Ok(Config { profile, options: Options { mode, attended }, memory, off: is_off(), fail, files, document })
}

/// Whether the environment says `DELOOP=off`.
pub(crate) fn is_off() -> bool {
    std::env::var("DELOOP").is_ok_and(|v| v.eq_ignore_ascii_case("off"))
}

fn field<T: serde::de::DeserializeOwned>(document: &Value, key: &str) -> Result<Option<T>, Failure> {
    match document.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            serde_json::from_value(value.clone()).map(Some).map_err(|e| Failure::new(format!("`{key}`: {e}")))
        }
    }
}

/// The document of a profile that comes with deloop or of a file.
fn base_document(name: &str) -> Result<Value, Failure> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|e| e == "toml" || e == "yaml" || e == "yml");
    if is_file {
        return read(path);
    }
    let text = profile_text(name)
        .map_err(|e| Failure::new(format!("{e}; a profile of your own is a path that ends in .toml")))?;
    toml::from_str(text).map_err(|e| Failure::new(e.to_string()))
}

fn read(path: &Path) -> Result<Value, Failure> {
    let told = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| told(&e))?;
    let yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
    let document: Value = if yaml {
        serde_saphyr::from_str(&text).map_err(|e| told(&e))?
    } else {
        toml::from_str(&text).map_err(|e| told(&e))?
    };
    match document {
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Object(_) => Ok(document),
        _ => Err(told(&DocumentError("a configuration is a table of keys".to_owned()))),
    }
}

/// The user's file, then the nearest one upward from the working directory.
fn discover() -> Vec<PathBuf> {
    let first_in = |folder: &Path| NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    let user = user_folder().and_then(|folder| first_in(&folder));
    let here = std::env::current_dir().ok();
    let project = here.as_deref().and_then(|here| here.ancestors().find_map(first_in));
    let mut files: Vec<PathBuf> = user.into_iter().collect();
    files.extend(project.filter(|p| !files.contains(p)));
    files
}

/// The user's configuration folder of deloop.
fn user_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) {
        variable("APPDATA")
    } else {
        variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")))
    };
    base.map(|base| base.join("deloop"))
}

/// The user's state folder of deloop.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")))
    };
    base.map(|base| base.join("deloop"))
}

/// `deloop config`
pub(crate) fn run(args: &ConfigArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let config = load(&args.rules)?;
    if config.files.is_empty() {
        writeln!(
            out,
            "# no configuration file found; `deloop profiles show {}` prints a template",
            config.profile.name
        )?;
    }
    for file in &config.files {
        writeln!(out, "# from {}", file.display())?;
    }
    let mut document = config.document;
    merge(
        &mut document,
        serde_json::json!({"mode": config.options.mode, "attended": config.options.attended}),
    );
    drop_nulls(&mut document);
    let text = toml::to_string_pretty(&document).map_err(|e| Failure::new(e.to_string()))?;
    out.write_all(text.as_bytes())?;
    Ok(exit::OK)
}

/// TOML has no null: a key without a value is a key that is not there.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, v| !v.is_null());
        map.values_mut().for_each(drop_nulls);
    }
}
