//! The audit log for people.

use std::io::Write;

use deloop_detect::clean;
use deloop_server::{AuditEvidence, AuditRecord, AuditedTurn, Verification};
use serde_json::Value;

use crate::exit::Failure;
use crate::live::words::time;
use crate::redaction::harmless;

/// Maximum length of what a record is about, in characters.
const ABOUT: usize = 120;
/// Maximum length of a name in the table, in characters.
const NAME: usize = 32;
/// Maximum length of arguments, in characters.
const TURN: usize = 5000;

/// Prints what a verification found.
pub(super) fn verification(
    found: &Verification,
    evidence: &AuditEvidence,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for problem in &found.problems {
        writeln!(out, "Problem: {problem}")?;
    }
    if found.more_problems > 0 {
        writeln!(out, "Problem: and {} more", found.more_problems)?;
    }
    for notice in &found.notices {
        writeln!(out, "Note: {notice}")?;
    }
    let verdict = if found.problems.is_empty() { "intact" } else { "NOT intact" };
    let purged = if found.purged > 0 { format!(", {} of them purged", found.purged) } else { String::new() };
    let first =
        found.first.filter(|first| *first > 1).map(|first| format!(" from {first}")).unwrap_or_default();
    let records = counted(found.records, "record");
    let files = counted(found.segments, "file");
    writeln!(out, "The audit log is {verdict}: {records}{first} in {files}{purged}.")?;
    if found.problems.is_empty() {
        writeln!(out, "{}", proof(found, evidence))?;
    }
    if let Some(server) = &found.server {
        writeln!(out, "Server: {}", clean(server, 64))?;
    }
    if let Some(head) = &found.head {
        writeln!(out, "Head: {head}")?;
    }
    Ok(())
}

/// Returns what an intact log proves: whoever can write its folder can do everything else.
fn proof(found: &Verification, evidence: &AuditEvidence) -> String {
    let mut proven = Vec::new();
    if !evidence.keys.is_empty() {
        proven.push(format!("{} by the key", counted(found.authentic, "record")));
    }
    proven.extend(
        evidence.noted.iter().map(|head| format!("all up to {} by the head that you noted", head.seq)),
    );
    let published = evidence.published.as_ref().and_then(|heads| heads.last());
    proven.extend(published.map(|head| format!("all up to {} by the shared store", head.seq)));
    if proven.is_empty() {
        return "Proven: nothing against someone who can write these files; see --head, --store and --key-file."
            .to_owned();
    }
    format!("Proven: {}.", proven.join(", "))
}

/// Prints records, one a line, and their turns.
pub(super) fn table(records: &[AuditRecord], turns: bool, out: &mut dyn Write) -> Result<(), Failure> {
    if records.is_empty() {
        writeln!(out, "No records.")?;
        return Ok(());
    }
    let head = ["SEQ", "TIME", "ACTOR", "ACTION", "PROJECT", "SESSION", "ABOUT"].map(str::to_owned);
    let rows: Vec<[String; 7]> = records.iter().map(row).collect();
    let widths: Vec<usize> = (0..7)
        .map(|n| rows.iter().chain([&head]).map(|row| row[n].chars().count()).max().unwrap_or(0))
        .collect();
    let print = |row: &[String; 7], out: &mut dyn Write| -> Result<(), Failure> {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        Ok(())
    };
    print(&head, out)?;
    for (record, row) in records.iter().zip(&rows) {
        print(row, out)?;
        if let Some(history) = record.turns.as_ref().filter(|_| turns) {
            let earlier = history.count().saturating_sub(history.turns().len() as u64);
            if earlier > 0 {
                writeln!(out, "    {} before these", counted(earlier, "turn"))?;
            }
            history.turns().try_for_each(|turn| print_turn(turn, out))?;
        }
    }
    Ok(())
}

fn row(record: &AuditRecord) -> [String; 7] {
    let name =
        |text: &Option<String>| text.as_deref().map_or_else(|| "-".to_owned(), |text| clean(text, NAME));
    [
        record.seq.to_string(),
        record.time().map_or_else(|| clean(&record.ts, NAME), time),
        clean(&record.actor, NAME),
        clean(&record.action, NAME),
        name(&record.project),
        name(&record.session),
        about(record),
    ]
}

/// Secrets were masked when the record was written; masking twice would change the text.
fn about(record: &AuditRecord) -> String {
    let mut parts = Vec::new();
    if let Some(purge) = record.purged {
        parts.push(format!("purged by record {purge}"));
    }
    if let Some(steps) = record.steps {
        parts.push(format!("steps {}-{}", steps.first, steps.last));
    }
    if let Some(decision) = &record.decision {
        parts.extend(decision.would.as_ref().map(|would| format!("would {would}")));
        parts.extend(decision.detector.clone());
        parts.extend(decision.status.clone());
    }
    parts.extend(record.agent.as_ref().map(|agent| format!("agent {agent}")));
    parts.extend(record.swarm.as_ref().map(|swarm| format!("swarm {swarm}")));
    let summary = record.detail["summary"].as_str().or(record.message.as_deref());
    parts.extend(summary.map(str::to_owned));
    for more in [&record.detail, &record.note] {
        parts.extend(Some(more).filter(|more| summary.is_none() && !more.is_null()).map(Value::to_string));
    }
    clean(&parts.join(", "), ABOUT)
}

fn print_turn(turn: &AuditedTurn, out: &mut dyn Write) -> Result<(), Failure> {
    let agent = turn.agent.as_ref().map(|agent| format!(" ({})", clean(agent, NAME))).unwrap_or_default();
    let text = harmless(&turn.text);
    writeln!(out, "    turn {}{agent}: {}", turn.turn, text.trim().replace('\n', "\n      "))?;
    for call in &turn.calls {
        let outcome = call.outcome.and_then(|outcome| serde_json::to_value(outcome).ok());
        let outcome = outcome.as_ref().and_then(Value::as_str).unwrap_or("no result");
        let shown = clean(&call.call, ABOUT);
        writeln!(out, "      {shown}: {outcome}")?;
        if let Some(args) = &call.args {
            writeln!(out, "        {}", clean(args, TURN))?;
        }
    }
    if turn.more_calls > 0 {
        writeln!(out, "      and {}", counted(turn.more_calls, "more call"))?;
    }
    Ok(())
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
