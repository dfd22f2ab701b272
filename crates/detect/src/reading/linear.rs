//! Tests that a scanner takes linear time on any input.

use std::time::{Duration, Instant};

/// Shorter than what every scanner reads.
const LONGEST: usize = 60_000;
/// Four times the text takes about four times as long, and sixteen times if the scanner is quadratic.
const MOST: u32 = 10;
/// Tolerance for a busy machine.
const NOISE: Duration = Duration::from_millis(2);

/// Asserts that the time of `run` grows linearly with the length of a text made of a piece, not quadratically.
pub(crate) fn assert_linear(pieces: &[&str], run: impl Fn(&str)) {
    for piece in pieces {
        let time = |length: usize| {
            let text = piece.repeat(length / piece.len());
            let once = || {
                #[expect(clippy::disallowed_methods, reason = "the time it takes is what is tested")]
                let start = Instant::now();
                run(&text);
                start.elapsed()
            };
            std::iter::repeat_with(once).take(5).min().unwrap_or_default()
        };
        let (short, long) = (time(LONGEST / 4), time(LONGEST));
        assert!(long < short * MOST + NOISE, "{piece:?}: {short:?}, and {long:?} for four times the text");
    }
}
