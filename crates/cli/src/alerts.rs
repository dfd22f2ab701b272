//! `deloop alerts`: shows and tests the routes of a server's alerts.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use deloop_server::{
    Alert, AlertOutcome, AlertRoute, Alerts, ClaimFn, Clock, TellFn, backlog_reports, host_name,
};

use crate::args::RuleArgs;
use crate::config::{self, Config};
use crate::exit::{self, Failure};
use crate::state::{SERVER_ALERTS, State, now};

pub(crate) const ALERTS_HELP: &str = "\
Examples:
  deloop alerts list                  routes, and how many alerts wait for each
  deloop alerts test                  a test alert to every route
  deloop alerts test ops --config /etc/deloop.toml

Routes are in `[[serve.alerts]]` of your configuration:
  [[serve.alerts]]
  name = \"ops\"
  sink = \"discord\"
  url_file = \"/etc/deloop/discord-url\"
  levels = [\"warning\", \"critical\"]

Exit codes: 0 success; 1 a test alert didn't arrive; 2 the command failed.";

/// `deloop alerts`
#[derive(Debug, Args)]
pub(crate) struct AlertsArgs {
    #[command(subcommand)]
    command: AlertsCommand,
}

/// What to do with the routes.
#[derive(Debug, Subcommand)]
enum AlertsCommand {
    /// List the routes, and how many alerts wait for each
    List {
        #[command(flatten)]
        source: RouteSource,
        /// The state folder of the server [default: your state folder]
        #[arg(long, value_name = "FOLDER")]
        state: Option<PathBuf>,
    },
    /// Send a test alert, and show what the receiver answers
    Test {
        /// Only to this route
        route: Option<String>,
        #[command(flatten)]
        source: RouteSource,
    },
}

/// Where the routes are.
#[derive(Debug, Args)]
struct RouteSource {
    /// The configuration file of the server [default: your own configuration]
    #[arg(long, value_name = "FILE", env = "DELOOP_CONFIG")]
    config: Option<PathBuf>,
}

impl RouteSource {
    fn routes(&self) -> Result<Vec<AlertRoute>, Failure> {
        let rules = RuleArgs { config: self.config.clone(), ..RuleArgs::default() };
        let routes = routes(&config::load_quietly(&rules)?)?;
        if routes.is_empty() {
            return Err(Failure::new(
                "no alert routes; add `[[serve.alerts]]` to your configuration (see `deloop alerts --help`)",
            ));
        }
        Ok(routes)
    }
}

/// Reads the routes of a configuration.
pub(crate) fn routes(config: &Config) -> Result<Vec<AlertRoute>, Failure> {
    AlertRoute::read_all(&config.serve()?.alerts).map_err(Failure::new)
}

/// Starts to send alerts, with the backlog in this folder; `None` without routes.
pub(crate) fn start(
    routes: Vec<AlertRoute>,
    folder: &Path,
    claim: ClaimFn,
    clock: Clock,
    tell: TellFn,
) -> Result<Option<Alerts>, Failure> {
    if routes.is_empty() {
        return Ok(None);
    }
    Alerts::open(&folder.join(SERVER_ALERTS), routes, &host_name(), claim, clock, tell)
        .map(Some)
        .map_err(Failure::new)
}

pub(crate) fn run(args: &AlertsArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    match &args.command {
        AlertsCommand::List { source, state } => list(source, state.as_deref(), out),
        AlertsCommand::Test { route, source } => test(source, route.as_deref(), out),
    }
}

fn list(source: &RouteSource, state: Option<&Path>, out: &mut dyn Write) -> Result<u8, Failure> {
    let routes = source.routes()?;
    let folder = match state {
        Some(folder) => folder.to_owned(),
        None => State::here()?.folder().to_owned(),
    };
    let reports = backlog_reports(&folder.join(SERVER_ALERTS)).map_err(Failure::new)?;
    for route in routes {
        let filters = route.filters();
        let filters = if filters.is_empty() { "all alerts".to_owned() } else { filters };
        writeln!(out, "{}: {}, {filters}", route.name(), route.target())?;
        let report = reports.get(route.name()).cloned().unwrap_or_default();
        writeln!(
            out,
            "  {} waiting; in the last week {} sent, {} failed, {} dropped",
            report.waiting, report.sent, report.failed, report.dropped
        )?;
        if let Some(problem) = report.last_problem {
            writeln!(out, "  last problem: {problem}")?;
        }
    }
    Ok(exit::OK)
}

fn test(source: &RouteSource, only: Option<&str>, out: &mut dyn Write) -> Result<u8, Failure> {
    let mut routes = source.routes()?;
    if let Some(name) = only {
        let names: Vec<String> = routes.iter().map(|route| route.name().to_owned()).collect();
        routes.retain(|route| route.name() == name);
        if routes.is_empty() {
            return Err(Failure::new(format!(
                "no alert route is named `{name}`; there are: {}",
                names.join(", ")
            )));
        }
    }
    let mut code = exit::OK;
    for route in routes {
        let said = match route.send(&Alert::test(now())) {
            AlertOutcome::Accepted(said) => format!("accepted ({said})"),
            AlertOutcome::Retry { why, .. } => {
                code = exit::FOUND;
                format!("didn't arrive ({why}); a server would try again")
            }
            AlertOutcome::Refused(why) => {
                code = exit::FOUND;
                format!("was refused ({why}); a server wouldn't try again")
            }
        };
        writeln!(out, "{}: {} {said}", route.name(), route.target())?;
        out.flush()?;
    }
    Ok(code)
}
