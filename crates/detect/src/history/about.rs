use deloop_types::Call;
use serde::{Deserialize, Serialize, Serializer};

use crate::reading::{quote, telling};

/// How many bytes of an argument its short form is made from.
const RAW: usize = 400;

/// What a call is about. Most calls are never shown, so the short form is made when somebody asks; but nothing else is
/// ever written down.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "String")]
pub(super) struct About {
    text: Box<str>,
    /// Whether `text` is the short form already.
    short: bool,
}

impl About {
    pub(super) fn of(call: &Call) -> Self {
        let text = telling(&call.args);
        let mut end = text.len().min(RAW);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Self { text: text[..end].into(), short: false }
    }

    /// On one line, without control characters, and cut.
    pub(super) fn short(&self) -> String {
        if self.short { self.text.to_string() } else { quote(&self.text) }
    }
}

impl About {
    /// Keeps the short form alone: the call may be shown from now on.
    pub(super) fn settle(&mut self) {
        *self = Self::from(self.short());
    }
}

impl From<String> for About {
    fn from(text: String) -> Self {
        Self { text: text.into(), short: true }
    }
}

impl Serialize for About {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.short())
    }
}
