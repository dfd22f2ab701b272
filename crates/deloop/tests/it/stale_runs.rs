//! Loops that ignore every message end in an unattended run, and honest work of the same shape doesn't.

use serde_json::{Value, json};

use crate::binary::{deloop, lines, run, said};

/// A session as it's written: each call is followed by its result.
#[derive(Default)]
struct Session(Vec<Value>);

impl Session {
    fn asks(mut self, text: &str) -> Self {
        self.0.push(json!({"type": "user", "text": text}));
        self
    }

    fn runs(&mut self, command: &str, ok: bool, output: &str) {
        let id = self.0.len().to_string();
        self.0.push(json!({"type": "call", "id": id, "tool": "bash", "args": {"command": command}}));
        self.0.push(json!({"type": "result", "id": id, "ok": ok, "output": output}));
    }

    fn edits(&mut self, number: usize) {
        let id = self.0.len().to_string();
        let args = json!({"path": "a.py", "old_str": format!("x = {number}"), "new_str": format!("x = {}", number + 1)});
        self.0.push(json!({"type": "call", "id": id, "tool": "edit", "args": args}));
        self.0.push(json!({"type": "result", "id": id, "ok": true, "output": "done"}));
    }

    /// Returns the steps with an action, each as `STEP ACTION RUNG`. A stop is listed once.
    fn decisions(&self, arguments: &[&str]) -> Vec<String> {
        let home = tempfile::tempdir().expect("a folder");
        let input: String = self.0.iter().map(|step| format!("{step}\n")).collect();
        let output = run(
            deloop(home.path()).args(["stream", "--profile", "default"]).args(arguments),
            input.as_bytes(),
        );
        assert!(output.status.success(), "{}", said(&output));
        let shown = |d: &Value| format!("{} {} {}", d["step"], d["action"], d["rung"]).replace('"', "");
        let mut decisions: Vec<String> = Vec::new();
        for decision in lines(&output.stdout).iter().filter(|d| d["action"] != "continue") {
            let over = decisions.last().is_some_and(|last| last.ends_with("stop stop"));
            if !over {
                decisions.push(shown(decision));
            }
        }
        decisions
    }
}

/// Returns laps of five calls, each with its own output. No call comes often enough in the history to be blocked.
fn laps(laps: usize, edit_each: Option<usize>) -> Session {
    let mut session = Session::default().asks("Find out why the report is empty.");
    for lap in 0..laps {
        for part in ["read", "parse", "group", "sum", "print"] {
            session.runs(&format!("python {part}.py"), true, &format!("{part}: 0 rows"));
        }
        if edit_each.is_some_and(|each| lap % each == 0) {
            session.edits(lap);
        }
    }
    session
}

#[test]
fn a_cycle_without_anything_new_is_stopped() {
    let decisions = laps(12, None).decisions(&[]);
    assert_eq!(
        decisions,
        ["28 nudge nudge", "30 nudge second-nudge", "54 nudge second-nudge", "98 stop stop"]
    );
}

#[test]
fn a_cycle_with_a_change_now_and_then_is_only_messaged() {
    let decisions = laps(30, Some(6)).decisions(&[]);
    assert!(decisions.iter().all(|d| d.contains(" nudge ")), "{decisions:?}");
}

#[test]
fn an_attended_run_asks() {
    let decisions = laps(12, None).decisions(&["--attended"]);
    assert!(decisions.iter().any(|d| d.contains(" ask stop")), "{decisions:?}");
    assert!(!decisions.iter().any(|d| d.contains(" stop stop")), "{decisions:?}");
}

/// What the login does isn't known, so only its failing again and again shows that nothing changes.
#[test]
fn a_call_that_keeps_failing_is_blocked_whatever_came_in_between() {
    let mut session = Session::default().asks("Connect the calendar.");
    for lap in 1..=16 {
        session.runs("calendar login", true, &format!("Open https://auth.example/?state={}", lap * 7919));
        session.runs(&format!("open-url https://auth.example/?state={}", lap * 7919), true, "Page: Sign in");
        session.runs("calendar confirm", true, "Redirected to the callback");
        session.runs("calendar status", false, "error: state mismatch");
    }
    let decisions = session.decisions(&[]);
    let hard: Vec<&str> = decisions.iter().filter(|d| !d.contains("nudge")).map(String::as_str).collect();
    assert_eq!(hard, ["103 block block", "111 block hand-over", "119 stop stop"]);
}

/// Polls once a minute, each for so many dollars.
fn polls(times: usize, usd: Option<f64>) -> Session {
    let mut session = Session::default().asks("Deploy it and wait until it is up.");
    for n in 0..times {
        session.runs("sleep 60; kubectl get pods", true, "worker  0/1  Pending");
        let [.., call, result] = session.0.as_mut_slice() else { unreachable!() };
        (call["ts"], result["ts"]) = (json!(n * 62_000), json!(n * 62_000 + 60_500));
        session.0.extend(
            usd.map(|usd| json!({"type": "usage", "model": "m", "input_tokens": 1, "cost_usd": usd})),
        );
    }
    session
}

#[test]
fn waiting_ends_by_its_cost_and_never_by_its_length() {
    assert_eq!(polls(1_100, None).decisions(&[]), [""; 0]);
    assert_eq!(polls(1_000, Some(0.002)).decisions(&[]), [""; 0]);
    assert_eq!(
        polls(600, Some(0.05)).decisions(&[]),
        [
            "44 nudge nudge",
            "179 nudge second-nudge",
            "359 nudge second-nudge",
            "719 nudge second-nudge",
            "720 stop stop"
        ]
    );
}

#[test]
fn what_a_person_asked_for_is_done_as_often() {
    let mut session = Session::default().asks("Run ./measure.sh 60 times.");
    for _ in 0..60 {
        session.runs("./measure.sh", true, "ok");
    }
    assert_eq!(session.decisions(&[]), [""; 0]);
}
