//! The configuration. Flags override the environment, which overrides files, which override the profile.
//!
//! A file in a project applies only after you trust it (see [`crate::trust`]), and never loosens what you set yourself. For hooks, a broken configuration never
//! turns the guard off: the last working one stays in effect, and the user is notified.

mod blame;
mod document;
mod from_home;
mod last_good;
mod merged;
mod serve;
mod show;
pub(crate) mod sources;
mod swarm;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deloop_engine::Options;
#[cfg(feature = "serve")]
use deloop_policy::ServeBlock;
use deloop_policy::{
    AgentBlock, EmbeddingsBlock, EventsBlock, Fail, KeptSetting, MemoryBlock, Price, Profile, Registry,
    RunBlock, ServerBlock, merge, merge_settings, setting,
};
use deloop_types::Mode;
use serde_json::Value;

pub(crate) use self::document::{is_file_name, parse};
pub(crate) use self::from_home::from_home;
use self::merged::Merged;
pub(crate) use self::show::run;
use self::sources::{Layer, Reach, Sources};
pub(crate) use self::sources::{own_file, state_folder};
pub(crate) use self::swarm::SwarmSettings;
use crate::args::RuleArgs;
use crate::exit::Failure;
use crate::notes::NotesFolder;

/// The effective configuration.
pub(crate) struct Config {
    pub(crate) profile: Profile,
    pub(crate) options: Options,
    /// The folder for notes, if one is set.
    pub(crate) memory: Option<NotesFolder>,
    /// Where embeddings come from.
    pub(crate) embeddings: EmbeddingsBlock,
    /// The server that decides, if one is set.
    pub(crate) server: ServerBlock,
    /// The settings of `deloop run`.
    pub(crate) run: RunBlock,
    /// The file that hooks append events to, if one is set.
    pub(crate) events: Option<(NotesFolder, String)>,
    /// The swarm of live sessions.
    pub(crate) swarm: SwarmSettings,
    /// Whether `DELOOP=off` is set.
    pub(crate) off: bool,
    /// What happens when deloop itself fails.
    pub(crate) fail: Fail,
    /// Notices for the user.
    pub(crate) notices: Vec<ConfigNotice>,
    /// The settings of the project that don't apply.
    pub(crate) kept: Vec<KeptSetting>,
    /// The files that were read. Later ones override earlier ones.
    files: Vec<PathBuf>,
    document: Value,
}

/// A notice about the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigNotice {
    /// A file isn't trusted and was ignored.
    Ignored(String),
    /// A part doesn't work, and something else is in effect.
    Broken(String),
}

impl std::fmt::Display for ConfigNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ignored(text) | Self::Broken(text) => f.write_str(text),
        }
    }
}

impl Config {
    /// Returns the user's own model prices.
    pub(crate) fn prices(&self) -> Result<BTreeMap<String, Price>, Failure> {
        Ok(field(&self.document, "prices")?.unwrap_or_default())
    }

    /// Returns the settings of the server.
    #[cfg(feature = "serve")]
    pub(crate) fn serve(&self) -> Result<ServeBlock, Failure> {
        Ok(field(&self.document, "serve")?.unwrap_or_default())
    }

    /// Returns the profile and all settings, merged.
    #[cfg(feature = "serve")]
    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// Returns the profile with this TOML merged over the whole configuration.
    ///
    /// # Errors
    /// When the overlay isn't TOML, or the result isn't a valid profile.
    pub(crate) fn profile_with(&self, overlay: &str) -> Result<Profile, Failure> {
        let overlay: Value = toml::from_str(overlay).map_err(|e| Failure::new(e.to_string()))?;
        let mut document = self.document.clone();
        merge(&mut document, overlay);
        Ok(Profile::from_document(document, &Registry::default())?)
    }

    /// Returns all notices as one line; `None` if there are none.
    pub(crate) fn notice(&self) -> Option<String> {
        let all: Vec<String> = self.notices.iter().map(ToString::to_string).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// The defaults.
#[derive(Clone, Copy)]
struct Defaults<'a> {
    profile: &'a str,
    mode: Mode,
    /// Whether unknown keys are an error.
    checked: bool,
}

/// The sources of settings other than files.
#[derive(Clone, Copy)]
struct Given<'a> {
    args: &'a RuleArgs,
    /// Whether to use the profile from the command line.
    profile: bool,
    /// Whether to use AGENT_* from the environment.
    environment: bool,
}

const HOOK: Defaults<'static> = Defaults { profile: "default", mode: Mode::Nudge, checked: false };

/// Reads the configuration that applies here, and reports ignored files on standard error.
pub(crate) fn load(args: &RuleArgs) -> Result<Config, Failure> {
    let config = load_quietly(args)?;
    for notice in &config.notices {
        crate::print::tell(format_args!("deloop: {notice}"));
    }
    Ok(config)
}

/// Does the same as [`load`] but prints nothing.
pub(crate) fn load_quietly(args: &RuleArgs) -> Result<Config, Failure> {
    let Sources { own, project, ignored } = sources::find(args.config.as_deref());
    let layers: Vec<&Layer> = own.iter().chain(&project).collect();
    let base = Defaults { profile: "default", mode: Mode::default(), checked: true };
    let mut config = assemble(&layers, Given { args, profile: true, environment: true }, base)?;
    config.notices.extend(ignored);
    Ok(config)
}

/// Reads the configuration for an agent's hook. The default mode is nudge. A hook starts too often to check for
/// unknown keys (`deloop doctor` does that), and it falls back on what works.
pub(crate) fn load_for_hook(args: &RuleArgs) -> Config {
    guarding(args, HOOK, false)
}

/// Does the same as [`load_for_hook`] and saves a working file of the user as a fallback.
pub(crate) fn load_and_remember(args: &RuleArgs) -> Config {
    guarding(args, HOOK, true)
}

/// Does the same as [`load_for_hook`] and checks for unknown keys.
pub(crate) fn load_checked(args: &RuleArgs) -> Config {
    guarding(args, Defaults { checked: true, ..HOOK }, false)
}

/// Does the same as [`load_for_hook`], but with this default profile, enforcing.
pub(crate) fn load_over(args: &RuleArgs, profile: &str) -> Config {
    guarding(args, Defaults { profile, mode: Mode::default(), checked: true }, true)
}

/// The settings without a project's configuration, and with it.
pub(crate) struct Preview {
    pub(crate) before: Value,
    pub(crate) after: Value,
    /// The settings of the project that don't apply.
    pub(crate) kept: Vec<KeptSetting>,
}

/// Checks whether the configuration in this file works together with the user's own, and returns what it changes.
pub(crate) fn preview(project: &Layer) -> Result<Preview, Failure> {
    let own = sources::find(None).own;
    let args = RuleArgs::default();
    let given = Given { args: &args, profile: false, environment: false };
    let base = Defaults { checked: true, ..HOOK };
    let both: Vec<&Layer> = own.iter().chain([project]).collect();
    let after = assemble(&both, given, base)?;
    let alone: Vec<&Layer> = own.iter().collect();
    // A broken configuration of the user's own isn't a reason against the project's.
    let before = assemble(&alone, given, base).or_else(|_| assemble(&[], given, base))?;
    Ok(Preview { before: before.document, after: after.document, kept: after.kept })
}

/// Tries the whole configuration, then less and less of it until something works. The built-in default always does.
fn guarding(args: &RuleArgs, base: Defaults<'_>, remember: bool) -> Config {
    let Sources { own, project, ignored } = sources::find(args.config.as_deref());
    let all = Given { args, profile: true, environment: true };
    let layers: Vec<&Layer> = own.iter().chain(&project).collect();
    let mut config = match assemble(&layers, all, base) {
        Ok(config) => {
            if let Some(own) = own.as_ref().filter(|_| remember) {
                last_good::remember(own);
            }
            config
        }
        Err(failure) => fallback(own.as_ref(), all, base, &failure),
    };
    config.notices.extend(ignored);
    config
}

/// Returns the name of what applies while the configuration doesn't work.
fn fallback(own: Option<&Layer>, all: Given<'_>, base: Defaults<'_>, failure: &Failure) -> Config {
    let last = own.and_then(last_good::recall);
    let yours = own.map(|own| (vec![own], "your own configuration"));
    let earlier = last.as_ref().map(|last| (vec![last], "your last working configuration"));
    let built_in = Some((Vec::new(), "the built-in configuration"));
    let without_profile = Given { profile: false, ..all };
    let without_any = Given { environment: false, ..without_profile };
    for given in [all, without_profile, without_any] {
        for (layers, name) in [&yours, &earlier, &built_in].into_iter().flatten() {
            let Ok(mut config) = assemble(layers, given, base) else { continue };
            let why = match failure {
                Failure::Message(why) => deloop_detect::clean(why, 500),
                Failure::ClosedPipe => "it cannot be read".to_owned(),
            };
            let why = why.trim_end_matches('.');
            config.notices.push(ConfigNotice::Broken(format!(
                "the configuration has an error: {why}. Until you fix it, {name} applies"
            )));
            return config;
        }
    }
    unreachable!("the profiles that come with deloop load; a test reads each of them")
}

/// Merges the layers over the profile that they name. An error names the file.
fn assemble(layers: &[&Layer], given: Given<'_>, base: Defaults<'_>) -> Result<Config, Failure> {
    assemble_any(layers, given, base).map_err(|failure| {
        let works = |layers: &[&Layer]| assemble_any(layers, given, base).is_ok();
        blame::name_file(layers, given.args.profile.as_deref(), failure, &works)
    })
}

fn assemble_any(layers: &[&Layer], given: Given<'_>, base: Defaults<'_>) -> Result<Config, Failure> {
    let Merged { mut document, kept, project } = merged::merge_layers(layers, given, base)?;
    let environment = if given.environment {
        AgentBlock::from_env(|variable| std::env::var(variable).ok())?
    } else {
        AgentBlock::default()
    };
    merge_settings(&mut document, Value::Object(serde_json::Map::new()), environment)?;
    // A bad value is an error even if the command line overrides it: otherwise it would cause a surprise elsewhere.
    let mode = field::<Mode>(&document, "mode")?.unwrap_or(base.mode);
    let mode = given.args.mode.map_or(mode, Mode::from);
    let attended = given.args.attended || field::<bool>(&document, "attended")?.unwrap_or(false);
    let memory = field::<MemoryBlock>(&document, "memory")?.and_then(|m| m.folder);
    let memory = memory
        .map(|folder| notes_folder(Path::new(&folder), project.naming("/memory/folder")))
        .transpose()?;
    let events = field::<EventsBlock>(&document, "events")?.and_then(|events| events.file);
    let events =
        events.map(|file| events_file(Path::new(&file), project.naming("/events/file"))).transpose()?;
    let embeddings = field::<EmbeddingsBlock>(&document, "embeddings")?.unwrap_or_default();
    let server = field::<ServerBlock>(&document, "server")?.unwrap_or_default();
    let run = field::<RunBlock>(&document, "run")?.unwrap_or_default();
    let swarm = swarm::of(&document, project.naming("/swarm/name"), given.environment)?;
    let fail = field::<Fail>(&document, "fail")?.unwrap_or_default();
    let profile = Profile::configured(document.clone(), base.checked)?;
    Ok(Config {
        profile,
        options: Options::new(mode, attended),
        memory,
        embeddings,
        server,
        run,
        events,
        swarm,
        off: is_off(),
        fail,
        notices: Vec::new(),
        kept,
        files: layers.iter().map(|layer| layer.path.clone()).collect(),
        document,
    })
}

/// The ending of a file for events that a project names.
const EVENTS_ENDING: &str = ".jsonl";

/// Returns the folder and the name of the file for events.
fn events_file(file: &Path, from: Option<&Layer>) -> Result<(NotesFolder, String), Failure> {
    let name = file.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let name = name.ok_or_else(|| Failure::new("`events.file` must name a file"))?;
    // Lines appended to a script, such as a Git hook, would be run.
    if from.is_some_and(Layer::is_of_project) && !name.ends_with(EVENTS_ENDING) {
        let why = "the `events.file` of a project's configuration must end in";
        return Err(Failure::new(format!("{why} `{EVENTS_ENDING}`: rename it")));
    }
    Ok((notes_folder(file.parent().unwrap_or(Path::new("")), from)?, name))
}

/// Returns the folder for notes. A project's configuration can only name a folder inside the project.
fn notes_folder(folder: &Path, from: Option<&Layer>) -> Result<NotesFolder, Failure> {
    match from.map(|layer| &layer.reach) {
        Some(Reach::Inside { root, .. }) => {
            let leads_out = folder
                .components()
                .any(|part| !matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
            if leads_out {
                let why = "a project's configuration can only name a folder inside the project";
                return Err(Failure::new(format!("{}: {why}", folder.display())));
            }
            Ok(NotesFolder::inside(root, folder))
        }
        _ => Ok(NotesFolder::chosen(folder)),
    }
}

/// Returns whether the environment contains `DELOOP=off`.
pub(crate) fn is_off() -> bool {
    std::env::var("DELOOP").is_ok_and(|v| v.eq_ignore_ascii_case("off"))
}

fn field<T: serde::de::DeserializeOwned>(document: &Value, key: &str) -> Result<Option<T>, Failure> {
    Ok(setting(document, key)?)
}
