//! Reads many files at once, on all cores.

use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use deloop_engine::Engine;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::scan::find::Input;
use crate::scan::problem::Problem;
use crate::scan::read::{Unread, read};
use crate::scan::watch::{Followed, Watch};

/// Shorter scans need no bar.
const WORTH_A_BAR: u64 = 64 << 20;

/// What was found in one file.
pub(crate) struct Gathered {
    /// Which of the inputs.
    pub(crate) input: usize,
    pub(crate) format: &'static str,
    pub(crate) project: Option<String>,
    pub(crate) models: Vec<String>,
    pub(crate) sessions: Vec<Followed>,
    /// Plain bytes read.
    pub(crate) bytes: u64,
}

/// Everything that was read, in the order of the inputs.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) files: Vec<Gathered>,
    pub(crate) problems: Vec<Problem>,
    /// Files in the folders that turned out to be something else.
    pub(crate) others: u64,
    /// Something that a user named could not be read.
    pub(crate) missing: bool,
}

/// What became of one input.
pub(crate) enum Outcome<T> {
    /// It was read.
    Read(T),
    /// It is of no format that is known.
    Other,
    /// It could not be read.
    Lost(Problem),
}

/// Reads all inputs and judges each session with each engine.
pub(crate) fn read_all(inputs: &[Input], engines: &[Engine]) -> Pool {
    let outcomes = each(inputs, &|index, input, progress| one(index, input, engines, progress));
    let mut pool = Pool::default();
    for (input, outcome) in inputs.iter().zip(outcomes) {
        match outcome {
            Outcome::Read((gathered, mut problems)) => {
                pool.files.push(gathered);
                pool.problems.append(&mut problems);
            }
            Outcome::Other if !input.named => pool.others += 1,
            Outcome::Other => {
                pool.missing = true;
                let unknown =
                    "is of no format that deloop knows; `--format` names one (see `deloop scan --help`)";
                pool.problems.push(Problem::lost(input.path(), unknown));
            }
            Outcome::Lost(problem) => {
                pool.missing |= input.named;
                pool.problems.push(problem);
            }
        }
    }
    pool
}

/// Works on each input, on all cores and behind a progress bar, and returns the results in the order of the inputs.
/// `work` is given the input's index. A panic loses that input only.
pub(crate) fn each<T: Send>(
    inputs: &[Input],
    work: &(dyn Fn(usize, &Input, &ProgressBar) -> Result<T, Unread> + Sync),
) -> Vec<Outcome<T>> {
    let total: u64 = inputs.iter().map(|i| i.size).sum();
    let progress = bar(total);
    let mut order: Vec<usize> = (0..inputs.len()).collect();
    // The largest first, so that no thread is left alone with it at the end.
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
                        Ok(Ok(read)) => Outcome::Read(read),
                        Ok(Err(Unread::NoSession)) => Outcome::Other,
                        Ok(Err(Unread::Failed(error))) => {
                            Outcome::Lost(Problem::unread(input.path(), &error))
                        }
                        Err(_) => Outcome::Lost(Problem::lost(
                            input.path(),
                            "deloop failed on it; the other files are not affected",
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

fn one(
    index: usize,
    input: &Input,
    engines: &[Engine],
    progress: &ProgressBar,
) -> Result<(Gathered, Vec<Problem>), Unread> {
    let mut watch = Watch::new(engines);
    let read = read(input, progress, &mut |item, line| watch.step(&item, line))?;
    let (sessions, models) = watch.finish();
    let problems = read.notes.into_iter().map(|note| Problem::note(input.path(), note)).collect();
    let gathered = Gathered {
        input: index,
        format: read.format.name(),
        project: read.report.project,
        models,
        sessions,
        bytes: read.bytes,
    };
    Ok((gathered, problems))
}

/// A bar on a terminal, for what takes a while; nothing in a pipe.
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
