//! `deloop eval`: how well profiles tell loops from honest work, on labelled sessions.

mod label;
pub(crate) mod replay;
mod score;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use deloop::Step;
use serde::Serialize;

use crate::args::{EvalArgs, RuleArgs};
use crate::config;
use crate::exit::{self, Failure};
use label::{Label, Verdict};
use score::{Judged, Score};

/// How one profile did.
#[derive(Serialize)]
struct Outcome {
    profile: String,
    score: Score,
    by: BTreeMap<String, BTreeMap<String, Score>>,
    leaving_out: BTreeMap<String, BTreeMap<String, Score>>,
    misses: Vec<Judged>,
    false_alarms: Vec<Judged>,
}

pub(crate) fn run(args: &EvalArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let labels = label::read(&args.labels)?;
    let abuse = |l: &Label| matches!(l.label, Verdict::ResourceAbuse | Verdict::NoResourceAbuse);
    let labels: Vec<Label> = labels.into_iter().filter(|l| abuse(l) == args.resource_abuse).collect();
    let sessions = load(&labels, &args.corpus)?;
    let profiles = if args.profiles.is_empty() { vec!["default".to_owned()] } else { args.profiles.clone() };
    let mut results = Vec::new();
    for profile in profiles {
        let rules = RuleArgs { profile: Some(profile.clone()), ..RuleArgs::default() };
        let mut judged = Vec::new();
        for (label, steps) in &sessions {
            let Some(positive) = label.label.positive() else { continue };
            let config = config::load(&rules)?;
            judged.push(Judged::new(label, positive, replay::replay(config.profile, steps)));
        }
        results.push(sum_up(profile, &judged));
    }
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &results)?;
        writeln!(out)?;
    } else {
        print(&results, args.verbose, out)?;
    }
    Ok(exit::OK)
}

fn load(labels: &[Label], corpus: &Path) -> Result<Vec<(Label, Vec<Step>)>, Failure> {
    let mut files: HashMap<&str, Vec<(String, Vec<Step>)>> = HashMap::new();
    let mut sessions = Vec::new();
    for label in labels {
        if !files.contains_key(label.path.as_str()) {
            files.insert(&label.path, replay::sessions(&corpus.join(&label.path))?);
        }
        let file = &files[label.path.as_str()];
        let steps = match &label.id {
            Some(id) => file.iter().find(|(name, _)| name == id).map(|(_, steps)| steps.clone()),
            None => Some(file.iter().flat_map(|(_, steps)| steps.clone()).collect()),
        };
        let steps = steps.ok_or_else(|| {
            Failure::new(format!(
                "{}: no session `{}` in it",
                label.path,
                label.id.as_deref().unwrap_or_default()
            ))
        })?;
        sessions.push((label.clone(), steps));
    }
    Ok(sessions)
}

type Key = fn(&Judged) -> &str;

fn sum_up(profile: String, judged: &[Judged]) -> Outcome {
    let keys: [(&str, Key); 3] = [("format", |j| &j.group), ("model", |j| &j.model), ("kind", |j| &j.kind)];
    let all: Vec<&Judged> = judged.iter().collect();
    let mut by = BTreeMap::new();
    let mut leaving_out = BTreeMap::new();
    for (name, key) in keys {
        let values: std::collections::BTreeSet<&str> = all.iter().map(|j| key(j)).collect();
        let part = |value: &str, inside: bool| {
            let some: Vec<&Judged> = all.iter().copied().filter(|j| (key(j) == value) == inside).collect();
            Score::of(&some)
        };
        by.insert(name.to_owned(), values.iter().map(|v| ((*v).to_owned(), part(v, true))).collect());
        if name != "kind" {
            leaving_out
                .insert(name.to_owned(), values.iter().map(|v| ((*v).to_owned(), part(v, false))).collect());
        }
    }
    let score = Score::of(&all);
    Outcome {
        profile,
        score,
        by,
        leaving_out,
        misses: judged.iter().filter(|j| j.positive && !j.hit).cloned().collect(),
        false_alarms: judged.iter().filter(|j| j.false_alarm).cloned().collect(),
    }
}

fn print(results: &[Outcome], verbose: bool, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "{:<22} {:>5} {:>9} {:>6} {:>5}  {:<11} {:>12} {:>10} {:>6} {:>9}",
        "profile",
        "loops",
        "precision",
        "recall",
        "F1",
        "95 %",
        "false alarms",
        "false hard",
        "delay",
        "per 1000"
    )?;
    for result in results {
        line(&result.profile, &result.score, out)?;
    }
    for result in results {
        for (title, groups) in [("", &result.by), ("without ", &result.leaving_out)] {
            for (key, scores) in groups {
                writeln!(out, "\n{}, {title}{key}:", result.profile)?;
                for (value, score) in scores {
                    line(&format!("  {title}{value}"), score, out)?;
                }
            }
        }
        list("missed", &result.misses, verbose, out)?;
        list("false alarms", &result.false_alarms, verbose, out)?;
    }
    Ok(())
}

fn line(name: &str, score: &Score, out: &mut dyn Write) -> Result<(), Failure> {
    let delay = score.median_delay.map_or_else(|| "-".to_owned(), |d| d.to_string());
    writeln!(
        out,
        "{:<22} {:>5} {:>9.3} {:>6.3} {:>5.3}  {:.2} to {:.2} {:>5} of {:>4} {:>10} {:>6} {:>9.2}",
        name.chars().take(22).collect::<String>(),
        score.positives,
        score.precision,
        score.recall,
        score.f1,
        score.f1_low,
        score.f1_high,
        score.healthy_alarms,
        score.healthy,
        score.false_hard,
        delay,
        score.fires_per_1000_calls
    )?;
    Ok(())
}

fn list(title: &str, judged: &[Judged], verbose: bool, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "\n{title}: {}", judged.len())?;
    for one in judged {
        let id = one.id.as_deref().map(|id| format!(" {id}")).unwrap_or_default();
        writeln!(out, "  {}{id} [{}] {}", one.path, one.kind, one.why)?;
        for fire in one.replay.fires.iter().take(if verbose { usize::MAX } else { 2 }) {
            writeln!(out, "      turn {} {} {}: {}", fire.turn, fire.action, fire.detector, fire.summary)?;
        }
    }
    Ok(())
}
