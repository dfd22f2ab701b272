//! What each part of a profile is worth: the same sessions with one part switched off at a time.

use deloop_engine::{Engine, Options};
use deloop_policy::Profile;
use serde::Serialize;

use crate::config::Config;
use crate::eval::judge::Judged;
use crate::eval::rates::Rates;
use crate::eval::score::Score;
use crate::exit::Failure;

/// Detector parameters that switch a rule off when they are 0: the detector and the parameter.
const SWITCHES: &[(&str, &str)] = &[
    ("repeated-failure", "at"),
    ("repeated-failure", "edits"),
    ("repeated-failure", "despite"),
    ("no-progress", "at"),
    ("no-progress", "window"),
    ("no-progress", "unseen"),
    ("repeated-error", "at"),
    ("repeated-error", "bare"),
    ("repeated-error", "exact"),
];

/// One part of a profile that can be switched off.
pub(crate) struct Ablation {
    /// What is switched off.
    pub(crate) name: String,
    /// TOML that switches it off, laid over the configuration.
    pub(crate) overlay: String,
}

impl Ablation {
    fn new(name: impl Into<String>, overlay: impl Into<String>) -> Self {
        Self { name: name.into(), overlay: overlay.into() }
    }

    /// The engine of a configuration without this part.
    ///
    /// # Errors
    /// When the overlay does not fit the configuration.
    pub(crate) fn engine(&self, config: &Config) -> Result<Engine, Failure> {
        let engine = Engine::new(config.profile_with(&self.overlay)?, Options::default());
        crate::embedding::offline(engine, config)
    }
}

/// Lists everything of a profile that can be switched off: each detector, each of [`SWITCHES`], each list of the
/// vocabulary. A new kind of rule is one more line here.
pub(crate) fn ablations(profile: &Profile) -> Vec<Ablation> {
    let order: Vec<&str> = profile.watches.iter().map(|w| w.detector.name()).collect();
    let without = |name: &str| {
        let rest: Vec<&str> = order.iter().copied().filter(|n| *n != name).collect();
        format!("order = {rest:?}")
    };
    let mut all: Vec<Ablation> = order.iter().map(|name| Ablation::new(*name, without(name))).collect();
    let used = SWITCHES.iter().filter(|(detector, _)| order.contains(detector));
    all.extend(used.map(|(detector, parameter)| {
        Ablation::new(format!("{detector}.{parameter}"), format!("detectors.{detector}.{parameter} = 0"))
    }));
    let lists = profile.tools.vocabulary().lists().names().map(str::to_owned).collect::<Vec<_>>();
    all.extend(lists.iter().map(|list| {
        Ablation::new(format!("vocabulary: {list}"), format!("vocabulary.without = [{list:?}]"))
    }));
    all
}

/// What switching off one part changes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AblationRow {
    /// What is switched off.
    pub(crate) without: String,
    /// By set, in the order in which they were named.
    pub(crate) sets: Vec<Change>,
}

/// What changes in one set.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Change {
    pub(crate) set: String,
    pub(crate) episodes_found: i64,
    pub(crate) false_alarms: i64,
    pub(crate) f1: f64,
}

/// Compares a variant with the whole profile, set by set.
pub(crate) fn row(without: &str, sets: &[String], whole: &[Judged], variant: &[Judged]) -> AblationRow {
    let of = |all: &[Judged], set: &str| {
        let some: Vec<&Judged> = all.iter().filter(|j| j.about.set == set).collect();
        (Rates::of(&some), Score::of(&some).f1)
    };
    let change = |set: &String| {
        let ((before, f1_before), (after, f1_after)) = (of(whole, set), of(variant, set));
        let difference = |after: u64, before: u64| after.cast_signed() - before.cast_signed();
        Change {
            set: set.clone(),
            episodes_found: difference(after.episodes_found, before.episodes_found),
            false_alarms: difference(after.alarms_false, before.alarms_false),
            f1: f1_after - f1_before,
        }
    };
    AblationRow { without: without.to_owned(), sets: sets.iter().map(change).collect() }
}
