//! Requests to a running `deloop serve`, for commands that show or change what it keeps.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::Body;
use ureq::http::Response;

use crate::args::RuleArgs;
use crate::config;
use crate::exit::Failure;
use crate::server_link::{ServerConnection, ServerSettings};

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of an answer, in bytes.
const ANSWER: u64 = 64 << 20;
/// Maximum length of an error that the server reports, in characters.
const ERROR: usize = 500;

/// Which server to ask, and about which project.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArgs {
    /// The server: https://HOST[:PORT], or http on this machine [default: `server.url` of your own configuration, or
    /// http://127.0.0.1:7430]
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// The configuration file [default: as for hooks]
    #[arg(long, value_name = "FILE", env = "DELOOP_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// A client of one server.
pub(crate) struct ServerApi {
    connection: ServerConnection,
    url: String,
}

impl ServerApi {
    /// Prepares a client. Nothing is sent yet.
    ///
    /// # Errors
    /// When the configuration is wrong, or the address isn't one that a key may be sent to.
    pub(crate) fn new(args: &ServerArgs) -> Result<Self, Failure> {
        let rules = RuleArgs { config: args.config.clone(), ..RuleArgs::default() };
        let config = config::load_quietly(&rules)?;
        let mut settings = ServerSettings::or_here(&config.server, args.server.as_deref())?;
        // People who ask about money mean all projects unless they name one, whichever one their own agents report to.
        settings.project.clone_from(&args.project);
        Ok(Self { connection: ServerConnection::new(&settings, TIMEOUT)?, url: settings.url })
    }

    /// Returns what the server answers to a question.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, Failure> {
        self.answer(self.connection.get(path).query_pairs(query.iter().copied()).call())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.answer(self.connection.post(path).send(body.to_string()))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.answer(self.connection.delete(path).call())
    }

    fn answer<T: DeserializeOwned>(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<T, Failure> {
        let at = deloop_detect::clean(&self.url, 200);
        let unreachable = |error: ureq::Error| {
            let error = deloop_detect::clean(&error.to_string(), ERROR);
            Failure::new(format!("{at}: {error}; start `deloop serve`, or name another server with --server"))
        };
        let mut answer = answer.map_err(unreachable)?;
        let body = answer.body_mut().with_config().limit(ANSWER).read_to_vec();
        let body = body.map_err(|error| Failure::new(format!("{at}: {error}")))?;
        let status = answer.status();
        if status.is_success() {
            let wrong = |_| Failure::new(format!("{at}: the answer isn't one of `deloop serve`"));
            return serde_json::from_slice(&body).map_err(wrong);
        }
        let error: Value = serde_json::from_slice(&body).unwrap_or_default();
        let error = match status.as_u16() {
            401 => self.connection.refused_key(),
            _ => error["error"].as_str().unwrap_or("no reason given"),
        };
        Err(Failure::new(format!("{at}: {} {}", status.as_u16(), deloop_detect::clean(error, ERROR))))
    }
}
