//! Waits for what another thread or process does.

use std::time::Duration;

/// How long to wait before looking again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Waits until something is so, however slow the machine is. If it never is, the test runner ends the test, and `what`
/// is the last line of its output.
#[expect(clippy::print_stderr, reason = "the output of a test that hangs must say what it waits for")]
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    if is_so() {
        return;
    }
    eprintln!("waiting: {what}");
    while !is_so() {
        std::thread::park_timeout(BETWEEN_LOOKS);
    }
}
