//! `deloop budget`: what a server's sessions and projects may spend.

use std::io::Write;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use deloop_server::BudgetsReport;
use serde_json::{Value, json};

use crate::exit::{self, Failure};
use crate::redaction::harmless;
use crate::report::{dollars, print_table, right, table};
use crate::scan::numbers::minute;
use crate::server_api::{ServerApi, ServerArgs};
use crate::server_link::segment;

pub(crate) const BUDGET_HELP: &str = "\
Examples:
  deloop budget show
  deloop budget show --project web --session s1
  deloop budget override --project web --usd 5 --until 2h --reason 'release of 1.2'
  deloop budget override --project web --session s1 --usd 1 --until 2026-11-15T18:00:00Z --reason 'long review'
  deloop budget revoke o3f2a1c9e77d0 --project web

An override lets a project or a session spend more from now on, for at most 7 days. The server
records it in its audit log. Budgets are set in the server's configuration, under `[serve.budgets]`.";

/// `deloop budget`
#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    #[command(subcommand)]
    pub(crate) command: BudgetCommand,
}

/// The subcommands of `deloop budget`.
#[derive(Debug, Subcommand)]
pub(crate) enum BudgetCommand {
    /// Show limits, what was spent today, and overrides
    Show {
        /// A session of the project
        #[arg(long, value_name = "ID", requires = "project")]
        session: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Let a project or a session spend more for a while
    Override {
        /// The session [default: all sessions of the project]
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// How much more it may spend, in dollars
        #[arg(long, value_name = "AMOUNT")]
        usd: f64,
        /// How long: `90m`, `2h`, `3d`, or a time such as 2026-11-15T18:00:00Z; at most 7 days
        #[arg(long, value_name = "TIME")]
        until: String,
        /// Why, for the audit log
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// End an override
    Revoke {
        /// The override's id, from `deloop budget show`
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}

pub(crate) fn run(args: &BudgetArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    match &args.command {
        BudgetCommand::Show { session, json, server } => {
            let session = session.as_deref().map(|session| ("session", session));
            let report: BudgetsReport = ServerApi::new(server)?.get("/v1/budgets", session.as_slice())?;
            if *json {
                serde_json::to_writer_pretty(&mut *out, &report)?;
                writeln!(out)?;
            } else {
                show(&report, out)?;
            }
        }
        BudgetCommand::Override { session, usd, until, reason, server } => {
            let body = json!({
                "project": server.project, "session": session, "usd": usd, "until": until, "reason": reason,
            });
            let answer = ServerApi::new(server)?.post("/v1/budgets/override", &body)?;
            let granted = &answer["override"];
            writeln!(
                out,
                "Override {}: {} may spend {} more until {}.",
                text(&granted["id"]),
                whose(granted),
                dollars(granted["usd"].as_f64().unwrap_or_default()),
                text(&granted["until"])
            )?;
        }
        BudgetCommand::Revoke { id, server } => {
            ServerApi::new(server)?.delete(&format!("/v1/budgets/override/{}", segment(id)))?;
            writeln!(out, "Revoked {}.", harmless(id))?;
        }
    }
    Ok(exit::OK)
}

fn show(report: &BudgetsReport, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "Budgets on {} (UTC)\n", harmless(&report.date))?;
    let mut rows = table(["", "spent", "budget", "used", "each session"], 1);
    let mut add = |name: String, spent: Option<f64>, limit: Option<f64>, session: Option<f64>| {
        let used = spent.zip(limit).map(|(spent, limit)| format!("{:.0} %", 100.0 * spent / limit));
        rows.add_row([
            Cell::new(name),
            right(spent.map_or("-".to_owned(), dollars)),
            right(limit.map_or("none".to_owned(), dollars)),
            right(used.unwrap_or_else(|| "-".to_owned())),
            right(session.map_or("-".to_owned(), dollars)),
        ]);
    };
    if report.day_spent_usd.is_some() || report.day_limit_usd.is_some() {
        add("all projects".to_owned(), report.day_spent_usd, report.day_limit_usd, None);
    }
    for project in &report.projects {
        add(
            format!("project {}", harmless(&project.project)),
            Some(project.spent_usd),
            project.limit_usd,
            project.session_limit_usd,
        );
    }
    if let Some(session) = &report.session {
        add(format!("session {}", harmless(&session.session)), session.spent_usd, session.limit_usd, None);
    }
    print_table(&rows, out)?;
    for granted in &report.overrides {
        writeln!(
            out,
            "\nOverride {}: {} may spend {} more until {} UTC (granted by {} at {}: {})",
            text(&granted["id"]),
            whose(granted),
            dollars(granted["usd"].as_f64().unwrap_or_default()),
            minute(&text(&granted["until"])),
            text(&granted["actor"]),
            minute(&text(&granted["granted"])),
            text(&granted["reason"])
        )?;
    }
    Ok(())
}

fn text(value: &Value) -> String {
    harmless(value.as_str().unwrap_or("-"))
}

fn whose(granted: &Value) -> String {
    match granted["session"].as_str() {
        Some(session) => format!("session {} of project {}", harmless(session), text(&granted["project"])),
        None => format!("project {}", text(&granted["project"])),
    }
}
