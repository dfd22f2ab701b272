//! What the sender of steps reports about its side, in the query of `POST /v1/steps`.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::Uri;
use deloop_engine::Options;
use deloop_types::Mode;
use serde::Deserialize;

use crate::http_error::HttpError;

/// The mode of the sender, and whether a person is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct CallerOptions {
    mode: Option<Mode>,
    attended: Option<bool>,
}

impl CallerOptions {
    /// Returns the options that apply to the sender's steps. The stricter one of the two modes applies. Only the sender
    /// knows whether a person is there, so the server's option is for senders that don't report it.
    pub(crate) fn over(self, server: Options) -> Options {
        let mode = self.mode.map_or(server.mode, |mode| mode.max(server.mode));
        Options::new(mode, self.attended.unwrap_or(server.attended)).with_roles(server.roles)
    }

    /// Returns whether the sender reports its mode, so that it wants to know the server's.
    pub(crate) fn has_mode(self) -> bool {
        self.mode.is_some()
    }

    /// Reads them from the query.
    pub(crate) fn read(uri: &Uri) -> Result<Self, HttpError> {
        if uri.query().is_none() {
            return Ok(Self::default());
        }
        let wrong = |_: QueryRejection| {
            HttpError::bad_request(
                "`mode` must be shadow, nudge or enforce, and `attended` true or false, each at most once",
            )
        };
        Query::try_from_uri(uri).map(|Query(options)| options).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_mode_and_the_senders_person_apply() {
        let over = |mode, attended, server| {
            let options = CallerOptions { mode, attended }.over(Options::new(server, true));
            (options.mode, options.attended)
        };
        assert_eq!(over(None, None, Mode::Nudge), (Mode::Nudge, true));
        assert_eq!(over(Some(Mode::Nudge), Some(false), Mode::Enforce), (Mode::Enforce, false));
        assert_eq!(over(Some(Mode::Enforce), None, Mode::Shadow), (Mode::Enforce, true));
        assert_eq!(over(Some(Mode::Shadow), Some(true), Mode::Nudge), (Mode::Nudge, true));
    }
}
