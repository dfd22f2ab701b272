use std::io::Write;

use comfy_table::Cell;
use deloop_server::WeeklyReport;

use super::{print_table, right, table};
use crate::exit::Failure;
use crate::redaction::harmless;
use crate::scan::numbers::{count, plural};

/// Prints how often agents loop.
pub(super) fn print(report: &WeeklyReport, out: &mut dyn Write) -> Result<(), Failure> {
    let (Some(from), Some(to)) = (report.weeks.first(), report.weeks.last()) else { return Ok(()) };
    if report.groups.is_empty() {
        writeln!(out, "No sessions in the last {}.", plural(report.weeks.len() as u64, "week"))?;
        return Ok(());
    }
    let (from, to) = (harmless(from), harmless(to));
    writeln!(out, "Loops per week, from the week of {from} to the week of {to} (so far)\n")?;
    let head = ["project", "agent", "model", "sessions", "loops", "per 100", "stopped", "weeks", "trend"];
    let mut table = table(head, 3);
    for group in &report.groups {
        let weeks: Vec<String> = group.loops.iter().map(u64::to_string).collect();
        table.add_row([
            Cell::new(harmless(&group.project)),
            Cell::new(harmless(&group.agent)),
            Cell::new(harmless(&group.model)),
            right(count(group.sessions.iter().sum::<u64>())),
            right(count(group.loops.iter().sum::<u64>())),
            right(group.per_100.map_or("-".to_owned(), |rate| format!("{rate:.1}"))),
            right(count(group.terminated.iter().sum::<u64>())),
            right(weeks.join(" ")),
            right(if group.rise.is_some() { "rising" } else { "-" }),
        ]);
    }
    print_table(&table, out)?;
    for rise in report.groups.iter().filter_map(|group| group.rise.as_ref()) {
        writeln!(
            out,
            "\n{} with {} in {}: {} in {} this week, {:.1} per 100 sessions; {:.1} in the 4 weeks before.",
            harmless(&rise.agent),
            harmless(&rise.model),
            harmless(&rise.project),
            plural(rise.loops, "loop"),
            plural(rise.sessions, "session"),
            rise.per_100,
            rise.per_100_before
        )?;
    }
    Ok(())
}
