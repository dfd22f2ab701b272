//! A route: a sink, and which alerts go there.

use std::path::Path;

use deloop_policy::{AlertKind, AlertLevel, AlertRouteBlock, AlertSinkKind};
use serde::Serialize;
use serde_json::Value;

use super::alert::Alert;
use super::http_post::HttpPost;
use super::outcome::AlertOutcome;
use super::sink_url::SinkUrl;
use super::webhook::WebhookSecret;
use super::{command, discord, slack};
use crate::clock::Clock;
use crate::project::Project;

/// Maximum size of a file with a URL or a secret, in bytes.
const LONGEST_FILE: u64 = 64 << 10;

/// Where alerts go, and which ones.
#[derive(Debug)]
pub struct AlertRoute {
    name: String,
    sink: AlertSink,
    levels: Option<Vec<AlertLevel>>,
    kinds: Option<Vec<AlertKind>>,
    projects: Option<Vec<String>>,
    swarms: SwarmFilter,
}

#[derive(Debug)]
enum AlertSink {
    Webhook(HttpPost, WebhookSecret),
    Discord(HttpPost),
    Slack(HttpPost),
    Command(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SwarmFilter {
    Any,
    Without,
    Only,
}

impl AlertRoute {
    /// Reads the routes of a configuration, with the URLs and secrets in the environment and in files.
    ///
    /// # Errors
    /// When a route can't work. The error names the route and the fix, and no URL or secret.
    pub fn read_all(documents: &[Value]) -> Result<Vec<Self>, String> {
        let mut routes: Vec<Self> = Vec::new();
        for (position, document) in documents.iter().enumerate() {
            let block = AlertRouteBlock::read(position, document).map_err(|error| error.to_string())?;
            let name = deloop_detect::clean(&block.name, 100);
            let of_route = |why: String| format!("alert route `{name}`: {why}");
            if routes.iter().any(|route| route.name == block.name) {
                return Err(of_route("there is another route with this name; rename one of them".to_owned()));
            }
            routes.push(Self::read(block).map_err(of_route)?);
        }
        Ok(routes)
    }

    fn read(block: AlertRouteBlock) -> Result<Self, String> {
        if Project::parse(&block.name).is_err() {
            return Err("a name is 1 to 64 letters, digits, `.`, `_` and `-`".to_owned());
        }
        for project in block.projects.iter().flatten() {
            Project::parse(project).map_err(|why| format!("`projects`: {why}"))?;
        }
        for (key, empty) in [
            ("levels", block.levels.as_ref().is_some_and(Vec::is_empty)),
            ("kinds", block.kinds.as_ref().is_some_and(Vec::is_empty)),
            ("projects", block.projects.as_ref().is_some_and(Vec::is_empty)),
        ] {
            if empty {
                return Err(format!("`{key}` is empty, so nothing would be sent; remove it to send all"));
            }
        }
        let swarms = match &block.swarms {
            None | Some(Value::Null | Value::Bool(true)) => SwarmFilter::Any,
            Some(Value::Bool(false)) => SwarmFilter::Without,
            Some(Value::String(word)) if word == "only" => SwarmFilter::Only,
            Some(_) => return Err("`swarms` must be true, false or \"only\"".to_owned()),
        };
        let sink = AlertSink::read(&block)?;
        let AlertRouteBlock { name, levels, kinds, projects, .. } = block;
        Ok(Self { name, sink, levels, kinds, projects, swarms })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Describes where it leads. URLs are shown without their paths, which are often secrets.
    #[must_use]
    pub fn target(&self) -> String {
        match &self.sink {
            AlertSink::Webhook(post, _) => format!("webhook {}", post.url().masked()),
            AlertSink::Discord(post) => format!("discord {}", post.url().masked()),
            AlertSink::Slack(post) => format!("slack {}", post.url().masked()),
            AlertSink::Command(argv) => format!("command {}", argv.first().map_or("", String::as_str)),
        }
    }

    /// Describes its filters; empty if everything passes.
    #[must_use]
    pub fn filters(&self) -> String {
        let mut out = Vec::new();
        let mut add = |key: &str, values: Option<Vec<String>>| {
            out.extend(values.map(|values| format!("{key} {}", values.join(", "))));
        };
        let levels =
            |levels: &Vec<AlertLevel>| levels.iter().map(|l| format!("{l:?}").to_lowercase()).collect();
        add("levels", self.levels.as_ref().map(levels));
        let kinds = |kinds: &Vec<AlertKind>| kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
        add("kinds", self.kinds.as_ref().map(kinds));
        add("projects", self.projects.clone());
        match self.swarms {
            SwarmFilter::Any => {}
            SwarmFilter::Without => out.push("without swarms".to_owned()),
            SwarmFilter::Only => out.push("swarms only".to_owned()),
        }
        out.join("; ")
    }

    /// Returns whether an alert goes there.
    pub(crate) fn matches(&self, alert: &Alert) -> bool {
        let swarm = match self.swarms {
            SwarmFilter::Any => true,
            SwarmFilter::Without => alert.swarm.is_none(),
            SwarmFilter::Only => alert.swarm.is_some(),
        };
        swarm
            && self.levels.as_ref().is_none_or(|levels| levels.contains(&alert.level))
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&alert.kind))
            && self.projects.as_ref().is_none_or(|projects| projects.contains(&alert.project))
    }

    /// Sends an alert now, whatever the filters. Blocks for at most about ten seconds.
    #[must_use]
    pub fn send(&self, alert: &Alert) -> AlertOutcome {
        self.send_until(alert, &Clock::new(), &|| false)
    }

    pub(crate) fn send_until(
        &self,
        alert: &Alert,
        clock: &Clock,
        is_over: &dyn Fn() -> bool,
    ) -> AlertOutcome {
        match &self.sink {
            AlertSink::Webhook(post, secret) => {
                let body = json(alert);
                let signature = secret.signature(clock.now().0 / 1000, &body);
                let headers = [("deloop-signature", signature), ("deloop-idempotency-key", alert.id.clone())];
                post.send(&headers, &body, |_| None)
            }
            AlertSink::Discord(post) => post.send(&[], &json(&discord::body(alert)), discord::retry_after),
            AlertSink::Slack(post) => post.send(&[], &json(&slack::body(alert)), |_| None),
            AlertSink::Command(argv) => command::run(argv, &json(alert), is_over),
        }
    }
}

impl AlertSink {
    fn read(block: &AlertRouteBlock) -> Result<Self, String> {
        let url_keys = [&block.url, &block.url_env, &block.url_file];
        let is_signed = block.secret_env.is_some() || block.secret_file.is_some();
        if is_signed && block.sink != AlertSinkKind::Webhook {
            return Err("only a webhook is signed; remove `secret_env` and `secret_file`".to_owned());
        }
        if block.sink == AlertSinkKind::Command {
            if url_keys.iter().any(|key| key.is_some()) {
                return Err("a command has no URL; remove `url`, `url_env` and `url_file`".to_owned());
            }
            let argv = block.command.clone().unwrap_or_default();
            let program = argv.first().ok_or("a command needs `command = [\"/path/to/program\"]`")?;
            if !Path::new(program).is_absolute() {
                return Err(format!(
                    "`command` must start with the full path of a program, not `{}`",
                    deloop_detect::clean(program, 100)
                ));
            }
            return Ok(Self::Command(argv));
        }
        if block.command.is_some() {
            return Err("`command` is for `sink = \"command\"`; remove it".to_owned());
        }
        if url_keys.iter().filter(|key| key.is_some()).count() != 1 {
            return Err("it needs one of `url`, `url_env` and `url_file`".to_owned());
        }
        let url = match &block.url {
            Some(url) => url.clone(),
            None => stored("url", block.url_env.as_deref(), block.url_file.as_deref())?,
        };
        let post = HttpPost::new(SinkUrl::parse(&url, block.allow_private)?, block.allow_private);
        Ok(match block.sink {
            AlertSinkKind::Discord => Self::Discord(post),
            AlertSinkKind::Slack => Self::Slack(post),
            _ => {
                let secret = match (&block.secret_env, &block.secret_file) {
                    (Some(_), Some(_)) => return Err("it has two secrets; remove one".to_owned()),
                    (None, None) => {
                        return Err(
                            "a webhook is signed: it needs `secret_env` or `secret_file`; `openssl rand -hex 32` \
                             makes a secret"
                                .to_owned(),
                        );
                    }
                    (variable, file) => stored("secret", variable.as_deref(), file.as_deref())?,
                };
                Self::Webhook(post, WebhookSecret::parse(&secret)?)
            }
        })
    }
}

/// Alerts and the bodies made of them can always be written.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// Reads a text from the environment or from a file. White space around it doesn't count.
fn stored(what: &str, variable: Option<&str>, file: Option<&str>) -> Result<String, String> {
    let text = match (variable, file) {
        (Some(variable), _) => {
            std::env::var(variable).map_err(|_| format!("`{what}_env`: {variable} isn't set"))?
        }
        (None, Some(file)) => {
            read_file(Path::new(file)).map_err(|why| format!("`{what}_file`: {file}: {why}"))?
        }
        (None, None) => String::new(),
    };
    match text.trim() {
        "" => Err(format!("its {what} is empty")),
        text => Ok(text.to_owned()),
    }
}

fn read_file(file: &Path) -> Result<String, String> {
    if !file.is_absolute() {
        return Err("give the full path".to_owned());
    }
    let about = std::fs::metadata(file).map_err(|e| e.to_string())?;
    if !about.is_file() || about.len() > LONGEST_FILE {
        return Err("it isn't a small file".to_owned());
    }
    std::fs::read_to_string(file).map_err(|e| e.to_string())
}
