//! What the steps of one project cost while the key of another attacks the server, beside a quiet moment in the same run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::generator::{Load, Measured};
use crate::processes::Serve;

/// Connections that send single steps of the project that is measured.
const CONNECTIONS: usize = 4;
/// Connections that attack.
const ATTACKERS: usize = 2;
/// Steps in a batch of an attack: as many as a request may have.
const STEPS: usize = 10_000;
/// The size of a large batch, in bytes: a little less than a request may have.
const LARGE: usize = 61 << 20;
/// Listeners that an attack asks for: as many as the server has places for.
const LISTENERS: usize = 256;

/// Measures each attack. What the attack gets for an answer doesn't matter.
pub(crate) fn run(time: Duration) {
    let server = Serve::with_keys(&["attacker", "neighbour"]);
    let load = AtomicU32::new(0);
    let measure = || {
        let number = load.fetch_add(1, Ordering::Relaxed);
        Load::single(server.port, CONNECTIONS, number).with_key(&server.keys[1]).run(time)
    };
    println!("{:<44} {:>8} {:>9} {:>9} {:>8}", "", "requests", "p50 ms", "p99 ms", "p99 of quiet");
    // The first steps make the server load what it needs.
    measure();
    let attacks: [(&str, AttackFn); 3] = [
        ("batches with 10,000 new swarms each", swarms),
        ("batches of 61 MiB", large_batches),
        ("256 listeners for events, asked for again and again", listeners),
    ];
    for (name, attack) in attacks {
        let quiet = measure();
        row("quiet", &quiet, &quiet);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for attacker in 0..ATTACKERS {
                let (is_over, server) = (&is_over, &server);
                scope.spawn(move || attack(server, attacker, is_over));
            }
            let attacked = measure();
            is_over.store(true, Ordering::Relaxed);
            row(name, &attacked, &quiet);
        });
    }
}

type AttackFn = fn(&Serve, usize, &AtomicBool);

fn row(name: &str, measured: &Measured, quiet: &Measured) {
    let [p50, p99] = [50, 99].map(|percent| measured.percentile(percent));
    let ratio = p99 / quiet.percentile(99);
    println!("{name:<44} {:>8} {p50:>9.2} {p99:>9.2} {ratio:>8.1}", measured.count());
}

fn swarms(server: &Serve, attacker: usize, is_over: &AtomicBool) {
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        let lines = (0..STEPS).map(|n| {
            let swarm = format!("{attacker}-{number}-{n}");
            format!(
                "{{\"type\":\"call\",\"session\":\"a{}\",\"swarm\":\"{swarm}\",\"tool\":\"read\",\"args\":{{\"path\":\"{n}\"}}}}\n",
                n % 50
            )
        });
        send(server, lines.collect::<String>().as_bytes());
        number += 1;
    }
}

fn large_batches(server: &Serve, attacker: usize, is_over: &AtomicBool) {
    let text: String = (0..LARGE / STEPS / 10).map(|n| format!("word{n:05} ")).collect();
    let lines = (0..STEPS).map(|n| {
        format!("{{\"type\":\"turn\",\"session\":\"l{attacker}-{}\",\"text\":\"{n} {text}\"}}\n", n % 100)
    });
    let batch: String = lines.collect();
    while !is_over.load(Ordering::Relaxed) {
        send(server, batch.as_bytes());
    }
}

fn listeners(server: &Serve, _: usize, is_over: &AtomicBool) {
    let mut held = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        held.clear();
        for _ in 0..LISTENERS / ATTACKERS {
            let Ok(mut stream) = TcpStream::connect(("127.0.0.1", server.port)) else { continue };
            let head = format!("host: 127.0.0.1\r\nauthorization: Bearer {}", server.keys[0]);
            let _ = stream.write_all(format!("GET /v1/events HTTP/1.1\r\n{head}\r\n\r\n").as_bytes());
            let _ = stream.read(&mut [0; 12]);
            held.push(stream);
        }
    }
}

/// Sends lines and reads the answer, whatever it is.
fn send(server: &Serve, lines: &[u8]) {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", server.port)) else { return };
    let head = format!(
        "POST /v1/steps HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\n\
         content-type: application/x-ndjson\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        server.keys[0],
        lines.len()
    );
    // The server may refuse it before it has read all.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(lines));
    let mut answer = BufReader::new(stream);
    let mut status = String::new();
    let _ = answer.read_line(&mut status);
    if status.contains(" 429 ") {
        // Its rate is used up; a client that goes on asking would only measure refusals.
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = std::io::copy(&mut answer, &mut std::io::sink());
}
