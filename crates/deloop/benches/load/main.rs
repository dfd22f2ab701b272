//! `cargo xtask bench-serve`: the load a server takes, beside what could be expected of it, in one run.
//!
//! Everything runs on this machine at the same time, the generator included, so compare the figures with each other.
//! `--single-steps 16` measures single steps over 16 connections alone, `--health` how fast `/healthz` is under load.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark measures and prints")]

mod empty_route;
mod generator;
mod health;
mod kept_sessions;
mod processes;
mod steps;

use std::time::{Duration, Instant};

use generator::{Load, Measured};
use processes::{EmptyRoute, Redis, Serve, binary};

/// Connections that send one request after the other: of a few agents, and of many.
const CONNECTIONS: [usize; 2] = [16, 64];
/// Steps per request in batches.
const BATCH: usize = 1_000;
/// How often the empty route and the server are measured by turns.
const ROUNDS: u32 = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1));
    if arguments.first().is_some_and(|a| a == "--empty-route") {
        return empty_route::run();
    }
    let seconds = value("--seconds").and_then(|n| n.parse().ok()).unwrap_or(5);
    let time = Duration::from_secs(seconds);
    let kept = value("--kept-sessions").and_then(|n| n.parse().ok()).unwrap_or(0);
    println!("deloop: {}", binary());
    if arguments.iter().any(|a| a == "--health") {
        return health::run(&Serve::start(&[]), time);
    }
    if let Some(connections) = value("--single-steps").and_then(|n| n.parse().ok()) {
        let (server, route) = (Serve::start(&[]), EmptyRoute::start());
        return single_rows("SQLite", &server, &route, connections, time);
    }
    println!("2 connections for batches of {BATCH}, {seconds} seconds each");
    println!("\n{:<40} {:>12} {:>9} {:>9} {:>10}", "", "per second", "p50 ms", "p99 ms", "CPU µs");
    let stream = stream();
    row("deloop stream, steps", stream, None);
    let route = EmptyRoute::start();
    let server = Serve::start(&[]);
    serve_rows("SQLite", &server, &route, time, stream);
    drop(server);
    let redis = if arguments.iter().any(|a| a == "--no-redis") { None } else { Redis::start() };
    match redis {
        None => println!("without redis-server, the figures for Redis are missing"),
        Some(redis) => {
            let server = Serve::start(&["--store", &redis.url()]);
            serve_rows("Redis", &server, &route, time, stream);
            drop(server);
            redis.benchmark();
        }
    }
    if kept > 0 {
        kept_sessions::run(kept);
    }
}

fn serve_rows(store: &str, server: &Serve, route: &EmptyRoute, time: Duration, stream: f64) {
    let before = server.cpu_time();
    let batches = Load::batches(server.port).run(time);
    let batches = batches.with_cpu_time((server.cpu_time() - before) / BATCH as u32);
    let steps = batches.per_second() * BATCH as f64;
    row(&format!("{store}: steps in batches"), steps, Some(&batches));
    println!("{:<40} {:>11.0} %", "  of deloop stream", steps / stream * 100.0);
    for connections in CONNECTIONS {
        single_rows(store, server, route, connections, time);
    }
}

fn single_rows(store: &str, server: &Serve, route: &EmptyRoute, connections: usize, time: Duration) {
    let (mut empty, mut single) = (Measured::default(), Measured::default());
    // By turns, because the speed of a machine changes from second to second.
    for round in 0..ROUNDS {
        let before = route.cpu_time();
        let measured = Load::single(route.port, connections, round).run(time / ROUNDS);
        empty.add(measured.with_cpu_time(route.cpu_time() - before));
        let before = server.cpu_time();
        let measured = Load::single(server.port, connections, round).run(time / ROUNDS);
        single.add(measured.with_cpu_time(server.cpu_time() - before));
    }
    row(&format!("empty axum route, {connections} connections"), empty.per_second(), Some(&empty));
    row(&format!("{store}: single steps, {connections} connections"), single.per_second(), Some(&single));
    println!("{:<40} {:>11.0} %", "  of the empty route", single.per_second() / empty.per_second() * 100.0);
}

fn row(name: &str, per_second: f64, measured: Option<&Measured>) {
    let [p50, p99, cpu] = measured.map_or_else(Default::default, |m| {
        let [p50, p99] = [50, 99].map(|percent| format!("{:.2}", m.percentile(percent)));
        [p50, p99, format!("{:.1}", m.cpu_per_request())]
    });
    println!("{name:<40} {per_second:>12.0} {p50:>9} {p99:>9} {cpu:>10}");
}

/// Returns the steps per second of `deloop stream`.
fn stream() -> f64 {
    let lines: Vec<u8> = (0..100).flat_map(|n| steps::batch(n, BATCH)).collect();
    let begun = Instant::now();
    processes::stream(&lines);
    100.0 * BATCH as f64 / begun.elapsed().as_secs_f64()
}
