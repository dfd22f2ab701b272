use std::time::{SystemTime, UNIX_EPOCH};

use deloop_types::Millis;

/// Returns the time. It is stored with the backlog, so it is the one that a restart doesn't change.
#[expect(clippy::disallowed_methods, reason = "alerts are sent again after a while")]
pub(super) fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
