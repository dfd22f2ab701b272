//! The clock of `deloop run` in tests. It stands still until the agent lets time pass, so no test waits for a limit, and
//! none depends on the speed of the machine.

#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::binary::{run, stop_clock};

/// For agents in shell: `pass N` lets N milliseconds pass, and returns when deloop has looked at the run before and after
/// them; `hang` never ends, and `linger` lets time pass until it is ended. None of them writes anything, because deloop
/// takes output for a sign of life.
pub(crate) const PASS: &str = r"
pass() { : > pass-$1; while [ -e pass-$1 ]; do sleep 0.01; done; }
hang() { while :; do sleep 0.05; done; }
linger() { while :; do pass 500; done; }
";

/// How much time passes so that deloop looks at the run once more.
const ONE_LOOK: u64 = 200;

/// Runs `deloop run` to its end, and lets as much time pass as the agent asks for.
pub(crate) fn run_with_clock(home: &Path, command: &mut Command, input: &[u8]) -> Output {
    stop_clock(home, command);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| keep_time(home, &is_over));
        let _over = SetAtEnd(&is_over);
        run(command, input)
    })
}

/// Ends the other thread, even if this one panics.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn keep_time(home: &Path, is_over: &AtomicBool) {
    let mut time = 0;
    let mut pass = |milliseconds: u64| {
        time += milliseconds;
        std::fs::write(home.join("clock"), format!("{time}\n")).unwrap();
        let seen = || std::fs::read_to_string(home.join("clock.seen")).unwrap_or_default();
        wait_until(|| seen() == time.to_string() || is_over.load(Ordering::Relaxed));
    };
    while !is_over.load(Ordering::Relaxed) {
        let files = std::fs::read_dir(home).unwrap().flatten();
        let mut asked = files.filter_map(|file| {
            file.file_name().to_str()?.strip_prefix("pass-")?.parse::<u64>().ok().map(|n| (file.path(), n))
        });
        match asked.next() {
            Some((request, milliseconds)) => {
                pass(ONE_LOOK);
                pass(milliseconds);
                std::fs::remove_file(request).unwrap();
            }
            None => std::thread::park_timeout(Duration::from_millis(2)),
        }
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::park_timeout(Duration::from_millis(2));
    }
}
