//! Tests that a scanner takes linear time on any input.

use std::time::{Duration, Instant};

/// Shorter than what every scanner reads.
const LONGEST: usize = 60_000;
/// How many times as long the longer text is.
const TIMES: usize = 16;
/// 16 times the text takes about 16 times as long, and 256 times if the scanner is quadratic. The space between the two
/// is wide, because large allocations cost more than small ones, above all on a busy machine.
const MOST: u32 = 80;
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
        let texts = (text(LONGEST / TIMES), text(LONGEST));
        let (mut short, mut long) = (Duration::MAX, Duration::MAX);
        for _ in 0..RUNS {
            (short, long) = (short.min(time(&texts.0)), long.min(time(&texts.1)));
            if long < short * MOST {
                break;
            }
        }
        assert!(long < short * MOST, "{piece:?}: {short:?}, and {long:?} for {TIMES} times the text");
    }
}
