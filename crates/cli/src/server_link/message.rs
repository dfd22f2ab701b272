//! Sends an operator's message to the agent of a session, through the server.

use std::time::Duration;

use deloop_detect::clean;
use serde_json::{Value, json};

use super::connection::{ANSWER, ServerConnection, reported_error, segment};
use super::settings::ServerSettings;
use crate::exit::Failure;

/// How long a person waits for the server. No agent waits meanwhile, so it is longer than the deadline of an event.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum length of an error that the server reports, in characters.
const ERROR: usize = 300;

/// Queues a message for the agent of a session.
///
/// # Errors
/// When the server can't be reached, doesn't know the session, or refuses the key or the text. The message names the fix.
pub(crate) fn send_message(settings: &ServerSettings, session: &str, text: &str) -> Result<(), Failure> {
    let url = clean(&settings.url, 200);
    let connection = ServerConnection::new(settings, PATIENCE)?;
    let body = json!({"text": text}).to_string();
    let sent = connection.post(&format!("/v1/sessions/{}/message", segment(session))).send(body.as_bytes());
    let mut response =
        sent.map_err(|e| Failure::new(format!("{url} didn't answer: {}", clean(&e.to_string(), ERROR))))?;
    let status = response.status().as_u16();
    let not_ours =
        || Failure::new(format!("{url} answered with status {status}; this isn't a deloop server"));
    if status == 200 {
        let answer = response.body_mut().with_config().limit(ANSWER).read_to_vec().unwrap_or_default();
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        return if answer["queued"] == true { Ok(()) } else { Err(not_ours()) };
    }
    let error = reported_error(&mut response).ok_or_else(not_ours)?;
    let error = clean(&error, ERROR);
    Err(Failure::new(match status {
        404 => unknown(settings, &url, session),
        401 => format!("{url} refused the message: {}", connection.refused_key()),
        _ => format!("{url} refused the message: {error}"),
    }))
}

fn unknown(settings: &ServerSettings, url: &str, session: &str) -> String {
    let place = match &settings.project {
        Some(project) => format!("project `{}` of {url}", clean(project, 64)),
        None => url.to_owned(),
    };
    let session = clean(session, 200);
    format!(
        "there is no session `{session}` in {place}. Write its whole name, which `GET /v1/sessions` lists; the server \
         knows a session after its first step"
    )
}
