//! Bad input gets a clear error or a defined meaning; nothing panics, and the rest goes on.

use serde_json::{Value, json};

use crate::binary::{deloop, lines, run, said, stream};

/// Every bad line is answered in its place, the lines around it are judged as if it were not there.
#[test]
fn every_bad_line_gets_an_error_in_its_place() {
    let home = tempfile::tempdir().unwrap();
    let good = br#"{"type":"call","tool":"ls","args":{}}"#;
    let bad: Vec<(&[u8], &str)> = vec![
        (b"not json", "not JSON"),
        (b"{}", "missing field `type`"),
        (b"[]", "a Step is a JSON object"),
        (b"7", "invalid type"),
        (br#"{"type":"call"}"#, "needs the field `tool`"),
        (br#"{"type":"call","tool":7}"#, "invalid type"),
        (br#"{"type":"walk"}"#, "unknown type `walk`"),
        (br#"{"type":"usage","input_tokens":-1}"#, "invalid value"),
        (br#"{"type":"result","outcome":"dunno"}"#, "unknown variant"),
        (br#"{"type":"call","tool":"x","ts":"yesterday"}"#, "RFC 3339"),
        (br#"{"type":"call","tool":"x""#, "EOF"),
    ];
    for (line, expected) in bad {
        let input = [good.as_slice(), b"\n\n", line, b"\n", good, b"\n", good, b"\n"].concat();
        let output = run(deloop(home.path()).args(["stream", "-p", "doom-loop"]), &input);
        let answers = lines(&output.stdout);
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        assert_eq!(output.status.code(), Some(2), "{shown}");
        assert_eq!(answers.len(), 4, "{shown}");
        assert_eq!(answers[1]["line"], 3, "{shown}");
        let error = answers[1]["error"].as_str().unwrap();
        assert!(error.contains(expected), "{shown}: {error}");
        assert!(said(&output).contains("line 3"), "{shown}");
        assert_eq!(answers[3]["step"], 2, "{shown}: a bad line is no step");
        assert_eq!(answers[3]["action"], "nudge", "{shown}");
    }
}

#[test]
fn ten_megabytes_of_arguments_are_judged() {
    let home = tempfile::tempdir().unwrap();
    let big = "word ".repeat(2 << 20);
    let line = json!({"type": "call", "tool": "write", "args": {"content": big}}).to_string() + "\n";
    for profile in ["behavioral", "signature", "doom-loop", "turn-similarity", "turn-hash", "default"] {
        let answers = stream(home.path(), &["-p", profile], line.repeat(3).as_bytes());
        assert_eq!(answers.len(), 3, "{profile}");
        assert!(answers[2].to_string().len() < 4096, "{profile}: an answer does not repeat the arguments");
    }
}

fn answers(profile: &str, steps: &[Value]) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let input: String = steps.iter().map(|s| format!("{s}\n")).collect();
    stream(home.path(), &["-p", profile], input.as_bytes())
}

/// A result for a call that never was is no evidence of anything.
#[test]
fn a_result_for_an_unknown_call_is_ignored() {
    let result = json!({"type": "result", "id": "nobody", "ok": false, "output": "x"});
    let answers = answers("doom-loop", &[result.clone(), result.clone(), result.clone(), result]);
    assert!(answers.iter().all(|a| a["action"] == "continue"), "{answers:?}");
}

/// An id used twice means the later call; a second result for an answered call is ignored.
#[test]
fn an_id_used_twice_is_the_later_call() {
    let call = json!({"type": "call", "id": "1", "tool": "bash", "args": {"command": "pytest"}});
    let failed = json!({"type": "result", "id": "1", "ok": false});
    let steps = [&call, &failed, &failed, &failed, &call, &failed, &call, &failed].map(Clone::clone);
    let answers = answers("doom-loop", &steps);
    let nudged: Vec<usize> = (0..steps.len()).filter(|i| answers[*i]["action"] == "nudge").collect();
    assert_eq!(nudged, [6, 7], "the third call and the third failing run: {answers:?}");
}

/// Time that goes backwards changes nothing but the time.
#[test]
fn a_clock_that_goes_backwards_changes_nothing() {
    for (profile, action) in [("doom-loop", "nudge"), ("behavioral", "nudge"), ("default", "continue")] {
        let at = |ts: i64| json!({"type": "call", "tool": "ls", "args": {}, "ts": ts});
        let answers = answers(profile, &[at(5_000_000), at(-7), at(1)]);
        assert_eq!(answers[2]["action"], action, "{profile}");
    }
}

#[test]
fn an_end_forgets_the_session() {
    let call = json!({"type": "call", "tool": "ls", "args": {}});
    let answers =
        answers("doom-loop", &[call.clone(), call.clone(), json!({"type": "end"}), call.clone(), call]);
    assert_eq!(answers[2]["step"], 2);
    assert_eq!(answers[3]["step"], 0);
    assert!(answers.iter().all(|a| a["action"] == "continue"));
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let home = tempfile::tempdir().unwrap();
    let mut command = deloop(home.path());
    command.arg("explain").arg("call-cycle");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""));
}
