//! The steps that are sent: sessions that call a tool, get 500 bytes back, and call it again with other arguments.

use std::fmt::Write;

/// Sessions that one batch has steps of.
const SESSIONS: usize = 10;

/// Returns the nth step of a session: calls and results, by turns.
pub(crate) fn step(session: &str, n: usize) -> String {
    let call = n / 2;
    if n.is_multiple_of(2) {
        format!(
            r#"{{"type":"call","session":"{session}","id":"c{call}","tool":"bash","args":{{"command":"cargo test --package shop-{call} -- --exact cart::tests::total_{call} --nocapture","description":"Runs test number {call} of the cart"}}}}"#
        )
    } else {
        let mut output = String::new();
        for line in 0..8 {
            let _ = write!(output, "test cart::tests::case_{call}_{line} ... ok in {line} ms with {call}\\n");
        }
        format!(r#"{{"type":"result","session":"{session}","id":"c{call}","ok":true,"output":"{output}"}}"#)
    }
}

/// Returns the nth batch: lines of a few sessions, interleaved.
pub(crate) fn batch(n: usize, length: usize) -> Vec<u8> {
    let mut lines = Vec::new();
    let (group, part) = (n / 5, n % 5);
    for at in 0..length {
        let index = part * (length / SESSIONS) + at / SESSIONS;
        lines.extend_from_slice(step(&format!("b{group}-{}", at % SESSIONS), index).as_bytes());
        lines.push(b'\n');
    }
    lines
}
