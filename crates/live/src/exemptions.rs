//! Exemptions: paused sessions, patterns marked as legitimate, allowed calls.

use deloop_detect::telling_argument;
use deloop_store::StoreError;
use deloop_types::{Call, Decision, Millis};
use glob::Pattern as Glob;

use crate::journal::{Journal, Pardon};
use crate::outcome_tracking::patterns;

/// The detector name of a pardon for a call, which is identified by its fingerprint.
pub const CALL: &str = "";

fn print_of(pardon: &Pardon) -> String {
    format!("{:08x}", pardon.pattern)
}

/// Why a decision isn't carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The session is paused. The decision is recorded as such.
    Paused,
    /// A person marked this pattern as legitimate.
    Pardoned,
}

/// The current exemptions of a session.
pub(crate) struct Exemptions {
    pub(crate) paused: bool,
    pardons: Vec<Pardon>,
    allowed: Vec<String>,
}

impl Exemptions {
    pub(crate) fn of(journal: &impl Journal, session: &str, now: Millis) -> Result<Self, StoreError> {
        Ok(Self {
            paused: journal.paused(session, now)?.is_some(),
            pardons: journal.pardons(session)?,
            allowed: journal.allowed()?,
        })
    }

    /// Returns whether a person allowed this call.
    pub(crate) fn allows(&self, call: &Call) -> bool {
        if self.allowed.is_empty() {
            return false;
        }
        let argument = telling_argument(&call.args);
        self.allowed.iter().any(|pattern| {
            let (tool, rest) = parts(pattern);
            is_like(tool, &call.tool) && is_like(rest, &argument)
        })
    }

    /// Returns whether there are new pardons since the session's last event.
    pub(crate) fn is_news(&self) -> bool {
        self.pardons.iter().any(|p| !p.known)
    }

    /// Returns why this decision, made at these calls, isn't carried out.
    pub(crate) fn reason(&self, decision: &Decision, calls: &[&str]) -> Option<Reason> {
        if self.paused {
            return Some(Reason::Paused);
        }
        let pardoned = |(detector, pattern): &(String, u64)| {
            self.pardons.iter().any(|p| p.detector == *detector && p.pattern == *pattern)
        };
        let about = patterns(decision);
        let call = |print: &&str| self.pardons.iter().any(|p| p.detector == CALL && print_of(p) == *print);
        let honest = (!about.is_empty() && about.iter().all(pardoned))
            || (!calls.is_empty() && calls.iter().all(call));
        honest.then_some(Reason::Pardoned)
    }
}

/// Why a pattern is invalid.
#[derive(Debug)]
pub struct InvalidPattern {
    /// The invalid part.
    pub part: String,
    /// The error.
    pub source: glob::PatternError,
}

impl std::fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { part, source } = self;
        write!(
            f,
            "`{part}` isn't a pattern ({source}). `*` matches any text, `?` one character, and `[[]` a bracket"
        )
    }
}

impl std::error::Error for InvalidPattern {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Checks a pattern of calls: a tool and optionally its argument, each with `*` and `?`.
///
/// # Errors
/// When it isn't valid.
pub fn check_pattern(pattern: &str) -> Result<(), InvalidPattern> {
    let (tool, rest) = parts(pattern);
    for part in [tool, rest] {
        Glob::new(part).map_err(|source| InvalidPattern { part: part.to_owned(), source })?;
    }
    Ok(())
}

/// Splits a pattern into those of the tool and of its argument; without the latter, any argument matches.
fn parts(pattern: &str) -> (&str, &str) {
    match pattern.trim().split_once(char::is_whitespace) {
        Some((tool, rest)) => (tool, rest.trim_start()),
        None => (pattern.trim(), "*"),
    }
}

fn is_like(pattern: &str, text: &str) -> bool {
    Glob::new(pattern).is_ok_and(|pattern| pattern.matches(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_and_argument_both_count() {
        let allowed = |pattern: &str, tool: &str, command: &str| {
            let exemptions =
                Exemptions { paused: false, pardons: Vec::new(), allowed: vec![pattern.to_owned()] };
            exemptions.allows(&Call::new(tool, json!({"command": command, "timeout": 5})))
        };
        assert!(allowed("Bash npm run watch*", "Bash", "npm run watch --port 1"));
        assert!(!allowed("Bash npm run watch*", "Bash", "npm run build"));
        assert!(!allowed("Bash npm run watch*", "Shell", "npm run watch"));
        assert!(allowed("mcp__ci__status", "mcp__ci__status", "anything (at all)"));
        assert!(allowed("mcp__ci__*", "mcp__ci__status", ""));
        assert!(!allowed("Bash ls", "Bash", "ls /tmp"));
        assert!(allowed("Bash ls (a)", "Bash", "ls (a)"));
    }
}
