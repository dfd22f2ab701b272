//! How fast a scan is, on 1 GB of sessions in the shape that Claude Code writes; run by `cargo xtask bench-scan`.
//!
//! The data is made once, in target/bench. Figures are for a warm cache. `--quick` takes a tenth of the data and
//! leaves the one large session out.
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]

mod measure;
mod sessions;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deloop_formats::{Item, Source, find, read};

/// How often a whole scan is measured; the fastest counts.
const RUNS: usize = 3;

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let sessions = if quick { 200 } else { 2000 };
    let target = Path::new(env!("CARGO_BIN_EXE_deloop")).ancestors().nth(2).unwrap_or(Path::new("target"));
    let folder = target.join("bench").join(format!("{sessions}-sessions"));
    let bytes = sessions::make(&folder, sessions).expect("the data can be written");
    println!("{sessions} sessions, {:.0} MB, in {}", mb(bytes), folder.display());
    readers(&folder);
    scans(&folder, bytes);
    if !quick {
        large(&target.join("bench/large"));
    }
}

#[expect(clippy::cast_precision_loss, reason = "megabytes to print")]
fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn rate(bytes: u64, time: Duration) -> f64 {
    mb(bytes) / time.as_secs_f64()
}

/// Parsing alone and bytes → Steps, side by side: each file is read once and given to all of them in turn.
fn readers(folder: &Path) {
    let format = find("claude-code").expect("the format");
    let mut times = [Duration::ZERO; 4];
    let (mut bytes, mut steps) = (0, 0_u64);
    for path in files(folder) {
        let text = std::fs::read(&path).expect("the file");
        bytes += text.len() as u64;
        let lines = || text.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        let mut timed = |index: usize, work: &mut dyn FnMut()| {
            let start = Instant::now();
            work();
            times[index] += start.elapsed();
        };
        timed(0, &mut || {
            for line in lines() {
                black_box(sonic_rs::from_slice::<sonic_rs::Value>(line).expect("JSON"));
            }
        });
        timed(1, &mut || {
            for line in lines() {
                black_box(sonic_rs::from_slice::<sonic_rs::LazyValue<'_>>(line).expect("JSON"));
            }
        });
        timed(2, &mut || {
            for line in lines() {
                black_box(serde_json::from_slice::<serde_json::Value>(line).expect("JSON"));
            }
        });
        timed(3, &mut || {
            let source = Source { path: Some(&path) };
            let report = read(format, &text, &source, &mut |item: Item| {
                steps += 1;
                black_box(item);
            });
            assert_eq!(report.unreadable, 0, "{}", path.display());
        });
    }
    let names = ["sonic-rs, all values", "sonic-rs, lazily", "serde_json, all values", "bytes → Steps"];
    println!("\none thread, bytes in memory");
    for (name, time) in names.iter().zip(times) {
        println!("  {name:<24} {:>6.0} MB/s", rate(bytes, time));
    }
    let share = |index: usize| 100.0 * times[index].as_secs_f64() / times[3].as_secs_f64();
    println!(
        "  bytes → Steps is {:.0} % of sonic-rs with all values, {:.0} % of it lazily; {steps} Steps",
        share(0),
        share(1)
    );
}

/// The command, over all of the data and over half of it.
fn scans(folder: &Path, bytes: u64) {
    println!(
        "\ndeloop scan, profile default, {} cores",
        std::thread::available_parallelism().map_or(1, usize::from)
    );
    let half = folder.join("a");
    let halfway: u64 = files(&half).iter().map(|f| std::fs::metadata(f).map_or(0, |m| m.len())).sum();
    let mut rates = Vec::new();
    for (name, folder, bytes) in [("all", folder, bytes), ("half", half.as_path(), halfway)] {
        let runs: Vec<_> = (0..RUNS).map(|_| measure::scan(folder)).collect();
        let best = runs.iter().min_by_key(|r| r.time).expect("a run");
        let memory = runs.iter().filter_map(|r| r.memory).max();
        rates.push(rate(bytes, best.time));
        println!(
            "  {name:<5} {:>6.0} MB in {:>5.2} s: {:>4.0} MB/s, {}, {} loops",
            mb(bytes),
            best.time.as_secs_f64(),
            rate(bytes, best.time),
            memory.map_or_else(
                || "memory not measured here".to_owned(),
                |m| format!("{:.0} MB at most", mb(m))
            ),
            best.loops
        );
    }
    println!("  half of the data at {:.2} times the speed of all of it", rates[1] / rates[0]);
}

/// One session of 2 GB.
fn large(folder: &Path) {
    let bytes = sessions::make_one(folder, 2_000_000_000).expect("the data can be written");
    let run = measure::scan(folder);
    println!(
        "\none session of {:.0} MB: {:.0} MB/s on one core, {}",
        mb(bytes),
        rate(bytes, run.time),
        run.memory
            .map_or_else(|| "memory not measured here".to_owned(), |m| format!("{:.0} MB at most", mb(m)))
    );
}

/// The session files below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "jsonl") {
            all.push(path);
        }
    }
    all.sort();
    all
}
