//! One record as a line: the chained part, its hash, and the payload beside it.

use deloop_types::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::audit_key::AuditKey;
use super::entry::{AuditEntry, AuditedDecision, LogNote, StepRange};
use super::safe_json::safe_json;
use super::turn_history::TurnHistory;

/// The hash that the first record of a log names.
pub(super) const NO_RECORD: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// No log has that many records, and numbers below it can be added.
pub(super) const LARGEST_SEQ: u64 = 1 << 60;
const HASH_KEY: &[u8] = br#","hash":""#;
const PAYLOAD_KEY: &[u8] = br#"","payload":"#;
const HASH_LENGTH: usize = 64;
/// Begins the code of the audit key, which ends the chained part of a record that has one.
const CODE_KEY: &[u8] = br#","code":""#;

/// One record, as `deloop audit query --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AuditRecord {
    /// Its number, from 1.
    pub seq: u64,
    /// When it happened, by the server's clock, as RFC 3339.
    pub ts: String,
    /// The random id of the server.
    pub server: String,
    /// The hash of the record before it.
    pub prev: String,
    /// Its hash.
    pub hash: String,
    /// Who did it.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// The project.
    pub project: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The worker or subagent.
    pub agent: Option<String>,
    /// The swarm.
    pub swarm: Option<String>,
    /// The steps it is about.
    pub steps: Option<StepRange>,
    /// What was decided.
    pub decision: Option<AuditedDecision>,
    /// The decision's message, shortened.
    pub message: Option<String>,
    /// The hash of the profile and options in effect.
    pub configuration: Option<String>,
    /// More about it.
    pub detail: Value,
    /// What the log notes about itself.
    pub note: Value,
    /// The last turns of a session that was stopped.
    pub turns: Option<TurnHistory>,
    /// The number of the record of the purge that removed its payload.
    pub purged: Option<u64>,
}

impl AuditRecord {
    /// Returns when it happened.
    #[must_use]
    pub fn time(&self) -> Option<Millis> {
        Millis::parse(&self.ts)
    }
}

/// The part that is chained, in the order of the line.
#[derive(Serialize, Deserialize)]
pub(super) struct ChainedPart {
    pub(super) seq: u64,
    pub(super) ts: String,
    pub(super) server: String,
    pub(super) prev: String,
    pub(super) actor: String,
    pub(super) action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    steps: Option<StepRange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<AuditedDecision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    configuration: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<LogNote>,
    /// The hash of the payload.
    pub(super) private: String,
}

/// What a purge removes. The salt keeps short texts from being guessed by their hash.
#[derive(Serialize, Deserialize)]
pub(super) struct PrivatePayload {
    salt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    swarm: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    detail: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turns: Option<TurnHistory>,
}

/// What stands in the place of a payload that was purged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tombstone {
    purged: u64,
}

/// What all records of a server have in common.
#[derive(Debug, Clone)]
pub(super) struct LineContext {
    pub(super) server: String,
    pub(super) configuration: Option<String>,
    /// What the records are authenticated with.
    pub(super) key: Option<AuditKey>,
}

/// Appends the line of a record. Returns the record's hash.
pub(super) fn write(
    entry: &AuditEntry,
    context: &LineContext,
    seq: u64,
    prev: &str,
    out: &mut Vec<u8>,
) -> Result<String, std::io::Error> {
    let payload = safe_json(&PrivatePayload {
        salt: random_hex()?,
        session: entry.session.as_ref().map(ToString::to_string),
        agent: entry.agent.clone(),
        swarm: entry.swarm.clone(),
        message: entry.message.clone(),
        detail: entry.detail.clone(),
        turns: entry.turns.clone(),
    })?;
    let chained = safe_json(&ChainedPart {
        seq,
        ts: entry.ts.to_string(),
        server: context.server.clone(),
        prev: prev.to_owned(),
        actor: entry.actor.to_string(),
        action: entry.action.clone(),
        project: entry.project.as_ref().map(ToString::to_string),
        steps: entry.steps,
        decision: entry.decision.clone(),
        configuration: context.configuration.clone(),
        note: entry.note.clone(),
        private: hash(payload.as_bytes()),
    })?;
    let mut chained = chained.strip_suffix('}').unwrap_or(&chained).to_owned();
    if let Some(key) = &context.key {
        let code = key.authenticate(chained.as_bytes());
        chained.push_str(&format!(",\"code\":\"{code}\""));
    }
    let hash = hash(chained.as_bytes());
    for part in [chained.as_bytes(), HASH_KEY, hash.as_bytes(), PAYLOAD_KEY, payload.as_bytes(), b"}\n"] {
        out.extend_from_slice(part);
    }
    Ok(hash)
}

/// A line, split into its parts. Nothing is checked yet but where they are.
#[derive(Clone, Copy)]
pub(super) struct LineParts<'a> {
    chained: &'a [u8],
    /// The hash that the line names.
    pub(super) hash: &'a str,
    payload: &'a [u8],
}

impl<'a> LineParts<'a> {
    /// Splits a line, which must end with a line feed.
    pub(super) fn of(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_suffix(b"}\n")?;
        let at = find(line, HASH_KEY)?;
        let (chained, rest) = line.split_at(at);
        let (hash, rest) = rest[HASH_KEY.len()..].split_at_checked(HASH_LENGTH)?;
        let payload = rest.strip_prefix(PAYLOAD_KEY)?;
        Some(Self { chained, hash: std::str::from_utf8(hash).ok()?, payload })
    }

    /// Parses the chained part.
    pub(super) fn parse(&self) -> Option<ChainedPart> {
        let mut text = self.chained.to_vec();
        text.push(b'}');
        let chained: ChainedPart = serde_json::from_slice(&text).ok()?;
        (chained.seq < LARGEST_SEQ).then_some(chained)
    }

    /// Returns the hash that the line must name.
    pub(super) fn actual_hash(&self) -> String {
        hash(self.chained)
    }

    /// Returns whether the record has the code of an audit key, whichever.
    pub(super) fn has_code(&self) -> bool {
        self.code().is_some()
    }

    /// Returns whether the record was written with one of these keys.
    pub(super) fn is_authentic(&self, keys: &[AuditKey]) -> bool {
        self.code().is_some_and(|(body, code)| keys.iter().any(|key| key.has_made(code, body)))
    }

    /// Splits the chained part of a record that was written with a key.
    fn code(&self) -> Option<(&'a [u8], &'a str)> {
        let chained = self.chained.strip_suffix(b"\"")?;
        let (body, code) = chained.split_at_checked(chained.len().checked_sub(HASH_LENGTH)?)?;
        Some((body.strip_suffix(CODE_KEY)?, std::str::from_utf8(code).ok()?))
    }

    /// Returns whether the payload is the one that was recorded.
    pub(super) fn has_payload(&self, chained: &ChainedPart) -> bool {
        hash(self.payload) == chained.private
    }

    /// Parses the payload, unless it was purged.
    pub(super) fn payload(&self) -> Option<PrivatePayload> {
        serde_json::from_slice(self.payload).ok()
    }

    /// Returns the number of the purge that removed the payload.
    pub(super) fn tombstone(&self) -> Option<u64> {
        let tombstone: Tombstone = serde_json::from_slice(self.payload).ok()?;
        (self.payload == tombstone_text(tombstone.purged).as_bytes()).then_some(tombstone.purged)
    }

    /// Appends the line with a tombstone in the place of its payload.
    pub(super) fn write_purged(&self, purge: u64, out: &mut Vec<u8>) {
        let tombstone = tombstone_text(purge);
        let parts = [self.chained, HASH_KEY, self.hash.as_bytes(), PAYLOAD_KEY, tombstone.as_bytes(), b"}\n"];
        parts.iter().for_each(|part| out.extend_from_slice(part));
    }

    /// Returns the whole record.
    pub(super) fn record(&self) -> Option<AuditRecord> {
        let chained = self.parse()?;
        let payload = self.payload();
        let purged = self.tombstone();
        if payload.is_none() && purged.is_none() {
            return None;
        }
        let (session, agent, swarm, message, detail, turns) = match payload {
            Some(p) => (p.session, p.agent, p.swarm, p.message, p.detail, p.turns),
            None => (None, None, None, None, Value::Null, None),
        };
        Some(AuditRecord {
            seq: chained.seq,
            ts: chained.ts,
            server: chained.server,
            prev: chained.prev,
            hash: self.hash.to_owned(),
            actor: chained.actor,
            action: chained.action,
            project: chained.project,
            session,
            agent,
            swarm,
            steps: chained.steps,
            decision: chained.decision,
            message,
            configuration: chained.configuration,
            detail,
            note: serde_json::to_value(&chained.note).unwrap_or_default(),
            turns,
            purged,
        })
    }
}

/// Reads a line as verification and queries do.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn read_line(line: &[u8]) {
    let Some(parts) = LineParts::of(line) else { return };
    let _ = (parts.parse().map(|chained| parts.has_payload(&chained)), parts.record(), parts.has_code());
}

fn tombstone_text(purge: u64) -> String {
    format!("{{\"purged\":{purge}}}")
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Returns 16 random bytes in hexadecimal.
pub(super) fn random_hex() -> Result<String, std::io::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_with_a_code_is_authentic_for_its_key_alone() {
        let keys = [b'a', b'b'].map(|byte| [AuditKey::of_secret(&[byte; 32]).unwrap()]);
        let line_of = |key| {
            let context = LineContext { server: "a".to_owned(), configuration: None, key };
            let mut line = Vec::new();
            write(&AuditEntry::new(Millis(1), "me", "x"), &context, 1, NO_RECORD, &mut line).unwrap();
            line
        };
        let line = line_of(Some(keys[0][0].clone()));
        let parts = LineParts::of(&line).unwrap();
        assert!(parts.has_code() && parts.is_authentic(&keys[0]) && !parts.is_authentic(&keys[1]));
        assert!(parts.parse().is_some() && parts.actual_hash() == parts.hash);
        let line = line_of(None);
        let parts = LineParts::of(&line).unwrap();
        assert!(!parts.has_code() && !parts.is_authentic(&keys[0]));
    }

    #[test]
    fn a_line_is_read_back_and_can_be_purged() {
        let detail = json!({"x": ",\"hash\":\"", "hash": "z", "b": [{"a": 1, "hash": "y"}]});
        let entry = AuditEntry::new(Millis(1000), "me,\"hash\":\"", "session.reset")
            .of_session(&"s\u{1b}1".into())
            .with_detail(detail.clone());
        let context = LineContext { server: "a".to_owned(), configuration: None, key: None };
        let mut line = Vec::new();
        let hash = write(&entry, &context, 7, NO_RECORD, &mut line).unwrap();
        let parts = LineParts::of(&line).unwrap();
        let record = parts.record().unwrap();
        assert_eq!((record.hash.as_str(), parts.actual_hash()), (hash.as_str(), hash.clone()));
        assert_eq!((record.session.as_deref(), &record.detail), (Some("s\u{1b}1"), &detail));
        assert!(parts.has_payload(&parts.parse().unwrap()));
        let mut purged = Vec::new();
        parts.write_purged(9, &mut purged);
        let parts = LineParts::of(&purged).unwrap();
        assert_eq!((parts.actual_hash(), parts.tombstone()), (hash, Some(9)));
        assert_eq!(parts.record().unwrap().session, None);
        assert!(!String::from_utf8(purged).unwrap().contains("s\\u001b1"));
    }
}
