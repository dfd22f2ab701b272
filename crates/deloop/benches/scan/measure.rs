//! One run of the command.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a run took.
pub(crate) struct Run {
    pub(crate) time: Duration,
    /// The most memory it held, where the system tells.
    pub(crate) memory: Option<u64>,
    pub(crate) loops: u64,
}

/// Scans a folder with the profile `default`, in a home of its own.
pub(crate) fn scan(folder: &Path) -> Run {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_deloop"))
        .args(["scan", "--csv"])
        .arg(folder)
        .env_clear()
        .env("HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut output = child.stdout.take().expect("its output");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let status = format!("/proc/{}/status", child.id());
    let mut memory = None;
    let ended = loop {
        if let Some(ended) = child.try_wait().expect("the command can be waited for") {
            break ended;
        }
        memory = memory.max(high_water(&status));
        std::thread::sleep(Duration::from_millis(5));
    };
    let time = start.elapsed();
    assert!(ended.success(), "the scan ended with {ended}");
    let text = reader.join().expect("its output is read").expect("its output is text");
    Run { time, memory, loops: text.lines().count() as u64 - 1 }
}

/// The most memory that a process has held so far, in bytes.
fn high_water(status: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
