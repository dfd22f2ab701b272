//! `deloop serve`: Steps in, Decisions out, over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use deloop_engine::Engine;
use deloop_server::{Broker, BudgetLimits, MoneySettings, ServerNotice, TellFn};

use crate::args::RuleArgs;
use crate::config::{self, Config};
use crate::exit::{self, Failure};
use crate::hook;
use crate::print;
use crate::state::{self, SERVER_DATABASE, State};

/// Maximum length of a reported error, in characters.
const LONGEST_ERROR: usize = 2000;

pub(crate) const SERVE_HELP: &str = "\
Examples:
  deloop serve
  deloop serve --listen 127.0.0.1:8080 --profile doom-loop --state /var/lib/deloop
  curl -d '{\"type\":\"turn\",\"session\":\"s1\",\"text\":\"Again.\"}' http://127.0.0.1:7430/v1/steps
  curl http://127.0.0.1:7430/v1/sessions/s1

Prints its address on stderr when it is ready. SIGINT and SIGTERM finish the requests in progress
and close the database.

Exit codes: 0 after a signal; 2 the server couldn't start.";

/// `deloop serve`
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// The address to listen on, which must belong to this machine alone; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7430")]
    pub(crate) listen: SocketAddr,
    /// The folder of the database, `server.db` [default: your state folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
}

pub(crate) fn run(args: &ServeArgs) -> Result<u8, Failure> {
    let address = args.listen;
    if !address.ip().is_loopback() {
        return Err(Failure::new(format!(
            "--listen {address}: anyone who can reach that address could read and change your sessions, because the \
             server has no access control. Listen on 127.0.0.1:{port} or [::1]:{port}, and let other machines in \
             through an SSH tunnel or a proxy that authenticates them",
            port = address.port()
        )));
    }
    let config = config::load(&args.rules)?;
    let cost = Box::new(hook::cost_of(config.prices()?));
    let budgets = BudgetLimits::new(&config.serve()?.budgets).map_err(Failure::new)?;
    let Config { profile, options, off, .. } = config;
    let money = MoneySettings { budgets, mode: options.mode };
    let file = match &args.state {
        // The user's own folder keeps its permissions. A new one, and the file, are private.
        Some(folder) => folder.join(SERVER_DATABASE),
        None => State::here()?.server_database()?,
    };
    let tell: TellFn = Arc::new(|notice| match notice {
        ServerNotice::Ready(address) => {
            print::tell(format_args!("deloop: listening on http://{address}"));
        }
        ServerNotice::Stopping => print::tell("deloop: finishing requests"),
        ServerNotice::Failed(reason) | ServerNotice::Changed(reason) => {
            print::tell(format_args!("deloop: {}", print::log_line(&reason, LONGEST_ERROR)));
        }
        _ => {}
    });
    let broker =
        Broker::open(&file, Engine::new(profile, options), cost, money, off, state::now(), Arc::clone(&tell))
            .map_err(|error| Failure::new(error.to_string()))?;
    deloop_server::serve(broker, address, tell)
        .map_err(|error| Failure::new(format!("{address}: {error}")))?;
    Ok(exit::OK)
}
