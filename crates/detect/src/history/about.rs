use deloop_types::Call;
use serde::{Deserialize, Serialize, Serializer};

use crate::reading::{quote, room_for, telling};

/// Number of bytes of an argument from which its short form is made: enough to show it and to recognize secrets.
const RAW: usize = 160;

/// The short description of a call. Most calls are never shown, so the short form, which contains no secrets, is
/// computed on demand. Only the short form is ever serialized.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "String")]
pub(super) struct About {
    text: Box<str>,
    /// Maximum length of the short form; 0 when `text` is already the short form.
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

    /// Returns the short form: one line, truncated, without secrets or control characters.
    pub(super) fn short(&self) -> String {
        if self.room == 0 { self.text.to_string() } else { quote(&self.text, self.room.into()) }
    }

    /// Keeps only the short form, because the call may be shown from now on.
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
