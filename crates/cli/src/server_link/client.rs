//! The smallest client of `deloop serve`: one request per event.

use deloop_engine::Options;
use deloop_live::RemoteAnswer;
use deloop_types::{Action, Decision, Mode, Step};
use serde_json::{Map, Value};
use ureq::Body;
use ureq::http::Response;

use super::connection::{ANSWER, ServerConnection, reported_error};
use super::key_report::KeyReport;
use super::settings::ServerSettings;
use crate::exit::Failure;

/// Maximum length of a message for an agent, in characters.
const MESSAGE: usize = 16 << 10;
/// Maximum length of one line for people, in characters.
const LINE: usize = 500;
/// Maximum length of an error that the server reports, in characters.
const ERROR: usize = 200;

/// A client of one server.
pub(super) struct ServerClient {
    connection: ServerConnection,
    options: Options,
}

/// Why there is no decision.
pub(super) struct LinkFailure {
    pub(super) reason: String,
    /// Whether the next event would fail, too.
    pub(super) is_general: bool,
}

/// What a server says about itself.
pub(crate) struct ServerGreeting {
    pub(crate) version: Option<String>,
    pub(crate) mode: Option<Mode>,
    /// What the key allows, if the server says so.
    pub(crate) key: Option<KeyReport>,
}

impl ServerClient {
    /// Prepares a client. Nothing is sent yet.
    pub(super) fn new(settings: &ServerSettings, options: Options) -> Result<Self, Failure> {
        Ok(Self { connection: ServerConnection::new(settings, settings.timeout)?, options })
    }

    pub(super) fn set_options(&mut self, options: Options) {
        self.options = options;
    }

    /// Returns the decisions about these steps.
    pub(super) fn decide(&self, steps: &[&Step]) -> Result<RemoteAnswer, LinkFailure> {
        let body = serde_json::to_vec(steps).map_err(|e| specific(&format!("a step can't be sent: {e}")))?;
        let mut response = self.post(&body)?;
        let mode = mode_of(&response);
        let answer = response.body_mut().with_config().limit(ANSWER).read_to_vec();
        let answer = answer.map_err(|e| general(&format!("its answer can't be read: {e}")))?;
        let decisions = read_decisions(&answer, steps)?;
        Ok(RemoteAnswer { decisions, mode })
    }

    /// Sends no steps, which shows whether the server takes any.
    pub(super) fn greet(&self) -> Result<ServerGreeting, LinkFailure> {
        let mut response = self.post(b"[]")?;
        let version = response.headers().get("deloop-version").and_then(|value| value.to_str().ok());
        let version = version.map(|version| deloop_detect::clean(version, 40));
        let mode = mode_of(&response);
        match response.body_mut().with_config().limit(ANSWER).read_to_vec() {
            Ok(answer) if answer.trim_ascii() == b"[]" => {
                Ok(ServerGreeting { version, mode, key: KeyReport::ask(&self.connection) })
            }
            _ => Err(general("this isn't a deloop server")),
        }
    }

    fn post(&self, body: &[u8]) -> Result<Response<Body>, LinkFailure> {
        let attended = if self.options.attended { "true" } else { "false" };
        let request = self.connection.post("/v1/steps");
        let request = request.query("mode", self.options.mode.as_str()).query("attended", attended);
        let mut response = request.send(body).map_err(|e| general(&e.to_string()))?;
        let status = response.status().as_u16();
        if status == 200 && response.headers().contains_key("deloop-failed-open") {
            return Err(general("its store is away"));
        }
        if status == 200 {
            return Ok(response);
        }
        let reason = match (status, reported_error(&mut response)) {
            (401, _) => format!("status 401: {}", self.connection.refused_key()),
            (_, None) => format!("status {status}"),
            (_, Some(said)) => format!("status {status}: {said}"),
        };
        Err(if matches!(status, 400 | 413 | 415 | 422) { specific(&reason) } else { general(&reason) })
    }
}

/// A failure that other events would have, too.
fn general(why: &str) -> LinkFailure {
    LinkFailure { reason: told(why), is_general: true }
}

/// A failure of this event alone.
fn specific(why: &str) -> LinkFailure {
    LinkFailure { reason: told(why), is_general: false }
}

fn told(why: &str) -> String {
    format!("the server didn't decide: {}", deloop_detect::clean(why, ERROR))
}

fn mode_of(response: &Response<Body>) -> Option<Mode> {
    let name = response.headers().get("deloop-mode")?.to_str().ok()?;
    [Mode::Shadow, Mode::Nudge, Mode::Enforce].into_iter().find(|mode| mode.as_str() == name)
}

/// Reads one decision per step. Anything else is an error.
fn read_decisions(answer: &[u8], steps: &[&Step]) -> Result<Vec<Decision>, LinkFailure> {
    let wrong = |why: &str| general(&format!("its answer isn't one decision per step: {why}"));
    let answers: Vec<Map<String, Value>> =
        serde_json::from_slice(answer).map_err(|e| wrong(&e.to_string()))?;
    if answers.len() != steps.len() {
        return Err(wrong(&format!("{} for {}", answers.len(), steps.len())));
    }
    let mut decisions = Vec::with_capacity(answers.len());
    for answer in answers {
        if let Some(error) = answer.get("error").and_then(Value::as_str) {
            return Err(specific(error));
        }
        if !["session", "step", "action"].iter().all(|key| answer.contains_key(*key)) {
            return Err(wrong("fields are missing"));
        }
        let decision = serde_json::from_value(Value::Object(answer)).map_err(|e| wrong(&e.to_string()))?;
        decisions.push(sanitized(decision));
    }
    Ok(decisions)
}

/// Limits what a decision can put into an agent's conversation or a terminal.
fn sanitized(mut decision: Decision) -> Decision {
    let invisible = |c: char| c.is_control() && c != '\n' && c != '\t';
    decision.message =
        decision.message.map(|text| text.chars().filter(|c| !invisible(*c)).take(MESSAGE).collect());
    for line in [&mut decision.user_message, &mut decision.status, &mut decision.rung].into_iter().flatten() {
        *line = deloop_detect::clean(line, LINE);
    }
    if decision.action == Action::Nudge && decision.findings.is_empty() && decision.user_message.is_none() {
        // Without a finding, it isn't about a loop.
        decision.user_message = Some("deloop passed on a message from the server".to_owned());
    }
    decision.id = decision.id.map(|id| deloop_detect::clean(&id, 80));
    decision.would = decision.would.map(|would| Box::new(sanitized(*would)));
    decision
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_decision_per_step_or_nothing() {
        let step = Step::text("s1", "Hello.");
        let read = |answer: &str| read_decisions(answer.as_bytes(), &[&step]);
        let good = r#"[{"session":"s1","step":0,"action":"nudge","level":1,"message":"a\u001b[31m\nb","role":"user","calls":[],"status":null,"findings":[]}]"#;
        let decision = read(good).ok().unwrap().remove(0);
        assert_eq!(decision.message.as_deref(), Some("a[31m\nb"));
        for (bad, is_general) in [
            ("", true),
            ("hello", true),
            ("[]", true),
            ("[{}]", true),
            ("[null]", true),
            (r#"[{"session":"s1","step":0,"action":"dance"}]"#, true),
            (r#"[{"session":"s1","step":0},{"session":"s1"}]"#, true),
            (r#"[{"error":"unknown type `dance`","index":0}]"#, false),
        ] {
            assert_eq!(read(bad).err().map(|failure| failure.is_general), Some(is_general), "{bad}");
        }
    }
}
