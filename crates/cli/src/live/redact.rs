//! Sessions with every word replaced by a stand-in: what is equal stays equal, what is alike stays alike, and nothing
//! can be read.

use std::hash::{BuildHasher, RandomState};

use deloop_detect::mask;
use deloop_types::{Body, Call, Step, ToolResult, Turn, UserText};
use serde_json::{Map, Value};

/// So many words of a text get a stand-in each; what follows gets one together.
const WORDS: usize = 400;

/// Stand-ins that are the same within one file and mean nothing outside of it.
pub(super) struct Redact {
    salt: RandomState,
    /// The session's new name.
    session: String,
}

impl Redact {
    pub(super) fn new(session: &str) -> Self {
        Self { salt: RandomState::new(), session: session.to_owned() }
    }

    /// The step without its words; `None` when nothing would be left of it.
    pub(super) fn step(&self, step: &Step) -> Option<Step> {
        let body = match &step.body {
            Body::Turn(turn) => Body::Turn(Turn::new(
                self.text(&turn.text),
                turn.calls.iter().map(|call| self.call(call)).collect(),
            )),
            Body::Result(result) => Body::Result({
                let mut made = ToolResult::default();
                made.id = result.id.as_deref().map(|id| self.word(id));
                made.ok = None;
                made.outcome = result.ended();
                made.output = self.output(&result.output);
                made
            }),
            Body::User(user) => Body::User(UserText::new(self.text(&user.text), user.origin)),
            Body::Usage(usage) => Body::Usage(usage.clone()),
            Body::Compact => Body::Compact,
            // The whole message follows.
            _ => return None,
        };
        let agent = step.agent.as_deref().map(|agent| self.word(agent));
        Some({
            let mut made = Step::new(self.session.as_str(), body);
            made.agent = agent;
            made.ts = step.ts;
            made
        })
    }

    fn call(&self, call: &Call) -> Call {
        let mut made = Call::new(call.tool.clone(), self.value(&call.args));
        made.id = call.id.as_deref().map(|id| self.word(id));
        made
    }

    /// Results are compared without their volatile parts, which cannot be told from others afterwards.
    fn output(&self, output: &Value) -> Value {
        match output {
            Value::Null => Value::Null,
            Value::String(text) => Value::String(self.text(&mask(text))),
            other => Value::String(self.text(&mask(&other.to_string()))),
        }
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Number(n) => Value::String(self.word(&n.to_string())),
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(list) => list.iter().map(|v| self.value(v)).collect(),
            Value::Object(map) => {
                let entries = map.iter().map(|(key, v)| (self.key(key), self.value(v)));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// The names of arguments belong to the tool and stay, unless they look like data.
    fn key(&self, key: &str) -> String {
        let plain = key.len() <= 32 && key.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_' || b == b'-');
        if plain { key.to_owned() } else { self.word(key) }
    }

    fn text(&self, text: &str) -> String {
        let mut words = text.split_whitespace();
        let mut out: Vec<String> = words.by_ref().take(WORDS).map(|word| self.word(word)).collect();
        let rest: Vec<&str> = words.collect();
        if !rest.is_empty() {
            out.push(self.word(&rest.join(" ")));
        }
        out.join(" ")
    }

    /// Letters only: digits would be taken for counters and ids.
    fn word(&self, word: &str) -> String {
        let hash = self.salt.hash_one(word);
        (0..10).map(|n| char::from(b'a' + u8::try_from((hash >> (4 * n)) & 15).unwrap_or(0))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_stays_equal_and_nothing_can_be_read() {
        let redact = Redact::new("d1");
        let call = |command: &str| Step::call("secret-session", "Bash", json!({"command": command, "n": 7}));
        let line = |step: &Step| serde_json::to_string(&redact.step(step).unwrap()).unwrap();
        assert_eq!(line(&call("deploy hunter2")), line(&call("deploy hunter2")));
        assert_ne!(line(&call("deploy hunter2")), line(&call("deploy hunter3")));
        for word in ["deploy", "hunter2", "secret", "7"] {
            assert!(!line(&call("deploy hunter2")).contains(word));
        }
        assert!(line(&call("x")).contains("Bash") && line(&call("x")).contains("command"));
        let result = |text: &str| line(&Step::result("s", false, text));
        assert_eq!(result("failed in 0.3s"), result("failed in 1.7s"));
        assert_ne!(result("3 failed"), result("2 failed"));
        assert!(result("x").contains(r#""outcome":"error""#));
    }
}
