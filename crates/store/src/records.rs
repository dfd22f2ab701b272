//! What several servers agree on: claims, counters, lists, texts and a log of events.

mod memory;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use deloop_types::Millis;

use crate::StoreError;
pub use memory::MemoryRecords;

/// How many events a log holds. Older ones are dropped; Redis may hold a few more.
pub const EVENTS_KEPT: usize = 10_000;
/// How long the mark of an addition is remembered, unless its table is forgotten earlier.
pub const MARKS_KEPT: Duration = Duration::from_secs(300);

/// Names a record: any text in a group, which is any text, too.
///
/// Records of one group are stored on one node of a Redis Cluster. Use groups that spread the load, such as a project or a
/// session, and put names that are scanned together into one group. A claim, a table, a list and a text may have the same
/// name: they are different records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordName<'a> {
    /// The group.
    pub group: &'a str,
    /// The name in the group.
    pub name: &'a str,
}

impl<'a> RecordName<'a> {
    /// Creates a name.
    #[must_use]
    pub fn new(group: &'a str, name: &'a str) -> Self {
        Self { group, name }
    }
}

/// What came of [`SharedRecords::add_once`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedOnce {
    /// Whether the amounts were added now. `false` when an addition with the same mark came first.
    pub is_new: bool,
    /// The totals of the given fields, in their order.
    pub totals: Vec<i64>,
}

/// A position in the log of events. As text it can be sent to a client and parsed when it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventCursor {
    pub(crate) major: u64,
    pub(crate) minor: u64,
}

impl EventCursor {
    /// The position before the oldest event that is kept.
    pub const START: Self = Self { major: 0, minor: 0 };
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.major, self.minor)
    }
}

impl FromStr for EventCursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let digits = |part: &str| match part.bytes().all(|byte| byte.is_ascii_digit()) {
            true => part.parse().map_err(StoreError::decode),
            false => Err(StoreError::decode("not the position of an event")),
        };
        let (major, minor) = text.split_once('-').unwrap_or((text, "0"));
        Ok(Self { major: digits(major)?, minor: digits(minor)? })
    }
}

/// Holds what several servers agree on.
///
/// Every record is dropped when its `ttl` has passed since it was last written. `now` is the time of the caller; Redis uses
/// its own clock instead, so that servers whose clocks differ agree. Every operation is atomic. Over Redis it returns
/// within the deadline of the store, and after [`StoreError::Unavailable`] the change may have been made.
///
/// Every backend passes [`crate::contract::check_records`].
pub trait SharedRecords: Send + Sync {
    /// Returns `true` to exactly one caller until `ttl` has passed or the claim is released.
    ///
    /// # Errors
    /// When the backend fails.
    fn claim(&self, name: RecordName<'_>, ttl: Duration, now: Millis) -> Result<bool, StoreError>;

    /// Ends a claim, whoever has it, so that it can be made again.
    ///
    /// # Errors
    /// When the backend fails.
    fn release(&self, name: RecordName<'_>) -> Result<(), StoreError>;

    /// Adds amounts to fields of a table and returns the new totals of these fields, in their order. Totals stay at the
    /// largest or smallest `i64` rather than overflow.
    ///
    /// # Errors
    /// When the backend fails.
    fn add(
        &self,
        table: RecordName<'_>,
        amounts: &[(&str, i64)],
        ttl: Duration,
        now: Millis,
    ) -> Result<Vec<i64>, StoreError>;

    /// Adds amounts as [`SharedRecords::add`] does, unless an addition with the same mark was made to the table within
    /// [`MARKS_KEPT`].
    ///
    /// # Errors
    /// When the backend fails.
    fn add_once(
        &self,
        table: RecordName<'_>,
        mark: &str,
        amounts: &[(&str, i64)],
        ttl: Duration,
        now: Millis,
    ) -> Result<AddedOnce, StoreError>;

    /// Returns the fields of a table and their totals, by field. A table that doesn't exist has none.
    ///
    /// # Errors
    /// When the backend fails.
    fn totals(&self, table: RecordName<'_>, now: Millis) -> Result<Vec<(String, i64)>, StoreError>;

    /// Deletes a table. Marks are remembered.
    ///
    /// # Errors
    /// When the backend fails.
    fn forget(&self, table: RecordName<'_>) -> Result<(), StoreError>;

    /// Appends a text to a list and drops the oldest ones, so that at most `most` (at least 1) are left.
    ///
    /// # Errors
    /// When the backend fails.
    fn push(
        &self,
        list: RecordName<'_>,
        text: &str,
        most: usize,
        ttl: Duration,
        now: Millis,
    ) -> Result<(), StoreError>;

    /// Removes all texts of a list and returns them, oldest first. No text is returned twice.
    ///
    /// # Errors
    /// When the backend fails.
    fn take(&self, list: RecordName<'_>, now: Millis) -> Result<Vec<String>, StoreError>;

    /// Returns the texts of a list, oldest first, and leaves them there.
    ///
    /// # Errors
    /// When the backend fails.
    fn list(&self, list: RecordName<'_>, now: Millis) -> Result<Vec<String>, StoreError>;

    /// Stores a text and replaces the one that is there.
    ///
    /// # Errors
    /// When the backend fails.
    fn put(&self, name: RecordName<'_>, text: &str, ttl: Duration, now: Millis) -> Result<(), StoreError>;

    /// Returns a text, if it is stored.
    ///
    /// # Errors
    /// When the backend fails.
    fn get(&self, name: RecordName<'_>, now: Millis) -> Result<Option<String>, StoreError>;

    /// Deletes a text. It isn't an error if there is none.
    ///
    /// # Errors
    /// When the backend fails.
    fn remove(&self, name: RecordName<'_>) -> Result<(), StoreError>;

    /// Returns at most `limit` names of stored texts of a group that start with `prefix` and come after `after`, in the
    /// order of their bytes. The cost grows with `limit` and with the logarithm of the number of texts in the group.
    ///
    /// # Errors
    /// When the backend fails.
    fn scan(
        &self,
        group: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<String>, StoreError>;

    /// Appends an event to the log, which holds the last [`EVENTS_KEPT`].
    ///
    /// # Errors
    /// When the backend fails.
    fn publish(&self, text: &str) -> Result<(), StoreError>;

    /// Returns at most `most` events after a position, in order, and the position of the last one. Waits for up to `wait`
    /// if there are none; then the position is `after`. Without a position it returns the one of the latest event at once:
    /// follow from there to see what is published from now on.
    ///
    /// Use one thread per server for this, and pass the events on to those who listen.
    ///
    /// # Errors
    /// When the backend fails.
    fn follow(
        &self,
        after: Option<EventCursor>,
        most: usize,
        wait: Duration,
    ) -> Result<(EventCursor, Vec<String>), StoreError>;
}

/// Returns when something that is written now is dropped.
pub(crate) fn expiry(ttl: Duration, now: Millis) -> i64 {
    now.0.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_nothing_else_is_one() {
        let cursor = EventCursor { major: 1_794_000_000_000, minor: 7 };
        assert_eq!(cursor.to_string().parse::<EventCursor>().unwrap(), cursor);
        assert_eq!("12".parse::<EventCursor>().unwrap(), EventCursor { major: 12, minor: 0 });
        for text in ["", "-", "1-", "+1-2", "1-2-3", "$", "(1-2", "99999999999999999999", "1 2"] {
            assert!(text.parse::<EventCursor>().is_err(), "{text}");
        }
    }
}
