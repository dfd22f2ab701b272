//! The result of an evaluation, for people.

use std::io::Write;

use crate::eval::ablation::AblationRow;
use crate::eval::alarm::Alarm;
use crate::eval::judge::EvalSession;
use crate::eval::report::{EvalReport, FigureRow, Listed, ProfileReport};
use crate::exit::Failure;
use crate::redaction::harmless;

/// How much of a name is shown.
const NAME: usize = 26;

/// Prints all of it; with `verbose`, every fire of what is listed.
pub(crate) fn print(report: &EvalReport, verbose: bool, out: &mut dyn Write) -> Result<(), Failure> {
    for (index, profile) in report.profiles.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        figures(profile, out)?;
        if !profile.ablation.is_empty() {
            ablation(profile, out)?;
        }
        lists(profile, verbose, out)?;
    }
    Ok(())
}

fn figures(profile: &ProfileReport, out: &mut dyn Write) -> Result<(), Failure> {
    let several = profile.sets.len() > 1;
    let rows = || profile.sets.iter().chain(several.then_some(&profile.all));
    rates_head(&profile.profile, out)?;
    for row in rows() {
        rates(row, out)?;
    }
    score_head("labelled sessions", out)?;
    for row in rows() {
        score(row, out)?;
    }
    for (title, rows) in &profile.by {
        writeln!(out)?;
        rates_head(&format!("by {title}"), out)?;
        for row in rows {
            rates(row, out)?;
        }
    }
    if !profile.kinds.is_empty() {
        writeln!(out, "\n{:<NAME$} {:>11}", "by kind of loop", "loops found")?;
        for kind in &profile.kinds {
            writeln!(out, "{:<NAME$} {:>11}", name(&kind.kind), of(kind.found, kind.episodes))?;
        }
    }
    Ok(())
}

fn rates_head(title: &str, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "{:<NAME$} {:>8} {:>7} {:>11} {:>5} {:>10} {:>5} {:>22} {:>9} {:>10} {:>10} {:>18} {:>5}",
        title,
        "sessions",
        "calls",
        "loops found",
        "right",
        "borderline",
        "false",
        "per 1,000 calls (95 %)",
        "precision",
        "hard right",
        "hard false",
        "healthy alarmed",
        "delay"
    )?;
    Ok(())
}

fn rates(row: &FigureRow, out: &mut dyn Write) -> Result<(), Failure> {
    let r = &row.rates;
    let rate = format!(
        "{:.2} ({:.2} to {:.2})",
        r.false_per_1000_calls, r.false_per_1000_low, r.false_per_1000_high
    );
    writeln!(
        out,
        "{:<NAME$} {:>8} {:>7} {:>11} {:>5} {:>10} {:>5} {:>22} {:>9} {:>10} {:>10} {:>18} {:>5}",
        name(&row.name),
        r.sessions,
        r.calls,
        of(r.episodes_found, r.episodes),
        r.alarms_right,
        r.alarms_borderline,
        r.alarms_false,
        rate,
        r.alarm_precision.map_or_else(|| "-".to_owned(), |p| format!("{p:.2}")),
        r.hard_right,
        r.hard_false,
        format!("{} ({:.0} %)", of(r.healthy_alarmed, r.healthy), 100.0 * r.healthy_alarmed_share),
        r.median_delay.map_or_else(|| "-".to_owned(), |d| d.to_string())
    )?;
    Ok(())
}

fn score_head(title: &str, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "\n{:<NAME$} {:>10} {:>9} {:>6} {:>5}  {:<12} {:>12} {:>10}",
        title, "with loops", "precision", "recall", "F1", "95 %", "false alarms", "false hard"
    )?;
    Ok(())
}

fn score(row: &FigureRow, out: &mut dyn Write) -> Result<(), Failure> {
    let s = &row.score;
    writeln!(
        out,
        "{:<NAME$} {:>10} {:>9.3} {:>6.3} {:>5.3}  {:.2} to {:.2} {:>12} {:>10}",
        name(&row.name),
        of(s.positives, s.sessions),
        s.precision,
        s.recall,
        s.f1,
        s.f1_low,
        s.f1_high,
        s.false_alarms,
        s.false_hard
    )?;
    Ok(())
}

fn ablation(profile: &ProfileReport, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "\neffect of turning off one part at a time:")?;
    write!(out, "{:<NAME$}", "")?;
    for set in &profile.sets {
        write!(out, " | {:<20}", name(&set.name).chars().take(20).collect::<String>())?;
    }
    write!(out, "\n{:<NAME$}", "without")?;
    for _ in &profile.sets {
        write!(out, " | {:>5} {:>6} {:>7}", "found", "false", "F1")?;
    }
    write!(out, "\n{:<NAME$}", "nothing")?;
    for FigureRow { rates, score, .. } in &profile.sets {
        write!(out, " | {:>5} {:>6} {:>7.3}", rates.episodes_found, rates.alarms_false, score.f1)?;
    }
    for AblationRow { without, sets } in &profile.ablation {
        write!(out, "\n{:<NAME$}", name(without))?;
        for change in sets {
            let f1 = if change.f1.abs() < 0.0005 { "0".to_owned() } else { format!("{:+.3}", change.f1) };
            write!(
                out,
                " | {:>5} {:>6} {f1:>7}",
                signed(change.episodes_found),
                signed(change.false_alarms)
            )?;
        }
    }
    writeln!(out)?;
    Ok(())
}

fn lists(profile: &ProfileReport, verbose: bool, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "\nmissed loops: {}", profile.missed.len())?;
    for missed in &profile.missed {
        let episode = &missed.episode;
        let (onset, last) = (turn(episode.onset_turn), turn(episode.last_turn));
        writeln!(
            out,
            "  {} turns {onset} to {last} [{}] {}",
            place(&missed.about),
            harmless(&episode.kind),
            harmless(&episode.why)
        )?;
        if verbose {
            for alarm in &missed.alarms {
                fires(alarm, out)?;
            }
        }
    }
    list("false alarms on labelled sessions", &profile.false_alarms, verbose, out)?;
    list("alarms on sessions without a label", &profile.unlabelled_alarms, verbose, out)
}

fn list(title: &str, alarms: &[Listed], verbose: bool, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "\n{title}: {}", alarms.len())?;
    for Listed { about, why, alarm } in alarms {
        let why = if why.is_empty() { String::new() } else { format!(" [label: {}]", harmless(why)) };
        writeln!(
            out,
            "  {} turns {} to {}, {} by {}: {}{why}",
            place(about),
            alarm.first_turn,
            alarm.last_turn,
            alarm.action,
            alarm.detector,
            harmless(&alarm.summary)
        )?;
        if verbose {
            fires(alarm, out)?;
        }
    }
    Ok(())
}

fn fires(alarm: &Alarm, out: &mut dyn Write) -> Result<(), Failure> {
    for fire in &alarm.fires {
        let summary = harmless(&fire.summary);
        writeln!(out, "      turn {}, {} by {}: {summary}", fire.turn, fire.action, fire.detector)?;
    }
    Ok(())
}

fn place(about: &EvalSession) -> String {
    let id = about.id.as_deref().map(|id| format!(" {id}")).unwrap_or_default();
    harmless(&format!("{}: {}{id}", about.set, about.path))
}

fn turn(turn: Option<u64>) -> String {
    turn.map_or_else(|| "?".to_owned(), |t| t.to_string())
}

fn name(text: &str) -> String {
    let text = if text.is_empty() { "-" } else { text };
    harmless(text).chars().take(NAME).collect()
}

fn of(part: u64, whole: u64) -> String {
    format!("{part} of {whole}")
}

fn signed(number: i64) -> String {
    if number == 0 { "0".to_owned() } else { format!("{number:+}") }
}
