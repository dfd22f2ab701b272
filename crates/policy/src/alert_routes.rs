//! The configuration of alerts: which of them go where.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::DocumentError;

/// How urgent an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AlertLevel {
    /// For the record.
    Info,
    /// Somebody should look.
    Warning,
    /// A session or a budget was stopped.
    Critical,
}

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub enum AlertKind {
    /// A session repeats itself and goes on.
    #[serde(rename = "loop.warning")]
    LoopWarning,
    /// A session was stopped.
    #[serde(rename = "session.terminated")]
    SessionTerminated,
    /// A swarm repeats one call.
    #[serde(rename = "swarm.declared")]
    SwarmDeclared,
    /// A budget is nearly used up.
    #[serde(rename = "budget.warning")]
    BudgetWarning,
    /// A budget is used up.
    #[serde(rename = "budget.exceeded")]
    BudgetExceeded,
    /// Loops became more frequent.
    #[serde(rename = "loop.rise")]
    LoopRise,
    /// The daily report.
    #[serde(rename = "report.daily")]
    ReportDaily,
    /// A test, from `deloop alerts test`. It goes to the route that is tested, whatever its filters.
    #[serde(rename = "test")]
    Test,
}

impl AlertKind {
    /// Returns its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LoopWarning => "loop.warning",
            Self::SessionTerminated => "session.terminated",
            Self::SwarmDeclared => "swarm.declared",
            Self::BudgetWarning => "budget.warning",
            Self::BudgetExceeded => "budget.exceeded",
            Self::LoopRise => "loop.rise",
            Self::ReportDaily => "report.daily",
            Self::Test => "test",
        }
    }
}

/// What receives the alerts of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AlertSinkKind {
    /// An HTTP endpoint of your own. It gets signed JSON.
    Webhook,
    /// A webhook of a Discord channel.
    Discord,
    /// An incoming webhook of Slack.
    Slack,
    /// A program. It gets the alert as JSON on standard input.
    Command,
}

/// A route for alerts: where they go, and which ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AlertRouteBlock {
    /// The name of the route: 1 to 64 letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// What receives the alerts.
    pub sink: AlertSinkKind,
    /// The URL. It is often a secret: prefer `url_env` or `url_file`.
    #[serde(default)]
    pub url: Option<String>,
    /// The environment variable that holds the URL.
    #[serde(default)]
    pub url_env: Option<String>,
    /// The file that holds the URL, with its full path.
    #[serde(default)]
    pub url_file: Option<String>,
    /// The environment variable that holds the secret that a webhook's requests are signed with.
    #[serde(default)]
    pub secret_env: Option<String>,
    /// The file that holds this secret, with its full path.
    #[serde(default)]
    pub secret_file: Option<String>,
    /// The program, with its full path, and its arguments. Nothing of an alert is added to them.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Only alerts of these levels.
    #[serde(default)]
    pub levels: Option<Vec<AlertLevel>>,
    /// Only alerts of these kinds.
    #[serde(default)]
    pub kinds: Option<Vec<AlertKind>>,
    /// Only alerts of these projects.
    #[serde(default)]
    pub projects: Option<Vec<String>>,
    /// Whether alerts about swarms and their sessions are sent: true (the default), false, or `"only"` these.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = [true, false, "only", null])))]
    pub swarms: Option<Value>,
    /// Allow `http`, and addresses of this machine and of private networks.
    #[serde(default)]
    pub allow_private: bool,
}

impl AlertRouteBlock {
    /// Reads one route.
    ///
    /// # Errors
    /// When a key is missing or has a wrong value. The error names the route, by its name or its position.
    pub fn read(position: usize, document: &Value) -> Result<Self, DocumentError> {
        let name = document.get("name").and_then(Value::as_str);
        let name = name.map_or_else(|| format!("number {}", position + 1), |name| format!("`{name}`"));
        serde_json::from_value(document.clone())
            .map_err(|error| DocumentError(format!("alert route {name}: {error}")))
    }
}
