//! Takes so many steps and prints nothing: `cargo xtask bench-instructions` runs it under callgrind twice and takes
//! the difference, so that what happens before the first step does not count.

mod workload;

use workload::Run;

#[expect(clippy::disallowed_methods, reason = "it is a program")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let [what, at, steps] = arguments.as_slice() else { return };
    let (Ok(at), Ok(steps)) = (at.parse::<usize>(), steps.parse::<usize>()) else { return };
    let (kind, profile) = what.split_once(':').unwrap_or((what, "default"));
    let mut run = Run::new(profile, at);
    // Both benchmarks share their workload; this one needs no checkpoints.
    let _ = (Run::checkpoint, Run::restore);
    let step = match kind {
        "call" => Run::call,
        "call-and-result" => Run::call_and_result,
        "call-and-failure" => Run::call_and_failure,
        "parse" => Run::parse,
        _ => return,
    };
    (0..steps).for_each(|_| step(&mut run));
}
