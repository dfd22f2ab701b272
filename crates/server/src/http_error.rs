use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use deloop_engine::RestoreError;
use deloop_store::StoreError;
use serde_json::json;

use crate::admission::{self, BODY, REQUEST};

/// Maximum length of an error about a client's text, in characters.
const LONGEST: usize = 400;

/// Why a request isn't answered as asked.
#[derive(Debug)]
pub(crate) struct HttpError {
    status: StatusCode,
    message: String,
    /// For the person who runs the server, not for the client.
    internal: Option<String>,
}

impl HttpError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), internal: None }
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

    pub(crate) fn timeout() -> Self {
        let message = format!(
            "the request took longer than {} seconds, the limit of one request; send smaller batches, or all of \
             a body at once",
            REQUEST.as_secs()
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, message)
    }

    /// Creates an error that is deloop's own fault.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self {
            internal: Some(reason.into()),
            ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "deloop failed; its log has the reason")
        }
    }

    /// Creates the error for an audit log that can't be written.
    pub(crate) fn audit_failed(reason: String) -> Self {
        let message = "the audit log can't be written; the server's log has the reason";
        Self { internal: Some(reason), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    /// Returns what only the person who runs the server should see.
    pub(crate) fn internal(&self) -> Option<&str> {
        self.internal.as_deref()
    }
}

impl From<StoreError> for HttpError {
    fn from(error: StoreError) -> Self {
        let StoreError::Database { .. } = error else { return Self::failed(error.to_string()) };
        let message = "the database failed and nothing was stored; the server's log has the reason";
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
        let mut response = json_response(&json!({"error": self.message}));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
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
