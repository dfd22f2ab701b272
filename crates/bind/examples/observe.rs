//! Measures what `observe` costs in Rust, for the benchmarks of the bindings: `cargo run --release -p deloop-bind --example
//! observe` prints nanoseconds per call of 200 bytes as JSON.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark reads the clock and prints"
)]

use std::time::Instant;

use deloop_bind::{BoundGuard, GuardSettings, read_step};
use deloop_types::Step;

/// As in the benchmarks of the bindings.
const CALLS: usize = 1024;
const PART: usize = 32;
const ROUNDS: usize = 80;
const BYTES: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lines: Vec<String> = (0..CALLS).map(line).collect();
    let steps: Vec<Step> = lines.iter().map(|line| read_step(line.as_bytes())).collect::<Result<_, _>>()?;
    let step = best(&steps, |guard, step| drop(guard.observe(step)));
    let json = best(&lines, |guard, line| drop(guard.observe_json(line.as_bytes())));
    println!("{}", serde_json::json!({"step_ns": step, "json_ns": json, "bytes": BYTES, "calls": CALLS}));
    Ok(())
}

/// Returns a call of exactly [`BYTES`] bytes.
fn line(n: usize) -> String {
    let line = |padding: usize| {
        format!(
            r#"{{"type":"call","session":"s1","id":"c{n:05}","tool":"bash","args":{{"command":"grep -rn handler_{n:05} src tests | head -20","description":"Find handler {n:05}{}","timeout":120000}}}}"#,
            ".".repeat(padding)
        )
    };
    line(BYTES - line(0).len())
}

/// Returns the time per call, in nanoseconds: the sum of the shortest times of each part of the calls, over all rounds.
/// Parts are short, so that other programs rarely interrupt all rounds of one. Each round has a guard of its own.
fn best<T>(inputs: &[T], observe: impl Fn(&BoundGuard, &T)) -> f64 {
    let mut shortest = vec![f64::INFINITY; CALLS.div_ceil(PART)];
    for _ in 0..ROUNDS {
        let guard = GuardSettings::default().guard().expect("the default profile loads");
        for (part, shortest) in inputs.chunks(PART).zip(&mut shortest) {
            let start = Instant::now();
            part.iter().for_each(|input| observe(&guard, input));
            *shortest = shortest.min(start.elapsed().as_secs_f64());
        }
    }
    shortest.iter().sum::<f64>() * 1e9 / f64::from(u32::try_from(CALLS).unwrap_or(1))
}
