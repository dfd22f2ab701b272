//! `deloop steps`: any format in, native Steps out.

use std::path::{Path, PathBuf};

use crate::binary::{deloop, lines, run, said, stream};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/src/agents").join(path)
}

/// The canonical stuck session, from a document and from lines, is the same conversation.
#[test]
fn a_session_of_any_format_becomes_steps() {
    for path in [
        "claude_code/fixtures/stuck.jsonl",
        "claude_code_stream/fixtures/stuck.jsonl",
        "opencode/fixtures/stuck.json",
        "../apis/atif/fixtures/stuck.json",
    ] {
        let home = tempfile::tempdir().unwrap();
        let output = run(deloop(home.path()).arg("steps").arg(fixture(path)), b"");
        assert_eq!(output.status.code(), Some(0), "{path}: {}", said(&output));
        let steps = lines(&output.stdout);
        let of = |kind: &str| steps.iter().filter(|s| s["type"] == kind).collect::<Vec<_>>();
        assert!(
            steps.iter().all(|s| s["session"] == steps[0]["session"] && s["session"].is_string()),
            "{path}"
        );
        assert_eq!(of("user")[0]["text"], "The tests fail. Please fix them.", "{path}");
        assert_eq!(of("turn").len(), 8, "{path}");
        let call = &of("turn")[0]["calls"][0];
        assert_eq!(call["args"]["command"], "cargo test --workspace", "{path}");
        assert_eq!(of("result").len(), 7, "{path}");
        assert!(of("result")[0]["output"].to_string().contains("cannot find value"), "{path}");
    }
}

/// What it prints is what `deloop stream` reads, and the loop is still in it.
#[test]
fn its_output_can_be_piped_into_stream_and_into_itself() {
    let home = tempfile::tempdir().unwrap();
    let once = run(deloop(home.path()).arg("steps").arg(fixture("codex/fixtures/stuck.jsonl")), b"");
    let decisions = stream(home.path(), &[], &once.stdout);
    assert_eq!(decisions.len(), lines(&once.stdout).len());
    assert!(decisions.iter().any(|d| d["action"] == "nudge"));
    let again = run(deloop(home.path()).args(["steps", "-", "--format", "native"]), &once.stdout);
    assert_eq!(String::from_utf8_lossy(&again.stdout), String::from_utf8_lossy(&once.stdout));
}

/// One bad file loses nothing of the others.
#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_printed() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("notes.txt"), "buy milk\n").unwrap();
    let good = fixture("pi/fixtures/stuck.jsonl");
    let output = run(deloop(home.path()).args(["steps", "gone.jsonl", "notes.txt"]).arg(good), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(lines(&output.stdout).len() > 10);
    let said = said(&output);
    assert!(said.contains("gone.jsonl: no such file"), "{said}");
    assert!(said.contains("notes.txt: unknown session format"), "{said}");
}
