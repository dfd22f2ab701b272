//! Works on many inputs at once, on all cores.

use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Problem, ReadError, SessionInput};

/// Smaller inputs are read too fast for a progress bar.
const WORTH_A_BAR: u64 = 64 << 20;

/// The result for one input.
pub(crate) enum InputOutcome<T> {
    /// It was read.
    Read(T),
    /// It has no format that deloop knows, which may be no problem: folders also hold files that aren't sessions.
    UnknownFormat(Problem),
    /// It couldn't be read.
    Lost(Problem),
}

/// Works on each input, on all cores and behind a progress bar, and returns the results in the order of the inputs.
/// `work` is given the input's index. A panic loses that input only.
pub(crate) fn each<T: Send>(
    inputs: &[SessionInput],
    work: &(dyn Fn(usize, &SessionInput, &ProgressBar) -> Result<T, ReadError> + Sync),
) -> Vec<InputOutcome<T>> {
    let progress = bar(inputs.iter().map(|i| i.size).sum());
    let mut order: Vec<usize> = (0..inputs.len()).collect();
    // The largest first, so that no thread is still busy with it at the end.
    order.sort_by_key(|i| (std::cmp::Reverse(inputs[*i].size), *i));
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::with_capacity(inputs.len()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(inputs.len()).max(1);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                    let input = &inputs[index];
                    let done = catch_unwind(AssertUnwindSafe(|| work(index, input, &progress)));
                    let outcome = match done {
                        Ok(Ok(read)) => InputOutcome::Read(read),
                        Ok(Err(ReadError::UnknownFormat(looks_like))) => {
                            InputOutcome::UnknownFormat(Problem::unknown_format(input.path(), &looks_like))
                        }
                        Ok(Err(ReadError::Io(error))) => {
                            InputOutcome::Lost(Problem::unread(input.path(), &error))
                        }
                        Err(_) => InputOutcome::Lost(Problem::lost(
                            input.path(),
                            "deloop failed on this file; the others are not affected",
                        )),
                    };
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((index, outcome));
                }
            });
        }
    });
    progress.finish_and_clear();
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Returns a bar on a terminal, for what takes a while, and a hidden one in a pipe.
fn bar(bytes: u64) -> ProgressBar {
    if bytes < WORTH_A_BAR || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(10));
    let style = "reading sessions {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}
