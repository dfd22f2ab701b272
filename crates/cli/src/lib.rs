//! The command `deloop`, as a library: each subcommand is a file or folder; this file is their table of contents.

#[cfg(feature = "serve")]
mod alerts;
mod args;
#[cfg(feature = "serve")]
mod audit;
#[cfg(feature = "serve")]
mod budget;
mod ceilings;
mod clock;
mod config;
mod demo;
mod doctor;
mod embedding;
mod eval;
mod events_file;
mod exit;
mod explain;
mod formats;
mod hook;
mod install;
#[cfg(feature = "serve")]
mod keys;
mod learnings;
mod live;
mod notes;
mod prices;
mod print;
mod profiles;
mod project;
mod purge;
mod redaction;
mod replay;
#[cfg(feature = "serve")]
mod report;
mod run;
mod safe_file;
mod say;
mod scan;
mod schema;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod server_api;
mod server_link;
mod sessions;
mod shell;
mod state;
mod status;
mod steps;
mod stream;
mod stream_sessions;
mod trust;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use exit::Failure;

/// Runs the command with the process's arguments, input and output.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = print::stdout(&cli);
    let done = dispatch(cli, &mut out).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    match done {
        Ok(code) => code.into(),
        Err(Failure::ClosedPipe) => exit::OK.into(),
        Err(Failure::Message(message)) => {
            print::tell(format_args!("deloop: {message}"));
            exit::COULD_NOT_RUN.into()
        }
    }
}

fn dispatch(cli: Cli, out: &mut dyn Write) -> Result<u8, Failure> {
    match cli.command {
        Command::Demo(args) => demo::run(&args, out),
        Command::Scan(args) => scan::run(&args, out),
        Command::Compare(args) => scan::compare::run(&args, out),
        Command::Show(args) => scan::show(&args, out),
        Command::Stream(args) => stream::run(&args, out),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args),
        #[cfg(feature = "serve")]
        Command::Alerts(args) => alerts::run(&args, out),
        #[cfg(feature = "serve")]
        Command::Keys(args) => keys::run(&args, out),
        #[cfg(feature = "serve")]
        Command::Audit(args) => audit::run(&args, out),
        #[cfg(feature = "serve")]
        Command::Report(args) => report::run(&args, out),
        #[cfg(feature = "serve")]
        Command::Budget(args) => budget::run(&args, out),
        Command::Say(args) => say::run(&args, out),
        Command::Install(args) => install::install(&args, out),
        Command::Uninstall(args) => install::uninstall(&args, out),
        Command::Status(args) => status::run(&args, out),
        Command::Steps(args) => steps::run(&args, out),
        Command::Hook(args) => hook::run(&args, out),
        Command::Purge(args) => purge::run(&args, out),
        Command::Prices(args) => prices::run(&args, out),
        Command::Profiles(args) => profiles::run(&args, out),
        Command::Formats(args) => formats::run(&args, out),
        Command::Explain(args) => explain::run(&args, out),
        Command::Doctor(_) => doctor::run(out),
        Command::Run(args) => run::run(&args),
        Command::Log(args) => live::log::run(&args, out),
        Command::State(args) => live::state::run(&args, out),
        Command::Swarm(args) => live::swarm::run(&args, out),
        Command::Wrong(args) => live::wrong::run(&args, out),
        Command::Pause(args) => live::pause::pause(&args, out),
        Command::Resume(args) => live::pause::resume(&args, out),
        Command::Allow(args) => live::allow::run(&args, out),
        Command::Eval(args) => eval::run(&args, out),
        Command::Vocabulary => Ok(out.write_all(deloop_detect::VOCABULARY.as_bytes()).map(|()| exit::OK)?),
        Command::Similarity(args) => embedding::similarity(&args, out),
        Command::Embed(args) => embedding::embed(&args),
        Command::Watchdog(args) => run::watchdog::watchdog(&args),
        Command::Trust(args) => trust::run(&args, out),
        Command::Config(args) => config::run(&args, out),
        Command::Schema(args) => schema::run(&args, out),
        Command::Completions(args) => shell::completions(&args, out),
        Command::Man(args) => shell::man(&args, out),
    }
}
