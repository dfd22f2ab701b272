//! Sessions through the stream: in step, checkpoints, modes, isolation.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::binary::{deloop, run, stream};

fn call(session: &str, command: &str) -> String {
    json!({"type": "call", "session": session, "tool": "bash", "args": {"command": command}}).to_string()
        + "\n"
}

/// A harness keeps the command open and waits for each answer.
#[test]
fn answers_in_step() {
    let home = tempfile::tempdir().unwrap();
    let mut command = deloop(home.path());
    command.args(["stream", "-p", "signature"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for (step, action) in [(0, "continue"), (1, "nudge"), (2, "nudge"), (3, "stop")] {
        let line = call("s", "ls");
        // Half a line behind the first must not hold its answer back.
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"  ").unwrap();
        stdin.flush().unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!((answer["step"].as_u64(), answer["action"].as_str()), (Some(step), Some(action)));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// Splitting a session over two processes with a checkpoint changes nothing, wherever it is cut.
#[test]
fn a_checkpoint_between_two_processes_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let steps: Vec<String> = deloop_conformance::random::lines(7).into_iter().map(|l| l + "\n").collect();
    for profile in ["behavioral", "signature", "doom-loop", "turn-similarity", "turn-hash", "default"] {
        let whole = stream(home.path(), &["-p", profile], steps.concat().as_bytes());
        for cut in [1, steps.len() / 3, steps.len() / 2, steps.len() - 1] {
            let file = home.path().join(format!("{profile}-{cut}.json"));
            let arguments = ["-p", profile, "--checkpoint", file.to_str().unwrap()];
            let mut parts = stream(home.path(), &arguments, steps[..cut].concat().as_bytes());
            parts.extend(stream(home.path(), &arguments, steps[cut..].concat().as_bytes()));
            assert_eq!(parts, whole, "{profile} cut at {cut}");
        }
    }
}

#[test]
fn modes_cap_what_is_done() {
    let home = tempfile::tempdir().unwrap();
    let input = call("s", "ls").repeat(6);
    let last = |mode: &str| {
        stream(home.path(), &["-p", "doom-loop", "--mode", mode], input.as_bytes()).pop().unwrap()
    };
    let (shadow, nudge, enforce) = (last("shadow"), last("nudge"), last("enforce"));
    assert_eq!(
        (&shadow["action"], &shadow["level"], &shadow["message"]),
        (&json!("continue"), &json!(0), &Value::Null)
    );
    assert_eq!(shadow["would"]["action"], "block");
    assert_eq!(
        (&nudge["action"], &nudge["level"], &nudge["role"]),
        (&json!("nudge"), &json!(3), &json!("user"))
    );
    assert_eq!(nudge["would"]["action"], "block");
    assert_eq!((&enforce["action"], &enforce["calls"]), (&json!("block"), &json!(["#0"])));
    assert!(enforce.get("would").is_none());
}

#[test]
fn deloop_off_is_off() {
    let home = tempfile::tempdir().unwrap();
    let input = call("s", "ls").repeat(8);
    let output =
        run(deloop(home.path()).args(["stream", "-p", "behavioral"]).env("DELOOP", "off"), input.as_bytes());
    let answers = crate::binary::lines(&output.stdout);
    assert!(
        answers.len() == 8 && answers.iter().all(|a| a["action"] == "continue" && a["findings"] == json!([]))
    );
}

/// The worked example of the wire format.
#[test]
fn a_decision_has_the_documented_fields() {
    let home = tempfile::tempdir().unwrap();
    let answers = stream(home.path(), &["-p", "behavioral"], call("s1", "ls").repeat(5).as_bytes());
    insta::assert_json_snapshot!(answers[4]);
}

#[test]
fn a_refused_call_of_the_demo_has_no_result() {
    let home = tempfile::tempdir().unwrap();
    let output = run(deloop(home.path()).arg("demo"), b"");
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, refused) = text.split_once("deloop: block").expect("a refusal");
    assert!(!refused.contains('✗') && refused.contains("deloop: stop"), "{text}");
}

#[test]
fn the_demo_shows_a_nudge_and_a_stop() {
    let home = tempfile::tempdir().unwrap();
    let output = run(deloop(home.path()).args(["demo", "-p", "signature"]), b"");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("deloop: nudge (level 1)") && text.contains("The run has ended: LOOP_DETECTED"),
        "{text}"
    );
}

/// A harness says where it can put a nudge, and gets the person's line beside the agent's.
#[test]
fn a_nudge_goes_where_the_harness_can_put_it() {
    let home = tempfile::tempdir().unwrap();
    let steps: String = (0..3)
        .map(|n| {
            let call = json!({"type": "call", "session": "s1", "id": format!("c{n}"), "tool": "bash",
                "args": {"command": "make check"}});
            let failed = json!({"type": "result", "session": "s1", "id": format!("c{n}"), "output": "no rule",
                "error_type": "ExitCode2"});
            format!("{call}\n{failed}\n")
        })
        .collect();
    for (deliver, role) in
        [("tool", "tool"), ("user", "user"), ("tool,user", "user"), ("developer", "developer")]
    {
        let answers = stream(home.path(), &["--deliver", deliver], steps.as_bytes());
        let nudge = answers.last().unwrap();
        assert_eq!((&nudge["action"], &nudge["role"]), (&json!("nudge"), &json!(role)), "{deliver}");
        assert!(
            nudge["user_message"].as_str().unwrap().starts_with("deloop messaged the agent: `make check`")
        );
    }
}
