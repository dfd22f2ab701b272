use std::collections::VecDeque;

use deloop_detect::{clean, quote, redact, short_call, short_hash, write_canonical};
use deloop_types::{Body, Call, Outcome, Step, ToolResult, Turn};
use serde::{Deserialize, Serialize};

/// Number of turns kept.
const TURNS: usize = 50;
/// Number of calls kept per turn.
const CALLS: usize = 16;
/// Maximum length of a turn's text in the short form, in characters.
const SHORT_TEXT: usize = 160;
/// Length to which the texts of older turns are cut when the history is full, in characters.
const SHORTER_TEXT: usize = 32;
/// Maximum size of a history in the short form, in bytes of JSON, without what surrounds the turns.
const SHORT_SIZE: usize = 8_000;
/// Maximum length of what is kept of a turn in the form of its text, in bytes.
const LONG_TURN: usize = 4 << 10;
/// Maximum length of an agent's name, in characters.
const AGENT: usize = 40;

/// How much of a turn is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnForm {
    /// The beginning of its text, and each call's tool and most telling argument.
    #[default]
    Short,
    /// Its text and the arguments of its calls, up to 4 KiB together.
    Text,
}

/// The last 50 turns of a session, for the audit log: what the agent said, what it called and how that ended. Secrets
/// are masked. In the short form it takes less than 8 KiB of JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnHistory {
    form: TurnForm,
    /// Number of turns so far, those included that were dropped.
    count: u64,
    turns: VecDeque<AuditedTurn>,
}

/// One turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditedTurn {
    /// The turn's number in its session, from 1.
    pub turn: u64,
    /// The worker or subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Its calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<TurnCall>,
    /// Number of further calls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_calls: u64,
    /// A hash of the turn's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
}

/// One call of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnCall {
    /// The tool and its most telling argument.
    pub call: String,
    /// All arguments, as JSON, if texts are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// How it ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// A hash of the id that its result names, until the result arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    /// Whether a result arrived, also one that doesn't say how the call ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    done: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl TurnHistory {
    /// Creates an empty history.
    #[must_use]
    pub fn new(form: TurnForm) -> Self {
        Self { form, ..Self::default() }
    }

    /// Adds a step: a turn, or the result of a call. Other steps change nothing, except that the end of the session
    /// clears it.
    pub fn push(&mut self, step: &Step) {
        match &step.body {
            Body::Turn(turn) => self.add_turn(turn, step.agent.as_deref()),
            Body::Result(result) => self.add_result(&AnsweredCall::of(result, step.agent.as_deref())),
            Body::End => *self = Self::new(self.form),
            _ => return,
        }
        self.shrink();
    }

    /// Notes that turns were left out, so that the next one has the right number.
    pub(super) fn skip_to(&mut self, count: u64) {
        self.count = self.count.max(count);
    }

    /// Returns the turns, oldest first.
    pub fn turns(&self) -> impl ExactSizeIterator<Item = &AuditedTurn> {
        self.turns.iter()
    }

    /// Returns the number of turns of the session so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    fn add_turn(&mut self, turn: &Turn, agent: Option<&str>) {
        let agent = agent.map(|agent| clean(agent, AGENT));
        let id = turn.id.as_deref().map(hash);
        // Parallel calls may arrive one by one, as pieces of one turn.
        let goes_on = |last: &&mut AuditedTurn| id.is_some() && last.id == id && last.agent == agent;
        let is_new = self.turns.back_mut().filter(goes_on).is_none();
        if is_new {
            self.count += 1;
            self.turns.push_back(AuditedTurn { turn: self.count, agent, id, ..AuditedTurn::default() });
        }
        let form = self.form;
        let Some(entry) = self.turns.back_mut() else { return };
        let mut room = LONG_TURN.saturating_sub(entry.long_size());
        if entry.text.is_empty() {
            entry.text = match form {
                TurnForm::Short => quote(&turn.text, SHORT_TEXT),
                TurnForm::Text => cut(&redact(&turn.text), room),
            };
            room = room.saturating_sub(entry.text.len());
        }
        for call in &turn.calls {
            if entry.calls.len() == CALLS {
                entry.more_calls += 1;
                continue;
            }
            let args = (form == TurnForm::Text).then(|| arguments(call, room));
            room = room.saturating_sub(args.as_ref().map_or(0, String::len));
            entry.calls.push(TurnCall {
                call: short_call(&call.tool, &call.args).to_string(),
                args,
                id: call.id.as_deref().map(hash),
                ..TurnCall::default()
            });
        }
    }

    /// Notes how a call ended.
    pub(super) fn push_answer(&mut self, answered: &AnsweredCall) {
        self.add_result(answered);
        self.shrink();
    }

    /// A result without an id belongs to the oldest unanswered call of the latest turn that has any.
    fn add_result(&mut self, answered: &AnsweredCall) {
        let AnsweredCall { agent, id, outcome } = answered;
        let mine = self.turns.iter_mut().rev().filter(|turn| turn.agent.as_deref() == agent.as_deref());
        let open = |call: &&mut TurnCall| !call.done && (id.is_none() || call.id == *id);
        let Some(call) = mine.flat_map(|turn| turn.calls.iter_mut().find(open)).next() else { return };
        call.outcome = *outcome;
        if call.outcome != Some(Outcome::Running) {
            (call.done, call.id) = (true, None);
        }
    }

    /// Drops what no longer fits: turns beyond the last 50, then texts of old turns, then old turns.
    fn shrink(&mut self) {
        while self.turns.len() > TURNS {
            self.turns.pop_front();
        }
        if self.form == TurnForm::Text {
            return;
        }
        let mut size: usize = self.turns.iter().map(size).sum();
        for turn in &mut self.turns {
            if size <= SHORT_SIZE {
                return;
            }
            if turn.text.len() <= SHORTER_TEXT && turn.id.is_none() {
                continue;
            }
            let before = self::size(turn);
            turn.text = clean(&turn.text, SHORTER_TEXT - 2);
            turn.id = None;
            size -= before - self::size(turn).min(before);
        }
        while size > SHORT_SIZE {
            size -= self.turns.pop_front().map_or(size, |turn| self::size(&turn));
        }
    }
}

/// What a history needs of a result.
#[derive(Debug)]
pub(super) struct AnsweredCall {
    agent: Option<String>,
    id: Option<u32>,
    outcome: Option<Outcome>,
}

impl AnsweredCall {
    pub(super) fn of(result: &ToolResult, agent: Option<&str>) -> Self {
        let agent = agent.map(|agent| clean(agent, AGENT));
        Self { agent, id: result.id.as_deref().map(hash), outcome: result.ended() }
    }
}

impl AuditedTurn {
    fn long_size(&self) -> usize {
        self.text.len()
            + self.calls.iter().filter_map(|call| call.args.as_ref()).map(String::len).sum::<usize>()
    }
}

/// Returns at least the size of a turn in the short form, in bytes of JSON.
fn size(turn: &AuditedTurn) -> usize {
    // Cleaned text has nothing else that JSON escapes.
    let text = |text: &str| text.len() + text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    let agent = turn.agent.as_deref().map_or(0, |agent| text(agent) + 11);
    let said = if turn.text.is_empty() { 0 } else { text(&turn.text) + 10 };
    let calls: usize = turn
        .calls
        .iter()
        .map(|call| {
            let outcome = if call.outcome.is_some() { 22 } else { 0 };
            text(&call.call) + 12 + outcome + call.id.map_or(0, |_| 16) + if call.done { 12 } else { 0 }
        })
        .sum();
    let brackets = if turn.calls.is_empty() { 0 } else { 11 };
    let more = if turn.more_calls > 0 { 24 } else { 0 };
    let number = 10 + turn.turn.checked_ilog10().unwrap_or(0) as usize;
    number + agent + said + calls + brackets + more + turn.id.map_or(0, |_| 16) + 2
}

fn arguments(call: &Call, room: usize) -> String {
    let mut text = String::new();
    write_canonical(&call.args, &mut text);
    cut(&redact(&text), room)
}

fn cut(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let Some(mut end) = room.checked_sub('…'.len_utf8()) else { return String::new() };
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

fn hash(id: &str) -> u32 {
    u32::try_from(short_hash(id.as_bytes()) >> 32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn json_of(history: &TurnHistory) -> String {
        serde_json::to_string(history).unwrap()
    }

    fn call(id: &str, command: &str) -> Call {
        Call::new("bash", json!({"command": command})).with_id(id)
    }

    #[test]
    fn results_find_their_calls() {
        let mut history = TurnHistory::default();
        history.push(&Step::turn("s", "Look.", vec![call("c1", "ls"), call("c2", "make")]));
        history.push(&Step::result("s", false, "boom").for_call("c2"));
        history.push(&Step::turn("s", "", vec![Call::new("read", json!({"path": "a.rs"}))]));
        history.push(&Step::result("s", true, "…"));
        history.push(&Step::result("s", true, "…").for_call("c9"));
        let turns: Vec<&AuditedTurn> = history.turns().collect();
        assert_eq!((turns.len(), history.count(), turns[0].text.as_str()), (2, 2, "Look."));
        let ended =
            |turn: usize, n: usize| (turns[turn].calls[n].call.as_str(), turns[turn].calls[n].outcome);
        assert_eq!(ended(0, 0), ("bash(ls)", None));
        assert_eq!(ended(0, 1), ("bash(make)", Some(Outcome::Error)));
        assert_eq!(ended(1, 0), ("read(a.rs)", Some(Outcome::Ok)));
        let back: TurnHistory = serde_json::from_str(&json_of(&history)).unwrap();
        assert_eq!(back, history);
        history.push(&Step::end("s"));
        assert_eq!(history, TurnHistory::default());
    }

    #[test]
    fn pieces_of_a_turn_are_one_turn() {
        let mut history = TurnHistory::default();
        for n in 0..20 {
            history.push(&Step::call("s", "bash", json!({"command": n.to_string()})).in_turn("t1"));
        }
        history.push(&Step::call("s", "bash", json!({})).in_turn("t1").by("worker"));
        let turns: Vec<&AuditedTurn> = history.turns().collect();
        assert_eq!((turns.len(), turns[0].calls.len(), turns[0].more_calls), (2, CALLS, 4));
    }

    #[test]
    fn it_stays_small_and_keeps_fifty_ordinary_turns() {
        let mut history = TurnHistory::default();
        for n in 0..200 {
            let text = format!(
                "Turn {n}: I will read the configuration file and look for the broken setting again."
            );
            history.push(&Step::turn("s", text, vec![call("c", "cat config/settings.toml | head -50")]));
            history.push(&Step::result("s", false, "No such file").for_call("c"));
            assert!(json_of(&history).len() < 8 << 10, "{}", json_of(&history).len());
        }
        assert_eq!((history.turns().len(), history.count()), (TURNS, 200));
        assert!(history.turns().last().unwrap().text.ends_with("setting again."));
        let hostile = "\"\\漢\u{1b}\n".repeat(4000);
        for n in 0..60 {
            let calls = (0..40).map(|_| call(&hostile, &hostile)).collect();
            history
                .push(&Step::turn("s", hostile.as_str(), calls).by(hostile.as_str()).in_turn(n.to_string()));
            assert!(json_of(&history).len() < 8 << 10, "{}", json_of(&history).len());
        }
        assert!(history.turns().len() > 1);
    }

    #[test]
    fn texts_are_kept_on_request_and_secrets_never() {
        let secret = ["hunter2", "horse9battery"].concat();
        let text = format!("First line.\nexport API_KEY={secret}\n{}", "more ".repeat(2000));
        for form in [TurnForm::Short, TurnForm::Text] {
            let mut history = TurnHistory::new(form);
            for n in 0..60 {
                let mut curl = call(&n.to_string(), &format!("curl -u admin:{secret} https://x.example"));
                curl.args["more"] = json!("x".repeat(8000));
                history.push(&Step::turn("s", text.as_str(), vec![curl]));
            }
            let all = json_of(&history);
            assert!(!all.contains(&secret), "{form:?}");
            let last = history.turns().last().unwrap();
            assert_eq!(last.text.contains("First line.\nexport"), form == TurnForm::Text);
            assert!(last.long_size() <= LONG_TURN);
            assert!(all.len() < 50 * 5 * 1024, "{}", all.len());
        }
        let mut history = TurnHistory::new(TurnForm::Text);
        history.push(&Step::turn("s", "Short.", vec![call("c", "ls -la")]));
        assert_eq!(history.turns().next().unwrap().calls[0].args.as_deref(), Some(r#"{"command":"ls -la"}"#));
    }
}
