//! `deloop say`: sends an operator's message to an agent that reports to a server.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use deloop_detect::clean;
use serde_json::json;

use crate::args::RuleArgs;
use crate::config;
use crate::exit::{self, Failure};
use crate::server_link::{SERVER, ServerSettings, send_message};

/// How much of standard input is read, in bytes. The server accepts less.
const LONGEST_INPUT: u64 = 1 << 20;

pub(crate) const SAY_HELP: &str = "\
Examples:
  deloop say 3f2a1c9e-77b0-4d2c-9a55-0c1d2e3f4a5b 'Use the staging database.'
  git diff --stat | deloop say nightly-7 - --project web
  deloop say s1 'Stop after this test.' --server https://deloop.example.com --json

The agent gets the text as a user message with its next step, once. If it is stopped, the message
waits until the stop is lifted. The server and the key come from `[server]` in your own configuration,
as for hooks; the key needs the scope `operate`. The server's audit log records who sent a message
to which session.

Exit codes: 0 the server has the message; 2 it wasn't sent.";

/// `deloop say`
#[derive(Debug, Args)]
pub(crate) struct SayArgs {
    /// The session, by its whole name
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// The message; `-` reads it from stdin
    pub(crate) text: String,
    /// The server: https://HOST[:PORT], or http on this machine [default: `server.url` of your own configuration]
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The project of the session [default: `server.project`, or the key's]
    #[arg(long, value_name = "PROJECT")]
    pub(crate) project: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The configuration file [default: as for hooks]
    #[arg(long, value_name = "FILE", env = "DELOOP_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

pub(crate) fn run(args: &SayArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let rules = RuleArgs { config: args.config.clone(), ..RuleArgs::default() };
    let config = config::load_quietly(&rules)?;
    let settings = ServerSettings::of(&config.server, args.server.as_deref())?;
    let mut settings = settings.ok_or_else(no_server)?;
    settings.project = args.project.clone().or(settings.project);
    let text = if args.text == "-" { read_input()? } else { args.text.clone() };
    send_message(&settings, &args.session, &text)?;
    if args.json {
        let sent = json!({"session": args.session, "queued": true, "server": settings.url});
        writeln!(out, "{sent}")?;
    } else {
        let session = clean(&args.session, 200);
        writeln!(out, "Sent. The agent of session {session} gets the message with its next step.")?;
    }
    Ok(exit::OK)
}

fn no_server() -> Failure {
    if std::env::var(SERVER).is_ok_and(|value| value.eq_ignore_ascii_case("off")) {
        return Failure::new(
            "DELOOP_SERVER=off in the environment turns the server off; unset it to send a message",
        );
    }
    Failure::new(
        "no server is configured; name one with `--server URL`, or set `url` under `[server]` in your own configuration",
    )
}

fn read_input() -> Result<String, Failure> {
    let mut text = String::new();
    match io::stdin().lock().take(LONGEST_INPUT).read_to_string(&mut text) {
        Ok(_) => Ok(text.trim_end().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(Failure::new("the message on stdin isn't UTF-8 text"))
        }
        Err(error) => Err(Failure::new(format!("stdin: {error}"))),
    }
}
