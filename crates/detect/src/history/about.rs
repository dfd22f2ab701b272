use deloop_types::Call;
use serde::{Deserialize, Serialize, Serializer};

use crate::reading::{quote, room_for, telling};

/// How many bytes of an argument its short form is made from: what is shown, and what tells a secret in it.
const RAW: usize = 160;

/// What a call is about. Most calls are never shown, so the short form, which has no secrets in it, is made when
/// somebody asks; but nothing else is ever written down.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "String")]
pub(super) struct About {
    text: Box<str>,
    /// How long the short form may be; 0 when `text` is the short form already.
    room: u8,
}

impl About {
    pub(super) fn of(call: &Call) -> Self {
        let text = telling(&call.args);
        let mut end = text.len().min(RAW);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Self { text: text[..end].into(), room: u8::try_from(room_for(&call.tool)).unwrap_or(u8::MAX).max(1) }
    }

    /// On one line, without secrets and control characters, and cut.
    pub(super) fn short(&self) -> String {
        if self.room == 0 { self.text.to_string() } else { quote(&self.text, self.room.into()) }
    }

    /// Keeps the short form alone: the call may be shown from now on.
    pub(super) fn settle(&mut self) {
        *self = Self::from(self.short());
    }
}

impl From<String> for About {
    fn from(text: String) -> Self {
        Self { text: text.into(), room: 0 }
    }
}

impl Serialize for About {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.short())
    }
}
