//! `deloop eval`: measures what profiles find in labelled sessions, and how often they disturb honest work.
//!
//! Find the files of each set, replay each file once with all variants of the rules, judge the actions by the labels, add
//! up, print.

mod ablation;
mod alarm;
mod judge;
mod label;
mod poisson;
mod print;
mod rates;
mod report;
mod score;
mod set;

use std::io::Write;
use std::sync::Arc;

use deloop_engine::{Engine, Options};

use crate::args::{EvalArgs, RuleArgs};
use crate::config;
use crate::embedding;
use crate::exit::{self, Failure};
use crate::replay::{ReplayScope, ReplayedFile, replay_all};
use crate::sessions::{Problem, SessionInput, print_problems};
use ablation::ablations;
use alarm::Fire;
use judge::{EvalSession, Judged};
use label::SessionLabels;
use report::{EvalReport, ProfileReport};
use set::{Set, SetFile, sets};

/// A profile and its ablations, as a range of the engines.
struct Variants {
    profile: String,
    /// The index of the whole profile's engine; the ablations follow it.
    first: usize,
    ablations: Vec<String>,
}

/// `deloop eval`
pub(crate) fn run(args: &EvalArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let (variants, engines) = variants(args)?;
    let mut sets = sets(args)?;
    let mut problems: Vec<Problem> = sets.iter_mut().flat_map(|s| std::mem::take(&mut s.problems)).collect();
    let mut judged = Sessions::judge(&sets, &engines, args.labelled_only);
    problems.append(&mut judged.problems);
    let names: Vec<String> = sets.into_iter().map(|s| s.name).collect();
    let profiles = variants.iter().map(|variants| {
        let whole = &judged.by_engine[variants.first];
        let rows = variants.ablations.iter().zip(&judged.by_engine[variants.first + 1..]);
        let ablation =
            rows.map(|(without, variant)| ablation::row(without, &names, whole, variant)).collect();
        ProfileReport::new(&variants.profile, &names, whole, ablation)
    });
    let report = EvalReport { profiles: profiles.collect(), problems };
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        print::print(&report, args.verbose, out)?;
    }
    out.flush()?;
    print_problems(&report.problems);
    Ok(if judged.missing { exit::COULD_NOT_RUN } else { exit::OK })
}

/// The profiles that were named, each followed by its ablations, and an engine for each of them. Recorded runs are
/// over, so all is done that a profile asks for, and nobody is there to be asked.
fn variants(args: &EvalArgs) -> Result<(Vec<Variants>, Vec<Engine>), Failure> {
    let default = ["default".to_owned()];
    let profiles = if args.profiles.is_empty() { &default[..] } else { &args.profiles };
    let (mut variants, mut engines) = (Vec::new(), Vec::new());
    for profile in profiles {
        let rules = RuleArgs { profile: Some(profile.clone()), ..RuleArgs::default() };
        // What is ignored is said once.
        let config = if variants.is_empty() { config::load(&rules)? } else { config::load_quietly(&rules)? };
        let ablations = if args.ablate { ablations(&config.profile) } else { Vec::new() };
        let first = engines.len();
        let without = ablations.iter().map(|a| a.engine(&config)).collect::<Result<Vec<_>, _>>()?;
        let engine = Engine::new(config.profile.clone(), Options::default());
        engines.push(embedding::offline(engine, &config)?);
        engines.extend(without);
        let ablations = ablations.into_iter().map(|a| a.name).collect();
        variants.push(Variants { profile: profile.clone(), first, ablations });
    }
    Ok((variants, engines))
}

/// All sessions, judged.
struct Sessions {
    by_engine: Vec<Vec<Judged>>,
    problems: Vec<Problem>,
    /// Something that has a label could not be read.
    missing: bool,
}

impl Sessions {
    /// Reads every file once and judges each of its sessions with each engine.
    fn judge(sets: &[Set], engines: &[Engine], labelled_only: bool) -> Self {
        let files: Vec<(&str, &SetFile)> =
            sets.iter().flat_map(|set| set.files.iter().map(|file| (set.name.as_str(), file))).collect();
        let inputs: Vec<SessionInput> = files.iter().map(|(_, file)| file.input.clone()).collect();
        let read = replay_all(&inputs, engines, &|index| match files[index].1.labels.whole() {
            true => ReplayScope::WholeFile,
            false => ReplayScope::Actions,
        });
        let by_engine = vec![Vec::new(); engines.len()];
        let mut all = Self { by_engine, problems: read.problems, missing: read.missing || read.nothing_read };
        for file in &read.files {
            let (set, labelled) = files[file.input];
            all.file(set, labelled, file, labelled_only);
        }
        all
    }

    fn lost(&mut self, file: &SetFile, problem: impl Into<String>) {
        self.missing = true;
        self.problems.push(Problem::lost(file.input.path(), problem));
    }

    fn file(&mut self, set: &str, file: &SetFile, read: &ReplayedFile, labelled_only: bool) {
        let labels = &file.labels;
        if labels.whole() && read.sessions.is_empty() {
            self.lost(file, "has a label but contains no session");
        }
        for id in labels.sessions.iter().filter_map(|s| s.id.as_deref()) {
            if !read.sessions.iter().any(|r| r.session == id) {
                self.lost(file, format!("has a label for session `{id}`, which the file doesn't contain"));
            }
        }
        let unlabelled = SessionLabels::default();
        let several = read.sessions.len() > 1;
        for one in &read.sessions {
            let is_it = |id: &Option<String>| id.as_ref().is_none_or(|id| *id == one.session);
            let known = labels.sessions.iter().find(|s| is_it(&s.id));
            if known.is_none() && (labelled_only || labels.ignored.iter().any(is_it)) {
                continue;
            }
            let id = (several || known.is_some_and(|k| k.id.is_some())).then(|| one.session.clone());
            let mut about = EvalSession::new(set, &file.path, id, read, one);
            about.labelled = known.is_some();
            let about = Arc::new(about);
            for (verdict, judged) in one.verdicts.iter().zip(&mut self.by_engine) {
                let fires: Vec<Fire> = verdict.actions.iter().map(Fire::new).collect();
                judged.push(Judged::new(&about, known.unwrap_or(&unlabelled), &fires));
            }
        }
    }
}
