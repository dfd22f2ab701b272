//! `deloop compare`.

use serde_json::{Value, json};

use crate::binary::{deloop, run, said, trusted_config};
use crate::scan::stuck;

#[test]
fn two_sides_are_set_against_each_other() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("long.jsonl"), stuck("long", "claude-sonnet-4-5", 9)).unwrap();
    std::fs::write(home.path().join("two.jsonl"), stuck("two", "claude-sonnet-4-5", 2)).unwrap();
    let compare = |more: &[&str]| {
        let arguments = ["compare", "--a", "signature", "--b", "doom-loop", "long.jsonl", "two.jsonl"];
        run(deloop(home.path()).args(arguments).args(more), b"")
    };
    let report: Value = serde_json::from_slice(&compare(&["--json"]).stdout).unwrap();
    assert_eq!(
        (&report["both"], &report["only_a"], &report["only_b"], &report["earlier_a"], &report["earlier_b"]),
        (&json!(1), &json!(1), &json!(0), &json!(1), &json!(0)),
        "{report}"
    );
    let only = &report["loops"][0];
    assert_eq!((&only["session"], &only["b"]), (&json!("two"), &Value::Null));
    assert_eq!(only["a"]["first_turn"], 3);
    let both = &report["loops"][1];
    assert_eq!((&both["a"]["action"], &both["b"]["action"]), (&json!("stop"), &json!("block")));
    assert_eq!((&both["a"]["first_turn"], &both["b"]["first_turn"]), (&json!(3), &json!(4)));
    let text = String::from_utf8(compare(&[]).stdout).unwrap();
    assert!(
        text.contains("2 sessions: both found 1 loop, only signature found 1, only doom-loop found 0."),
        "{text}"
    );
    assert!(text.contains("signature steps in earlier in 1, doom-loop in 0"), "{text}");
}

/// A user's own configuration against what it is laid over.
#[test]
fn a_configuration_is_a_side() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("s.jsonl"), stuck("s", "m", 4)).unwrap();
    std::fs::write(home.path().join("mine.toml"), "profile = \"doom-loop\"\norder = [\"talk-only\"]")
        .unwrap();
    // The user's deloop.toml changes no profile that is named here.
    trusted_config(home.path(), "deloop.toml", "order = [\"talk-only\"]");
    let output = run(
        deloop(home.path()).args(["compare", "--a", "doom-loop", "--b", "mine.toml", "s.jsonl", "--json"]),
        b"",
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["only_a"], &report["only_b"], &report["both"]), (&json!(1), &json!(0), &json!(0)));
    for (side, expected) in [("nope", "unknown profile `nope`"), ("nope.toml", "nope.toml")] {
        let output =
            run(deloop(home.path()).args(["compare", "--a", "default", "--b", side, "s.jsonl"]), b"");
        assert_eq!(output.status.code(), Some(2), "{side}");
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}
