//! Tests that a scanner takes linear time on any input.

use std::time::{Duration, Instant};

/// Shorter than what every scanner reads.
const LONGEST: usize = 60_000;
/// Four times the text takes about four times as long, and sixteen times if the scanner is quadratic.
const MOST: u32 = 10;
/// How often both are timed before the scanner counts as slow. The fastest runs count, because the machine may be busy.
const RUNS: usize = 40;

/// Asserts that the time of `run` grows linearly with the length of a text made of a piece, not quadratically.
pub(crate) fn assert_linear(pieces: &[&str], run: impl Fn(&str)) {
    for piece in pieces {
        let text = |length: usize| piece.repeat(length / piece.len());
        let time = |text: &str| {
            #[expect(clippy::disallowed_methods, reason = "the time it takes is what is tested")]
            let start = Instant::now();
            run(text);
            start.elapsed()
        };
        let texts = (text(LONGEST / 4), text(LONGEST));
        let (mut short, mut long) = (Duration::MAX, Duration::MAX);
        for _ in 0..RUNS {
            (short, long) = (short.min(time(&texts.0)), long.min(time(&texts.1)));
            if long < short * MOST {
                break;
            }
        }
        assert!(long < short * MOST, "{piece:?}: {short:?}, and {long:?} for four times the text");
    }
}
