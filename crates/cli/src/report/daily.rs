use std::io::Write;

use comfy_table::{Cell, Table};
use deloop_server::{DailyReport, ReportFigures};

use super::{dollars, print_table, right, table};
use crate::exit::Failure;
use crate::redaction::harmless;
use crate::scan::numbers::{count, plural};

/// Prints what was spent on a day.
pub(super) fn print(report: &DailyReport, out: &mut dyn Write) -> Result<(), Failure> {
    let date = harmless(&report.date);
    if report.projects.iter().all(|project| project.rows.is_empty()) {
        writeln!(out, "Nothing was spent on {date} (UTC).")?;
        return Ok(());
    }
    writeln!(out, "Spend on {date} (UTC)\n")?;
    let head = [
        "project",
        "model",
        "agent",
        "requests",
        "tokens",
        "cost",
        "day before",
        "loop waste",
        "loops",
        "stopped",
    ];
    let mut table = table(head, 3);
    for project in report.projects.iter().filter(|project| !project.rows.is_empty()) {
        for row in &project.rows {
            let names = [&project.project, &row.model, &row.agent].map(|name| harmless(name));
            add(&mut table, names, &row.figures, &row.day_before);
        }
        if report.projects.len() > 1 && project.rows.len() > 1 {
            let names = [harmless(&project.project), "all".to_owned(), "all".to_owned()];
            add(&mut table, names, &project.total, &project.day_before);
        }
    }
    add(&mut table, ["total".to_owned(), String::new(), String::new()], &report.total, &report.day_before);
    print_table(&table, out)?;
    if report.total.cost_usd > 0.0 && report.total.loop_waste_usd > 0.0 {
        let share = 100.0 * report.total.loop_waste_usd / report.total.cost_usd;
        let waste = dollars(report.total.loop_waste_usd);
        writeln!(out, "\nLoops wasted {waste}, {share:.1} % of the cost.")?;
    }
    if report.total.unpriced_requests > 0 {
        let requests = plural(report.total.unpriced_requests, "request");
        writeln!(
            out,
            "\n{requests} had no price, so the cost is higher than shown. Add the model to `[prices]` in the server's \
             configuration."
        )?;
    }
    Ok(())
}

fn add(table: &mut Table, names: [String; 3], figures: &ReportFigures, before: &ReportFigures) {
    let mut row: Vec<Cell> = names.into_iter().map(Cell::new).collect();
    let cost = match figures.unpriced_requests {
        0 => dollars(figures.cost_usd),
        _ if figures.cost_usd == 0.0 => "no price".to_owned(),
        _ => format!("{}+", dollars(figures.cost_usd)),
    };
    row.extend([
        right(count(figures.requests)),
        right(count(figures.tokens)),
        right(cost),
        right(dollars(before.cost_usd)),
        right(dollars(figures.loop_waste_usd)),
        right(count(figures.loops)),
        right(count(figures.terminated)),
    ]);
    table.add_row(row);
}
