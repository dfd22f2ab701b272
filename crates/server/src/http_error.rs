use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use deloop_engine::RestoreError;
use deloop_store::StoreError;
use serde_json::json;

use crate::access::RateReached;
use crate::admission::{self, BODY, REQUEST};
use crate::connections::ConnectionLimit;
use crate::readiness::ReadyReason;
use crate::shared::{ServerNotice, Shared};

/// Maximum length of an error about a client's text, in characters.
const LONGEST: usize = 400;

const DATABASE_FAILED: &str = "the database failed and nothing was stored; the server's log has the reason";

/// Why a request isn't answered as asked.
#[derive(Debug, Clone)]
pub(crate) struct HttpError {
    status: StatusCode,
    message: String,
    retry_after: Option<u64>,
    /// For the person who runs the server, not for the client.
    internal: Option<String>,
    /// Why the server isn't ready.
    reasons: Vec<ReadyReason>,
}

impl HttpError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1);
        Self { status, message: message.into(), retry_after, internal: None, reasons: Vec::new() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no such {what}"))
    }

    pub(crate) fn too_large() -> Self {
        let message = format!(
            "the body is larger than {} MiB, the limit of one request; split it into smaller batches",
            BODY >> 20
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub(crate) fn compressed() -> Self {
        let message = "compressed bodies aren't supported; send the body as it is";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    pub(crate) fn too_many_steps() -> Self {
        let message = format!(
            "the batch has more than {} steps, the limit of one request; split it into smaller batches",
            admission::STEPS
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub(crate) fn too_busy(limit: usize, what: &str) -> Self {
        let message =
            format!("the server is handling {limit} {what}, its limit; send the request again in a second");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    pub(crate) fn too_many_connections(limit: ConnectionLimit) -> Self {
        let message = match limit {
            ConnectionLimit::Server(limit) => format!(
                "the server answers requests on {limit} connections, its limit; send the request again in a second"
            ),
            ConnectionLimit::Key(limit) => format!(
                "this key has {limit} connections with requests in progress, its limit; share connections, or raise \
                 `connections_per_key` under `[serve.limits]`"
            ),
        };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    pub(crate) fn timeout() -> Self {
        let message = format!(
            "the request took longer than {} seconds, the limit of one request; send smaller batches, or all of \
             a body at once",
            REQUEST.as_secs()
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, message)
    }

    /// Creates the one answer to a missing, unknown, expired or revoked key.
    pub(crate) fn unauthorized() -> Self {
        let message = "this server needs a valid key: send `Authorization: Bearer KEY`, with a key from `deloop keys add`";
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    pub(crate) fn wrong_scope(scope: &str) -> Self {
        let message = format!(
            "this request needs a key with the scope `{scope}`; `deloop keys add NAME --scope {scope}` creates one"
        );
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub(crate) fn foreign_project() -> Self {
        let message = "this key is for another project; leave `project` out, or use a key for that project";
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub(crate) fn needs_all_projects() -> Self {
        let message = "this answer is about all projects; use a key that was created with `--all-projects`";
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub(crate) fn keys_unreadable() -> Self {
        let message = "the server can't read its keys, so it refuses every request; its log has the reason";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    pub(crate) fn rate_reached(reached: &RateReached, what: &str) -> Self {
        let message = format!(
            "this key may send {} {what} per second; wait as long as `Retry-After` says, or raise `{what}_per_second` \
             under `[serve.limits]`",
            reached.limit
        );
        Self::wait(message, reached.wait)
    }

    pub(crate) fn too_many_listeners(limit: u64) -> Self {
        let message = format!(
            "{limit} clients listen for events with this key, its limit; close one of them, or raise `listeners` under \
             `[serve.limits]`"
        );
        Self::wait(message, Duration::from_secs(1))
    }

    pub(crate) fn too_many_failures(wait: Duration) -> Self {
        let message =
            "too many requests without a valid key came from this address; check the key and try again later";
        Self::wait(message, wait)
    }

    fn wait(message: impl Into<String>, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self { retry_after: Some(seconds.max(1)), ..Self::new(StatusCode::TOO_MANY_REQUESTS, message) }
    }

    /// Creates the answer of a server that can't do its work, with the reasons if the sender may know them.
    pub(crate) fn unready(reasons: Option<&[ReadyReason]>) -> Self {
        let Some(reasons) = reasons else {
            let message = "this server isn't ready; with a key, the answer says why";
            return Self::new(StatusCode::SERVICE_UNAVAILABLE, message);
        };
        let why: Vec<&str> = reasons.iter().map(|reason| reason.why.as_str()).collect();
        Self { reasons: reasons.to_vec(), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, why.join("; ")) }
    }

    /// Creates the error for steps that weren't stored, if the reason was logged before.
    pub(crate) fn database_failed() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, DATABASE_FAILED)
    }

    /// Creates an error that is deloop's own fault.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self {
            internal: Some(reason.into()),
            ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "deloop failed; its log has the reason")
        }
    }

    /// Creates the error of a request that made deloop panic.
    pub(crate) fn from_panic() -> Self {
        crate::shared::panicked()
    }

    /// Creates the error for an audit log that can't be written.
    pub(crate) fn audit_failed(reason: String) -> Self {
        let message = "the audit log can't be written; the server's log has the reason";
        Self { internal: Some(reason), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    /// Returns the status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns what the client is told.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Tells the person who runs the server what isn't for the client, once.
    pub(crate) fn told(mut self, shared: &Shared) -> Self {
        if let Some(reason) = self.internal.take() {
            shared.tell(ServerNotice::Failed(reason));
        }
        self
    }
}

impl From<StoreError> for HttpError {
    fn from(error: StoreError) -> Self {
        let message = match error {
            StoreError::Database { .. } => DATABASE_FAILED,
            StoreError::Unavailable { .. } => {
                "Redis is unreachable or too slow; the server's log has the reason, send the request again later"
            }
            StoreError::Refused { .. } => {
                "Redis refused a command, for example because of its password; the server's log has the reason"
            }
            StoreError::Decode(_) | StoreError::Later { .. } => {
                "this release of deloop can't read what is stored and leaves it as it is; the server's log has the reason"
            }
            error => return Self::failed(error.to_string()),
        };
        Self { internal: Some(error.to_string()), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }
}

impl From<RestoreError> for HttpError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Store(error) => error.into(),
            other => Self::bad_request(other.to_string()),
        }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let mut response = match self.reasons.is_empty() {
            true => json_response(&json!({"error": self.message})),
            false => json_response(&json!({"error": self.message, "reasons": self.reasons})),
        };
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(self.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
            // What is left of the body isn't read.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Returns a JSON response.
pub(crate) fn json_response(value: &impl serde::Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Shortens an error that may quote a client's text, and masks what looks like a secret.
pub(crate) fn safe_error(error: &str) -> String {
    let end = error.char_indices().nth(LONGEST).map_or(error.len(), |(end, _)| end);
    let cut = if end < error.len() { "…" } else { "" };
    format!("{}{cut}", deloop_detect::redact(&error[..end]))
}
