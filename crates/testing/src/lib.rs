//! Tests that the time of some work grows linearly with its input. They go by the CPU time of their own thread, which other
//! programs hardly change, however busy the machine is.

use std::time::Duration;

/// How many times as large the larger input is.
const TIMES: usize = 16;
/// Linear work on 16 times the input takes about 16 times as long, and quadratic work 256 times. The space between the two
/// is wide, because large allocations cost more than small ones.
const MOST: u32 = 80;
/// How often both are measured before the work counts as slow. The fastest runs count.
const RUNS: usize = 20;

/// Returns the CPU time that this thread has used so far.
#[cfg(unix)]
#[must_use]
pub fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns the time that has passed since the first call.
#[cfg(not(unix))]
#[must_use]
pub fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

/// Returns the least CPU time that this thread takes for `work`, of so many runs.
pub fn least_cpu_time(runs: usize, mut work: impl FnMut()) -> Duration {
    let run = || {
        let start = cpu_time();
        work();
        cpu_time().saturating_sub(start)
    };
    std::iter::repeat_with(run).take(runs).min().unwrap_or_default()
}

/// Asserts that the time of `work` grows linearly with the size it is given, up to `largest`, and not quadratically.
///
/// # Panics
/// When it doesn't.
pub fn assert_linear(name: &str, largest: usize, mut work: impl FnMut(usize)) {
    let (mut small, mut large) = (Duration::MAX, Duration::MAX);
    for _ in 0..RUNS {
        small = small.min(least_cpu_time(1, || work(largest / TIMES)));
        large = large.min(least_cpu_time(1, || work(largest)));
        if large < small * MOST {
            return;
        }
    }
    panic!("{name}: {small:?}, and {large:?} for {TIMES} times the input");
}

/// Asserts that the time of `read` grows linearly with the length of texts that repeat each of these pieces.
///
/// # Panics
/// When it doesn't.
pub fn assert_reads_linearly(pieces: &[&str], read: impl Fn(&str)) {
    /// Shorter than what every scanner reads.
    const LONGEST: usize = 60_000;
    for piece in pieces {
        let text = piece.repeat(LONGEST / piece.len());
        let up_to = |length: usize| {
            let cut = text.floor_char_boundary(length);
            read(&text[..cut]);
        };
        assert_linear(&format!("{piece:?}"), LONGEST, up_to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "for 16 times the input")]
    fn quadratic_work_is_noticed() {
        let seen = std::cell::Cell::new(0_usize);
        assert_linear("pairs", 4_000, |size| {
            for one in 0..size {
                seen.set((0..one).fold(seen.get(), |sum, other| sum ^ std::hint::black_box(other)));
            }
        });
    }
}
