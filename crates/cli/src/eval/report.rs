//! The result of an evaluation, as printed by `--json`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use crate::eval::ablation::AblationRow;
use crate::eval::alarm::Alarm;
use crate::eval::judge::{EvalSession, Judged, LabelledLoop};
use crate::eval::rates::Rates;
use crate::eval::score::Score;
use crate::sessions::Problem;

/// The whole result.
#[derive(Serialize)]
pub(crate) struct EvalReport {
    pub(crate) profiles: Vec<ProfileReport>,
    /// Files that couldn't be read, or not completely.
    pub(crate) problems: Vec<Problem>,
}

/// The results of one profile.
#[derive(Serialize)]
pub(crate) struct ProfileReport {
    pub(crate) profile: String,
    pub(crate) sets: Vec<FigureRow>,
    /// All sets combined.
    pub(crate) all: FigureRow,
    /// The same by agent, model and project, across all sets.
    pub(crate) by: BTreeMap<&'static str, Vec<FigureRow>>,
    pub(crate) kinds: Vec<KindCount>,
    pub(crate) missed: Vec<Missed>,
    /// False alarms on sessions with a label.
    pub(crate) false_alarms: Vec<Listed>,
    /// Alarms on sessions without a label: counted as false, although these sessions haven't been reviewed.
    pub(crate) unlabelled_alarms: Vec<Listed>,
    /// The effect of turning off one part at a time; only with `--ablate`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ablation: Vec<AblationRow>,
}

/// The figures of one group of sessions.
#[derive(Serialize)]
pub(crate) struct FigureRow {
    pub(crate) name: String,
    pub(crate) rates: Rates,
    pub(crate) score: Score,
}

/// The number of loops of one kind that were found.
#[derive(Serialize)]
pub(crate) struct KindCount {
    pub(crate) kind: String,
    pub(crate) episodes: u64,
    pub(crate) found: u64,
}

/// A missed loop.
#[derive(Serialize)]
pub(crate) struct Missed {
    #[serde(flatten)]
    pub(crate) about: Arc<EvalSession>,
    #[serde(flatten)]
    pub(crate) episode: LabelledLoop,
    /// All alarms of that session.
    pub(crate) alarms: Vec<Alarm>,
}

/// An alarm and its position.
#[derive(Serialize)]
pub(crate) struct Listed {
    #[serde(flatten)]
    pub(crate) about: Arc<EvalSession>,
    /// The reviewers' reasons for their label.
    pub(crate) why: String,
    #[serde(flatten)]
    pub(crate) alarm: Alarm,
}

type Key = fn(&Judged) -> &str;

const BREAKDOWNS: [(&str, Key); 3] =
    [("agent", |j| &j.about.agent), ("model", |j| &j.about.model), ("project", |j| &j.about.project)];

impl FigureRow {
    fn new(name: &str, judged: &[&Judged]) -> Self {
        Self { name: name.to_owned(), rates: Rates::of(judged), score: Score::of(judged) }
    }
}

impl ProfileReport {
    pub(crate) fn new(profile: &str, sets: &[String], judged: &[Judged], ablation: Vec<AblationRow>) -> Self {
        let all: Vec<&Judged> = judged.iter().collect();
        let part = |name: &str, key: Key| {
            let some: Vec<&Judged> = all.iter().copied().filter(|j| key(j) == name).collect();
            FigureRow::new(name, &some)
        };
        let by = BREAKDOWNS.map(|(title, key)| {
            let names: BTreeSet<&str> = all.iter().map(|j| key(j)).collect();
            (title, names.into_iter().map(|name| part(name, key)).collect())
        });
        let listed = |labelled: bool| {
            let some = judged.iter().filter(move |j| j.about.labelled == labelled);
            let listed = some.flat_map(|j| {
                j.false_alarms().map(|alarm| Listed {
                    about: Arc::clone(&j.about),
                    why: j.why.clone(),
                    alarm: alarm.clone(),
                })
            });
            listed.collect()
        };
        Self {
            profile: profile.to_owned(),
            sets: sets.iter().map(|set| part(set, |j| &j.about.set)).collect(),
            all: FigureRow::new("all", &all),
            by: BTreeMap::from(by),
            kinds: kinds(judged),
            missed: missed(judged),
            false_alarms: listed(true),
            unlabelled_alarms: listed(false),
            ablation,
        }
    }
}

fn kinds(judged: &[Judged]) -> Vec<KindCount> {
    let mut kinds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for episode in judged.iter().flat_map(|j| &j.episodes) {
        let (episodes, found) = kinds.entry(&episode.kind).or_default();
        *episodes += 1;
        *found += u64::from(episode.found);
    }
    let kind = |(kind, (episodes, found)): (&str, _)| KindCount { kind: kind.to_owned(), episodes, found };
    kinds.into_iter().map(kind).collect()
}

fn missed(judged: &[Judged]) -> Vec<Missed> {
    let of = |j: &Judged| -> Vec<Missed> {
        let episodes = j.episodes.iter().filter(|e| !e.found).cloned();
        episodes
            .map(|episode| Missed { about: Arc::clone(&j.about), episode, alarms: j.alarms.clone() })
            .collect()
    };
    judged.iter().flat_map(of).collect()
}
