//! Runs the real binary, in a home of its own.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::wait::wait_for;

/// The command, with nothing of the user's around it.
pub(crate) fn deloop(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deloop"));
    command.current_dir(home).env_clear();
    command.env("HOME", home).env("APPDATA", home).env("LOCALAPPDATA", home);
    if let Some(root) = std::env::var_os("SystemRoot") {
        command.env("SystemRoot", root);
    }
    command
}

/// Gives deloop a clock that stands still.
pub(crate) fn stop_clock(home: &Path, command: &mut Command) {
    if cfg!(debug_assertions) {
        command.env("DELOOP_TEST_CLOCK", home.join("clock"));
    } else {
        panic!("only debug builds have a clock that tests set");
    }
}

/// Runs it to its end with this input.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command);
    let mut stdin = child.stdin.take().expect("its input");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // It may end before it has read everything.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().expect("it ends")
    })
}

/// Starts a command. A program that a test has just written may be open for writing in a child that another test is starting.
fn spawn(command: &mut Command) -> std::process::Child {
    let mut child = None;
    wait_for("the program isn't open for writing", || {
        child = match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => None,
            child => Some(child.expect("the binary starts")),
        };
        child.is_some()
    });
    child.expect("it was started")
}

/// Puts a configuration into the home folder, which is the project of most tests, and trusts it.
pub(crate) fn trusted_config(home: &Path, name: &str, text: &str) {
    std::fs::write(home.join(name), text).expect("the configuration");
    let output = run(deloop(home).args(["trust", name]), b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

/// The answers of `deloop stream` with these arguments, one a line.
pub(crate) fn stream(home: &Path, arguments: &[&str], input: &[u8]) -> Vec<Value> {
    let output = run(deloop(home).arg("stream").args(arguments), input);
    lines(&output.stdout)
}

/// JSON lines.
pub(crate) fn lines(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).expect("the output is text");
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

/// Standard error as text.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
