//! Many sessions on one server: what each costs, and whether a step still costs the same.

use std::time::Instant;

use crate::generator::Connection;
use crate::processes::Serve;
use crate::{BATCH, steps};

/// Steps per session.
const STEPS: usize = 4;

/// Fills a server with this many sessions and prints the cost as it grows.
pub(crate) fn run(sessions: usize) {
    println!("\n{sessions} sessions of {STEPS} steps, over SQLite");
    println!("{:>12} {:>16} {:>12} {:>12}", "sessions", "steps a second", "memory MB", "disk MB");
    let server = Serve::start(&[]);
    let mut connection = Connection::open(server.port);
    let tenth = (sessions / 10).max(1);
    let (mut begun, mut sent) = (Instant::now(), 0);
    for first in (0..sessions).step_by(BATCH / STEPS) {
        let mut lines = Vec::new();
        for session in first..(first + BATCH / STEPS).min(sessions) {
            for n in 0..STEPS {
                lines.extend_from_slice(steps::step(&format!("k{session}"), n).as_bytes());
                lines.push(b'\n');
                sent += 1;
            }
        }
        connection.send(&lines, true);
        let done = first + BATCH / STEPS;
        if done / tenth > first / tenth {
            let per_second = f64::from(sent) / begun.elapsed().as_secs_f64();
            let (memory, disk) = (server.memory() >> 20, folder_size(server.state.path()) >> 20);
            println!("{:>12} {per_second:>16.0} {memory:>12} {disk:>12}", done.min(sessions));
            (begun, sent) = (Instant::now(), 0);
        }
    }
}

fn folder_size(folder: &std::path::Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}
