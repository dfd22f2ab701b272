//! `deloop report`: what a server's agents spent and how often they looped.

mod daily;
mod weekly;

use std::io::Write;

use clap::Args;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use deloop_server::{DailyReport, WeeklyReport};

use crate::exit::{self, Failure};
use crate::server_api::{ServerApi, ServerArgs};

pub(crate) const REPORT_HELP: &str = "\
Examples:
  deloop report --daily                                 today so far, all projects
  deloop report --daily --date 2026-11-15 --project web
  deloop report --weekly --weeks 12
  deloop report --daily --json | jq .total.loop_waste_usd

Days and weeks are UTC; weeks start on Monday. Loop waste is the cost of the requests that repeated
what a loop had done before. A rise: at least 5 loops this week, more than twice the average of the
last 4 weeks (p < 0.01).

Exit codes: 0 success; 2 the server can't be reached or refused.";

/// `deloop report`
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("period").required(true).args(["daily", "weekly"])))]
pub(crate) struct ReportArgs {
    /// What was spent on one day, by project, model and agent
    #[arg(long)]
    pub(crate) daily: bool,
    /// How often agents loop, week by week
    #[arg(long)]
    pub(crate) weekly: bool,
    /// The day of `--daily` [default: today]
    #[arg(long, value_name = "DATE", requires = "daily")]
    pub(crate) date: Option<String>,
    /// How many weeks `--weekly` shows, the current one included
    #[arg(long, value_name = "N", requires = "weekly", default_value_t = 8)]
    pub(crate) weeks: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &ReportArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let api = ServerApi::new(&args.server)?;
    if args.weekly {
        let weeks = args.weeks.to_string();
        let report: WeeklyReport = api.get("/v1/reports/weekly", &[("weeks", &weeks)])?;
        print(args, &report, out, weekly::print)
    } else {
        let date = args.date.as_deref().map(|date| ("date", date));
        let report: DailyReport = api.get("/v1/reports/daily", date.as_slice())?;
        print(args, &report, out, daily::print)
    }
}

fn print<T: serde::Serialize>(
    args: &ReportArgs,
    report: &T,
    out: &mut dyn Write,
    for_people: fn(&T, &mut dyn Write) -> Result<(), Failure>,
) -> Result<u8, Failure> {
    if args.json {
        serde_json::to_writer_pretty(&mut *out, report)?;
        writeln!(out)?;
    } else {
        for_people(report, out)?;
    }
    Ok(exit::OK)
}

/// Returns an empty table.
pub(crate) fn table<const N: usize>(head: [&str; N], numbers_from: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let aligned = head.iter().enumerate().map(|(column, name)| {
        let cell = Cell::new(name);
        if column >= numbers_from { cell.set_alignment(CellAlignment::Right) } else { cell }
    });
    table.set_header(aligned);
    table
}

/// Returns a cell with a number.
pub(crate) fn right(text: impl Into<String>) -> Cell {
    Cell::new(text.into()).set_alignment(CellAlignment::Right)
}

/// Prints a table without the space that it pads its cells with.
pub(crate) fn print_table(table: &Table, out: &mut dyn Write) -> Result<(), Failure> {
    for line in table.lines() {
        writeln!(out, "{}", line.strip_prefix(' ').unwrap_or(&line).trim_end())?;
    }
    Ok(())
}

/// Formats dollars: three digits below ten dollars, because single requests cost less than a cent.
pub(crate) fn dollars(usd: f64) -> String {
    match usd {
        0.0 => "-".to_owned(),
        usd if usd < 0.0005 => "<$0.001".to_owned(),
        usd if usd < 10.0 => format!("${usd:.3}"),
        usd => format!("${usd:.2}"),
    }
}
