//! What is asked of the agent, and whether a person, a program or a timer asks.

use deloop_types::{Millis, Origin, UserText};

use super::{CallRecord, History, Wait};
use crate::fingerprint::{half, short_hash};

/// A message in the same words that comes after this many milliseconds without activity is a timer's.
const BEAT: u64 = 10 * 60_000;

impl History {
    /// Returns the number of requests to the agent: messages in new words, from a person or a program.
    #[must_use]
    pub fn requests(&self) -> u16 {
        self.requests
    }

    /// Returns whether a message asks for something new. The same words from a program don't, nor do the same words
    /// from a person for the third time in a row. Numbers may differ: "continue (3 of 10)".
    #[must_use]
    pub fn is_request(&self, user: &UserText, ts: Option<Millis>) -> bool {
        let (words, empty) = request_words(&user.text);
        let patience = match user.origin {
            Origin::Human => 2,
            Origin::Harness => 1,
            Origin::Notice => return false,
            Origin::Schedule => return true,
        };
        !empty && (words != self.request.0 || self.request.1 < patience || self.is_late(ts))
    }

    /// Returns whether so much time has passed since the agent was last active that a timer may have sent what comes now.
    fn is_late(&self, ts: Option<Millis>) -> bool {
        ts.zip(self.active).is_some_and(|(now, then)| now.since(then) >= BEAT)
    }

    pub(crate) fn push_request(&mut self, user: &UserText, ts: Option<Millis>) {
        let (words, empty) = request_words(&user.text);
        let again = words == self.request.0;
        // Whoever asks the same thing every half hour is a timer.
        let beat = user.origin == Origin::Schedule || again && self.is_late(ts);
        if beat {
            self.push_beat();
        } else if user.origin == Origin::Human && !again && !empty {
            self.wait = Wait::default();
        }
        if self.is_request(user, ts) {
            self.requests = self.requests.wrapping_add(1);
            self.stretch.start_over();
        } else if user.origin == Origin::Notice {
            self.stretch.informed();
        } else {
            self.stretch.prompted();
        }
        if !empty && user.origin != Origin::Notice {
            let times = if again { self.request.1.saturating_add(1) } else { 1 };
            self.request = (words, times);
        }
        if user.origin == Origin::Human {
            self.spoke = self.calls;
        }
        self.active = ts.or(self.active);
    }

    /// Returns whether a call was made since a person last wrote, whatever they wrote.
    #[must_use]
    pub fn is_since_person(&self, record: &CallRecord) -> bool {
        u64::from(record.ordinal) >= self.spoke
    }
}

/// Returns the hashed words of a message, without numbers, and whether there are none.
pub(crate) fn request_words(text: &str) -> (u32, bool) {
    let words: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_digit() && !b.is_ascii_whitespace()).collect();
    (half(short_hash(&words)), words.is_empty())
}
