//! What was left out of a transcript, in words.

use deloop_detect::ToolKind;

/// The names of what is counted, one and many.
const NAMES: [(&str, &str); 10] = [
    ("edit", "edits"),
    ("read", "reads"),
    ("search", "searches"),
    ("command", "commands"),
    ("test run", "test runs"),
    ("wait", "waits"),
    ("note", "notes"),
    ("other call", "other calls"),
    ("message", "messages"),
    ("user message", "user messages"),
];
const MESSAGE: usize = 8;
const USER_MESSAGE: usize = 9;

/// How much of what was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    counts: [u32; NAMES.len()],
}

impl LeftOut {
    pub(super) fn call(&mut self, kind: ToolKind) {
        let index = match kind {
            ToolKind::Write => 0,
            ToolKind::Read | ToolKind::Page => 1,
            ToolKind::Search => 2,
            ToolKind::Run => 3,
            ToolKind::Test => 4,
            ToolKind::Poll => 5,
            ToolKind::Talk => 6,
            ToolKind::Other => 7,
        };
        self.counts[index] += 1;
    }

    /// Counts a turn without a call.
    pub(super) fn message(&mut self) {
        self.counts[MESSAGE] += 1;
    }

    pub(super) fn user_message(&mut self) {
        self.counts[USER_MESSAGE] += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for LeftOut {
    /// Writes `12 edits, 3 reads, 1 search`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = self.counts.iter().zip(NAMES).filter(|(count, _)| **count > 0);
        for (index, (count, (one, many))) in counted.enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{count} {}", if *count == 1 { one } else { many })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_said_in_words() {
        let mut left_out = LeftOut::default();
        (0..12).for_each(|_| left_out.call(ToolKind::Write));
        left_out.call(ToolKind::Search);
        left_out.user_message();
        assert_eq!(left_out.to_string(), "12 edits, 1 search, 1 user message");
    }
}
