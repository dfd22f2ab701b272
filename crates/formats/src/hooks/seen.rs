use deloop_types::Call;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Number of prompts of hooks remembered.
const PROMPTS: usize = 4;
/// Number of calls remembered: more than any agent has open at once.
const MOST: usize = 96;
/// Number of prompts on timers remembered.
const TIMERS: usize = 16;
/// Tools with which an agent puts the `prompt` of its arguments on a timer, and whether the timer goes off once.
const SCHEDULERS: [(&str, bool); 3] =
    [("ScheduleWakeup", true), ("CronCreate", false), ("cron_create", false)];

/// The calls seen in a session, so that each is reported once. The same call comes with several events, some
/// agents give calls no ids, and some calls are reported only when they are over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// For each call: a hash that identifies it, its id in deloop if the agent gives none, and whether it is open.
    calls: Vec<(u64, u64, bool)>,
    /// The number of the next call without an id.
    next: u64,
    /// Hash of the current request.
    turn: u64,
    /// Hash of the words of the prompt since the agent last ended a turn, where prompts of hooks look like a person's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<u64>,
    /// Hashes of prompts with which hooks kept the agent going.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    continued: Vec<u64>,
    /// Hashes of the prompts that the agent has put on timers, and whether each comes once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scheduled: Vec<(u64, bool)>,
}

impl Seen {
    /// Returns the id of a call and whether it is new. A call without an id is new each time it is about to be made
    /// (`before`); afterwards it is the oldest open one that looks the same.
    pub(super) fn enter(&mut self, call: &Call, before: bool) -> (String, bool) {
        if let Some(id) = &call.id {
            let key = xxh3_64(id.as_bytes());
            let is_new = !self.calls.iter().any(|(k, _, _)| *k == key);
            if is_new {
                self.push(key, u64::MAX);
                self.schedule(call);
            }
            return (id.clone(), is_new);
        }
        let key = looks(call);
        let open = self.calls.iter().find(|(k, _, open)| *k == key && *open && !before);
        match open {
            Some((_, number, _)) => (name(*number), false),
            None => {
                let number = self.next;
                self.next += 1;
                self.push(key, number);
                self.schedule(call);
                (name(number), true)
            }
        }
    }

    /// Returns the id of a known call: the newest one if several look the same.
    pub(super) fn latest(&self, call: &Call) -> String {
        if let Some(id) = &call.id {
            return id.clone();
        }
        let key = looks(call);
        self.calls.iter().rev().find(|(k, _, _)| *k == key).map_or_else(String::new, |(_, n, _)| name(*n))
    }

    /// Marks a call as over. Returns `false` if it was over before.
    pub(super) fn close(&mut self, id: &str) -> bool {
        let key = xxh3_64(id.as_bytes());
        let same = |(k, number, _): &&mut (u64, u64, bool)| {
            if *number == u64::MAX { *k == key } else { name(*number) == id }
        };
        match self.calls.iter_mut().rev().find(same) {
            Some((_, _, open)) => std::mem::replace(open, false),
            None => false,
        }
    }

    pub(super) fn begin_turn(&mut self, turn: Option<&str>) {
        self.turn = turn.map_or(0, |t| xxh3_64(t.as_bytes()));
    }

    pub(super) fn is_new_turn(&self, turn: Option<&str>) -> bool {
        turn.is_none_or(|t| xxh3_64(t.as_bytes()) != self.turn)
    }

    pub(super) fn begin_prompt(&mut self, text: &str) {
        self.prompt = Some(words(text));
    }

    /// Notes the end of a turn, and whether a hook had kept the agent going. Returns whether no prompt shows that.
    pub(super) fn end_prompt(&mut self, continued: bool) -> bool {
        let prompt = self.prompt.take();
        if let Some(prompt) = prompt.filter(|prompt| continued && !self.continued.contains(prompt)) {
            if self.continued.len() >= PROMPTS {
                self.continued.remove(0);
            }
            self.continued.push(prompt);
        }
        continued && prompt.is_none()
    }

    /// Returns whether a hook kept the agent going with this prompt before. Its numbers may have been others.
    pub(super) fn has_continued(&self, text: &str) -> bool {
        self.continued.contains(&words(text))
    }

    /// Remembers the prompt that a call puts on a timer.
    fn schedule(&mut self, call: &Call) {
        let Some((_, once)) = SCHEDULERS.iter().find(|(tool, _)| *tool == call.tool) else { return };
        let Some(prompt) = call.args["prompt"].as_str().filter(|prompt| !prompt.trim().is_empty()) else {
            return;
        };
        let once = *once || call.args["recurring"] == serde_json::Value::Bool(false);
        let prompt = xxh3_64(prompt.trim().as_bytes());
        self.scheduled.retain(|(known, _)| *known != prompt);
        if self.scheduled.len() >= TIMERS {
            self.scheduled.remove(0);
        }
        self.scheduled.push((prompt, once));
    }

    /// Returns whether the agent has put this prompt on a timer.
    pub(super) fn is_scheduled(&self, text: &str) -> bool {
        let prompt = xxh3_64(text.trim().as_bytes());
        self.scheduled.iter().any(|(known, _)| *known == prompt)
    }

    /// Notes that a prompt came, so that a timer that goes off once is over.
    pub(super) fn prompted(&mut self, text: &str) {
        let prompt = xxh3_64(text.trim().as_bytes());
        self.scheduled.retain(|(known, once)| *known != prompt || !once);
    }

    fn push(&mut self, key: u64, number: u64) {
        if self.calls.len() >= MOST {
            self.calls.remove(0);
        }
        self.calls.push((key, number, true));
    }
}

/// Returns the hash of a text without numbers and spaces.
fn words(text: &str) -> u64 {
    let words: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_digit() && !b.is_ascii_whitespace()).collect();
    xxh3_64(&words)
}

fn name(number: u64) -> String {
    format!("call-{number}")
}

/// Identifies a call without an id.
fn looks(call: &Call) -> u64 {
    // serde_json's maps are sorted, so the same arguments give the same text.
    xxh3_64(format!("{}\0{}", call.tool, call.args).as_bytes())
}
