//! How long a server under load takes to say that it runs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::generator::Load;
use super::processes::Serve;

/// Connections that say nothing.
const SILENT: usize = 1_000;
/// Connections that send single steps, beside those that send batches.
const AGENTS: usize = 64;

/// Asks a server for its health on new connections, while others send steps or say nothing, and prints how long it took.
pub(crate) fn run(server: &Serve, time: Duration) {
    let port = server.port;
    let silent: Vec<_> = (0..SILENT).filter_map(|_| TcpStream::connect(("127.0.0.1", port)).ok()).collect();
    let (mut took, mut failed) = (Vec::new(), 0);
    std::thread::scope(|scope| {
        scope.spawn(move || Load::batches(port).run(time));
        scope.spawn(move || Load::single(port, AGENTS, 0).run(time));
        let end = Instant::now() + time;
        while Instant::now() < end {
            let begun = Instant::now();
            match ask(port) {
                Ok(true) => took.push(begun.elapsed()),
                _ => failed += 1,
            }
        }
    });
    took.sort_unstable();
    let percentile = |percent: usize| {
        let at = (took.len() * percent / 100).min(took.len().saturating_sub(1));
        took.get(at).map_or(0.0, |took| took.as_secs_f64() * 1_000.0)
    };
    println!(
        "/healthz beside {AGENTS} agents, batches and {} silent connections: {} answers, {failed} failed, p50 {:.2} ms, \
         p99 {:.2} ms, longest {:.2} ms",
        silent.len(),
        took.len(),
        percentile(50),
        percentile(99),
        percentile(100)
    );
}

fn ask(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200 "))
}
