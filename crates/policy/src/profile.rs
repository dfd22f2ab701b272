use std::collections::BTreeMap;
use std::sync::Arc;

use deloop_detect::{AnyDetector, DETECTORS, Lists, ToolRule, Tools, Tuned, Vocabulary};
use deloop_types::Decision;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CeilingsBlock, DocumentError, Ladder, config_schema, template, unknown_key};

/// Why a document isn't a valid profile. The message names the fix.
pub type ProfileError = DocumentError;

/// The detector that watches the ceilings of a session.
pub(crate) const LIMITED: &str = "over-budget";

/// The built-in profiles: name and TOML text.
pub static PROFILES: &[(&str, &str)] = &[
    ("default", include_str!("../profiles/default.toml")),
    ("behavioral", include_str!("../profiles/behavioral.toml")),
    ("signature", include_str!("../profiles/signature.toml")),
    ("doom-loop", include_str!("../profiles/doom-loop.toml")),
    ("turn-similarity", include_str!("../profiles/turn-similarity.toml")),
    ("turn-hash", include_str!("../profiles/turn-hash.toml")),
];

/// When a finding moves up a ladder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Rules {
    /// The decision depends only on the finding's count: a rung is reported at every step that reaches it.
    Counter,
    /// Once per episode and rung, one rung at a time, and only after the agent has had a turn since the last message.
    #[default]
    Episodes,
}

/// What a stop ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StopEnds {
    /// The session: every later step gets the same stop, until `end` or a reset.
    Session,
    /// The run: later steps get the same stop until a person writes a message.
    #[default]
    Run,
    /// The task: the next step is judged independently.
    Task,
}

/// The detectors that watch a session, their parameters, and the actions to take on their findings.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The profile's name.
    pub name: String,
    /// A one-sentence description.
    pub about: String,
    /// When a finding moves up a ladder.
    pub rules: Rules,
    /// What a stop ends.
    pub stop_ends: StopEnds,
    /// Whether warnings and stops are reported to the agent that started the session.
    pub tell_controller: bool,
    /// The detectors. When two lead to equally strong actions, the first one wins.
    pub watches: Vec<Watch>,
    /// Tool kinds and word lists.
    pub tools: Tools,
    /// How much one session, and one project per day, may use.
    pub ceilings: CeilingsBlock,
    /// The share of episodes in which deloop stays silent and only records, 0 to 1.
    pub holdout: f64,
}

/// One detector of a profile.
#[derive(Clone)]
pub struct Watch {
    /// The detector and its parameters.
    pub detector: Arc<dyn Tuned>,
    /// The parameters, for messages.
    pub params: Value,
    /// The actions to take on its findings.
    pub ladder: Ladder,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("detector", &self.detector.name())
            .field("params", &self.params)
            .field("ladder", &self.ladder)
            .finish()
    }
}

/// The detectors that a profile can name: the built-in ones and those of the program that uses deloop.
#[derive(Clone)]
pub struct Registry(Vec<&'static dyn AnyDetector>);

impl Default for Registry {
    fn default() -> Self {
        Self(DETECTORS.to_vec())
    }
}

impl Registry {
    /// Adds a detector. It replaces a built-in detector of the same name.
    #[must_use]
    pub fn with(mut self, detector: &'static dyn AnyDetector) -> Self {
        self.0.retain(|d| d.name() != detector.name());
        self.0.push(detector);
        self
    }

    /// Returns the detector of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'static dyn AnyDetector> {
        self.0.iter().copied().find(|d| d.name() == name)
    }

    /// Returns all detectors.
    pub fn iter(&self) -> impl Iterator<Item = &'static dyn AnyDetector> + '_ {
        self.0.iter().copied()
    }
}

#[derive(Deserialize)]
struct ProfileDocument {
    #[serde(default)]
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    rules: Rules,
    #[serde(default)]
    stop_ends: StopEnds,
    #[serde(default)]
    tell_controller: bool,
    #[serde(default)]
    order: Vec<String>,
    #[serde(default)]
    detectors: BTreeMap<String, serde_json::Map<String, Value>>,
    #[serde(default)]
    ladders: BTreeMap<String, Ladder>,
    #[serde(default)]
    tools: BTreeMap<String, ToolRule>,
    #[serde(default)]
    vocabulary: Option<Lists>,
    #[serde(default)]
    ceilings: Option<CeilingsBlock>,
    #[serde(default)]
    holdout: Option<f64>,
}

/// Returns the TOML text of a built-in profile.
///
/// # Errors
/// When there is no profile of this name. The message lists the known ones.
pub fn profile_text(name: &str) -> Result<&'static str, ProfileError> {
    PROFILES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = PROFILES.iter().map(|(n, _)| *n).collect();
        DocumentError(format!("unknown profile `{name}`; known profiles: {}", names.join(", ")))
    })
}

impl Profile {
    /// Returns a built-in profile.
    ///
    /// # Errors
    /// When there is no profile of this name.
    ///
    /// ```
    /// let profile = deloop_policy::Profile::named("doom-loop")?;
    /// assert_eq!(profile.watches[0].detector.name(), "repeated-call");
    /// # Ok::<(), deloop_policy::ProfileError>(())
    /// ```
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        Self::from_toml(profile_text(name)?, &Registry::default())
    }

    /// Returns whether a detector compares turns by their embeddings.
    #[must_use]
    pub fn compares_embeddings(&self) -> bool {
        self.watches.iter().any(|watch| watch.params["by"] == "embeddings")
    }

    /// Returns whether events go out at every step with the finding that this decision is about.
    #[must_use]
    pub fn sends_every_event(&self, decision: &Decision) -> bool {
        let finding = decision.main_finding();
        let about = |watch: &&Watch| finding.is_some_and(|f| f.detector == watch.detector.name());
        self.watches.iter().find(about).is_some_and(|watch| watch.ladder.every_event)
    }

    /// Parses a profile from TOML, with the detectors of `registry`.
    ///
    /// # Errors
    /// When the text isn't TOML, or names a key, detector, ladder or placeholder that doesn't exist.
    pub fn from_toml(text: &str, registry: &Registry) -> Result<Self, ProfileError> {
        let document: Value = toml::from_str(text).map_err(|e| DocumentError(e.to_string()))?;
        Self::from_document(document, registry)
    }

    /// Reads a profile from a document that may also contain configuration.
    ///
    /// # Errors
    /// As [`Profile::from_toml`].
    pub fn from_document(document: Value, registry: &Registry) -> Result<Self, ProfileError> {
        if let Some(error) = unknown_key(&document, &config_schema(registry)) {
            return Err(error);
        }
        Self::from_document_unchecked(document, registry)
    }

    /// Does the same as [`Profile::from_document`], but ignores unknown keys. Use it in programs that start often:
    /// building the schema is most of the work.
    ///
    /// # Errors
    /// When it names a detector, ladder or placeholder that doesn't exist, or a value has the wrong type.
    pub fn from_document_unchecked(document: Value, registry: &Registry) -> Result<Self, ProfileError> {
        let ProfileDocument {
            name,
            about,
            rules,
            stop_ends,
            tell_controller,
            order,
            detectors,
            mut ladders,
            tools,
            vocabulary,
            ceilings,
            holdout,
        } = serde_json::from_value(document).map_err(|e| DocumentError(e.to_string()))?;
        for (name, ladder) in &mut ladders {
            ladder.fill_counts();
            check_ladder(name, ladder)?;
        }
        let (ceilings, holdout) = (ceilings.unwrap_or_default(), holdout.unwrap_or(0.0));
        ceilings.check()?;
        if !(0.0..=1.0).contains(&holdout) {
            return Err(DocumentError("`holdout` is a share of episodes, from 0 to 1".to_owned()));
        }
        let mut watches = Vec::with_capacity(order.len());
        for (at, name) in order.iter().enumerate() {
            if order[..at].contains(name) {
                return Err(DocumentError(format!("`order` names `{name}` twice; remove one of them")));
            }
            let Some(detector) = registry.get(name) else {
                let names: Vec<&str> = registry.iter().map(AnyDetector::name).collect();
                return Err(DocumentError(format!(
                    "`order` names the unknown detector `{name}`; known detectors: {}",
                    names.join(", ")
                )));
            };
            let mut params = detectors.get(name).cloned().unwrap_or_default();
            if name == LIMITED {
                ceilings.apply(&mut params);
            }
            let ladder = match params.remove("ladder") {
                None => Ladder::default(),
                Some(Value::String(ladder)) => ladders.get(&ladder).cloned().ok_or_else(|| {
                    let names: Vec<&str> = ladders.keys().map(String::as_str).collect();
                    DocumentError(format!(
                        "`detectors.{name}.ladder` names the unknown ladder `{ladder}`; known ladders: {}",
                        names.join(", ")
                    ))
                })?,
                Some(_) => {
                    return Err(DocumentError(format!(
                        "`detectors.{name}.ladder` must be the name of a ladder"
                    )));
                }
            };
            let mut full = detector.defaults();
            crate::merge(&mut full, Value::Object(params));
            let tuned =
                detector.tune(full.clone()).map_err(|e| DocumentError(format!("`detectors.{name}`: {e}")))?;
            watches.push(Watch { detector: tuned.into(), params: full, ladder });
        }
        let tools = Tools::new(tools);
        let tools = match vocabulary {
            Some(lists) => tools.speaking(Arc::new(Vocabulary::new(&lists))),
            None => tools,
        };
        Ok(Self { name, about, rules, stop_ends, tell_controller, watches, tools, ceilings, holdout })
    }
}

fn check_ladder(name: &str, ladder: &Ladder) -> Result<(), ProfileError> {
    if !ladder.rungs.is_sorted_by_key(|rung| rung.at) {
        return Err(DocumentError(format!("the rungs of `ladders.{name}` must be sorted by `at`")));
    }
    for rung in &ladder.rungs {
        if !rung.message.contains(&rung.consequence) {
            return Err(DocumentError(format!(
                "a rung in `ladders.{name}` has a `consequence` that isn't in its `message`: {}",
                rung.consequence
            )));
        }
        for message in std::iter::once(&rung.message).chain(rung.variants.values()) {
            if let Some(unknown) = template::unknown_placeholder(message) {
                return Err(DocumentError(format!(
                    "a message in `ladders.{name}` has the unknown placeholder `{{{unknown}}}`; known placeholders: {}",
                    template::PLACEHOLDERS.map(|p| format!("{{{p}}}")).join(", ")
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_loads_under_its_name() {
        for (name, _) in PROFILES {
            assert_eq!(Profile::named(name).unwrap().name, *name);
        }
    }

    #[test]
    fn errors_name_the_fix() {
        let error = |text: &str| {
            Profile::from_toml(text, &Registry::default()).err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert_eq!(
            error("[detectors.similar-call]\nsimilarty = 0.5"),
            "unknown key `detectors.similar-call.similarty`; did you mean `similarity`?"
        );
        assert_eq!(error("oder = []"), "unknown key `oder`; did you mean `order`?");
        let typo = error("[[ladders.a.rungs]]\nat = 1\nmesage = \"x\"");
        assert!(typo.contains("mesage") && typo.contains("`message`"), "{typo}");
        assert!(error("order = [\"similar-cal\"]").contains("unknown detector"));
        assert_eq!(
            error("order = [\"talk-only\", \"talk-only\"]"),
            "`order` names `talk-only` twice; remove one of them"
        );
        assert!(error("[detectors.simlar-call]\nat = 3").contains("did you mean `similar-call`"));
        assert!(
            error("order = [\"talk-only\"]\n[detectors.talk-only]\nladder = \"x\"")
                .contains("unknown ladder")
        );
        assert!(error("[[ladders.a.rungs]]\nmessage = \"{cuont}\"").contains("{count}"));
        assert!(
            error("order = [\"talk-only\"]\n[detectors.talk-only]\nat = \"x\"")
                .contains("detectors.talk-only")
        );
        assert!(
            error("[[ladders.a.rungs]]\nmessage = \"x\"\nconsequence = \"y\"")
                .contains("isn't in its `message`: y")
        );
        assert!(error("[[ladders.a.rungs]]\nat = 2\n[[ladders.a.rungs]]\nat = 1").contains("sorted by `at`"));
        assert!(Profile::named("nope").err().unwrap().to_string().contains("turn-hash"));
    }
}
