//! `deloop doctor`: through the settings that `deloop install` wrote.

#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use crate::binary::{deloop, run, said};

fn command(home: &Path) -> Command {
    let mut command = deloop(home);
    command.env("PATH", "/usr/bin:/bin");
    command
}

/// What it prints, and how it ends.
fn doctor(home: &Path) -> (String, Option<i32>) {
    let output = run(command(home).arg("doctor"), b"");
    (String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output), output.status.code())
}

fn install(home: &Path, arguments: &[&str]) {
    let output = run(command(home).arg("install").args(arguments), b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

/// A nudge, a block and a stop come out of every agent's hook, and nothing of it stays.
#[test]
fn every_agent_is_rehearsed() {
    let home = tempfile::tempdir().unwrap();
    let agents = ["claude-code", "codex", "gemini-cli", "copilot-cli", "qwen-code", "cursor", "opencode"];
    install(home.path(), &agents);
    let (text, code) = doctor(home.path());
    assert_eq!(code, Some(0), "{text}");
    for what in ["a stuck agent gets a message", "calls are blocked", "the run is stopped", " ms per call"] {
        assert_eq!(text.matches(what).count(), agents.len(), "{what}: {text}");
    }
    assert!(text.contains("approve the hooks in /hooks"), "{text}");
    let log = run(command(home.path()).arg("log"), b"");
    assert_eq!(log.stdout, b"No decisions.\n", "the real state is untouched");
    let status = run(command(home.path()).args(["status", "--json"]), b"");
    assert!(!String::from_utf8_lossy(&status.stdout).contains(r#""calls": 1"#));
}

#[test]
fn what_is_wrong_is_said_with_its_fix() {
    let home = tempfile::tempdir().unwrap();
    let (text, code) = doctor(home.path());
    assert_eq!((code, text.contains("`deloop install AGENT`")), (Some(1), true), "{text}");

    install(home.path(), &["codex"]);
    let file = home.path().join(".codex/hooks.json");
    let settings = std::fs::read_to_string(&file).unwrap();
    let there = env!("CARGO_BIN_EXE_deloop");
    let with = |program: &str| std::fs::write(&file, settings.replace(there, program)).unwrap();

    with("/nowhere/deloop");
    let (text, code) = doctor(home.path());
    assert!(
        code == Some(1) && text.contains("which doesn't exist; run `deloop install codex` to fix it"),
        "{text}"
    );

    // Another release.
    let other = home.path().join("deloop");
    std::fs::write(&other, "#!/bin/sh\n[ \"$1\" = --version ] && echo deloop 0.0.1\ncat > /dev/null\n")
        .unwrap();
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    with(other.to_str().unwrap());
    let (text, code) = doctor(home.path());
    assert!(code == Some(1) && text.contains("which isn't this program"), "{text}");

    with(there);
    assert_eq!(doctor(home.path()).1, Some(0));
    let config = home.path().join(".config/deloop/deloop.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "mod = \"nudge\"\n").unwrap();
    let (text, code) = doctor(home.path());
    assert!(
        code == Some(1) && text.contains("WRONG configuration: ") && text.contains("deloop.toml"),
        "{text}"
    );
    std::fs::remove_file(config).unwrap();

    std::fs::write(&file, "{ not json").unwrap();
    let (text, code) = doctor(home.path());
    assert!(code == Some(1) && text.contains("fix the file"), "{text}");
}

#[test]
fn shadow_mode_is_no_fault() {
    let home = tempfile::tempdir().unwrap();
    install(home.path(), &["claude-code", "--mode", "shadow"]);
    let (text, code) = doctor(home.path());
    assert!(code == Some(0) && text.contains("mode shadow: decisions are only recorded"), "{text}");
}
