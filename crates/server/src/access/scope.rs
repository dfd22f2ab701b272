use axum::http::Method;
use serde::{Deserialize, Serialize};

/// What a key allows. Each scope stands for itself, except that `admin` includes all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// Send steps. They don't lift a stop.
    Ingest,
    /// Speak for a person: with it, human text, interventions and ends lift a stop.
    Attend,
    /// Read sessions, swarms, checkpoints, events and metrics.
    Read,
    /// Change sessions and swarms: reset, end, message, restore, clear.
    Operate,
    /// Everything, including what deletes records for good.
    Admin,
}

impl KeyScope {
    /// All scopes.
    pub const ALL: [Self; 5] = [Self::Ingest, Self::Attend, Self::Read, Self::Operate, Self::Admin];

    /// Returns its name on the command line and in the key file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Attend => "attend",
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    /// Returns whether these scopes include it.
    pub(crate) fn is_among(self, scopes: &[Self]) -> bool {
        scopes.iter().any(|have| *have == self || *have == Self::Admin)
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// Returns the scope that a request needs; `None` if any key will do. A path that isn't listed needs `read` to be read
    /// and `operate` otherwise.
    pub(crate) fn needed(method: &Method, path: &str) -> Option<Self> {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        Some(match path {
            OWN_KEY if reads => return None,
            "/v1/steps" => Self::Ingest,
            _ if ADMIN.iter().any(|part| is_below(path, part)) => Self::Admin,
            // Deletes a session and its records for good.
            _ if *method == Method::DELETE && is_below(path, "/v1/sessions") => Self::Admin,
            _ if reads => Self::Read,
            _ => Self::Operate,
        })
    }
}

/// The path that says what a key is, for its holder.
const OWN_KEY: &str = "/v1/key";
/// Paths that only `admin` may use, whatever the method.
const ADMIN: [&str; 2] = ["/v1/keys", "/v1/purge"];

fn is_below(path: &str, part: &str) -> bool {
    path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_needs() {
        for (method, path, needed) in [
            (Method::POST, "/v1/steps", KeyScope::Ingest),
            (Method::GET, "/v1/sessions/s1/checkpoint", KeyScope::Read),
            (Method::HEAD, "/metrics", KeyScope::Read),
            (Method::PUT, "/v1/sessions/s1/checkpoint", KeyScope::Operate),
            (Method::POST, "/v1/sessions/s1/reset", KeyScope::Operate),
            (Method::POST, "/v1/steps/", KeyScope::Operate),
            (Method::DELETE, "/v1/swarms/s1", KeyScope::Operate),
            (Method::DELETE, "/v1/sessions/s1", KeyScope::Admin),
            (Method::GET, "/v1/keys", KeyScope::Admin),
            (Method::POST, "/v1/purge/s1", KeyScope::Admin),
            (Method::GET, "/v1/purges", KeyScope::Read),
        ] {
            assert_eq!(KeyScope::needed(&method, path), Some(needed), "{method} {path}");
        }
        assert_eq!(KeyScope::needed(&Method::GET, "/v1/key"), None);
    }
}
