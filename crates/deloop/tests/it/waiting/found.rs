//! Loops that stayed quiet: each gets at least a message.

use serde_json::json;

use super::rules::{are_found, expect, is_only_messaged};
use super::session::{Gap, Look, PAUSES, Session};

/// The gaps of an agent that works. Nothing here is worth a wait.
fn at_each(case: &str, looks: usize, look: impl Fn(usize) -> Look) -> Vec<Session> {
    PAUSES[..3].iter().map(|gap| Session::new(case, *gap).looking(looks, &look)).collect()
}

#[test]
fn the_same_command_under_other_descriptions() {
    const WHY: [&str; 14] = [
        "Print working directory",
        "Check the current folder",
        "Where are we",
        "Confirm location before the build",
        "Show path",
        "Verify cwd",
        "Look up the directory again",
        "Determine project root",
        "Get current path",
        "Make sure we are in the repository",
        "Display folder",
        "Re-check directory",
        "Find out the present directory",
        "Locate workspace",
    ];
    are_found(&at_each("pwd", 14, |i| {
        Look::new("Bash", json!({"command": "pwd", "description": WHY[i]}), "/home/ann/web\n")
    }));
}

const FAILURE: &str =
    "error: Failed to find expected lines in src/app.py:\n    def run(self):\n        return self.start()\n";

fn patch(output: &str) -> Look {
    let script = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: src/app.py\n@@\n     def run(self):\n\
                  -        return self.start()\n+        return self.start(now=True)\n*** End Patch\nEOF";
    let args = json!({"command": ["bash", "-lc", script], "timeout_ms": 120_000});
    Look::new("shell", args, output)
}

/// Found, with a message that quotes neither the time-out nor the output.
fn are_found_and_named(sessions: &[Session]) {
    expect(&[], sessions, |_, decisions| {
        let first = decisions.first().ok_or("nothing found")?;
        let quoted = ["120000", "120_000", "Failed to find expected lines", "def run(self)", "exit_code"];
        match quoted.iter().find(|text| first.message().contains(*text)) {
            Some(text) => Err(format!("quotes {text:?}: {first}")),
            None => Ok(()),
        }
    });
}

#[test]
fn the_same_patch_three_times() {
    are_found_and_named(&at_each("apply_patch through shell", 3, |_| patch(FAILURE).fails()));
}

/// Codex reports the exit code inside the output.
#[test]
fn the_same_patch_three_times_with_the_exit_code_inside() {
    let output =
        json!({"output": FAILURE, "metadata": {"exit_code": 1, "duration_seconds": 0.1}}).to_string();
    are_found_and_named(&at_each("apply_patch, exit code inside", 3, |_| patch(&output).unreported()));
}

#[test]
fn the_same_search_with_other_scores() {
    are_found(&at_each("search with scores", 12, |i| {
        let score = |base: f64| base + f64::from(u32::try_from(i * 7_919 % 997).unwrap()) / 1e5;
        let hits = json!([
            {"path": "docs/auth.md", "score": score(0.871), "text": "Tokens expire after an hour."},
            {"path": "docs/login.md", "score": score(0.812), "text": "Sign in with a passkey."},
            {"path": "src/auth.ts", "score": score(0.794), "text": "export function verify(token: string)"},
        ]);
        Look::new("search_docs", json!({"query": "token expiry", "limit": 3}), hits.to_string())
    }));
}

#[test]
fn two_outputs_in_turn() {
    let output = |i: usize| ["mode: blue\nhost: a.example\n", "mode: green\nhost: b.example\n"][i % 2];
    are_found(&at_each("two outputs in turn", 14, |i| Look::shell("cat config/active", output(i))));
}

/// In mode `nudge`, messages are all there is: they continue, at doubling distances.
#[test]
fn an_agent_that_ignores_messages_is_reminded() {
    let look = |_| Look::shell("python import.py", "error: column \"total\" does not exist\n").fails();
    expect(&["--mode", "nudge"], &at_each("mode nudge", 60, look), |_, decisions| {
        let at: Vec<usize> = decisions.iter().filter(|d| d.action() == "nudge").map(|d| d.look).collect();
        if !(4..=8).contains(&at.len()) {
            return Err(format!("{} messages instead of 4 to 8, at looks {at:?}", at.len()));
        }
        let between: Vec<usize> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if between.is_sorted() { Ok(()) } else { Err(format!("distances don't grow: looks {at:?}")) }
    });
}

#[test]
fn turns_with_neither_text_nor_call() {
    let session = |gap: &Gap| {
        let mut session = Session::new("empty turns", *gap);
        session.prompt("Fix the parser.", "human");
        for _ in 0..100 {
            session.wait();
            session.looks += 1;
            session.says("");
        }
        session
    };
    expect(&[], &PAUSES[..3].iter().map(session).collect::<Vec<_>>(), |_, decisions| {
        let first = decisions.first().ok_or("nothing found")?;
        let last = decisions.last().ok_or("nothing found")?;
        match (first.action(), last.action()) {
            ("nudge", "stop") if first.look == 10 && last.look <= 60 => Ok(()),
            _ => Err(format!("{first} … {last}")),
        }
    });
}

/// Nothing shows what came of these calls, so they can't be refused, but the agent hears of them again and again.
#[test]
fn calls_whose_results_never_come() {
    let session = |gap: &Gap| {
        let mut session = Session::new("no results", *gap);
        session.prompt("Fetch the report.", "human");
        (0..60)
            .for_each(|_| session.call_without_result("fetch", &json!({"url": "https://reports.example/7"})));
        session
    };
    expect(&[], &PAUSES[..3].iter().map(session).collect::<Vec<_>>(), |session, decisions| {
        is_only_messaged(session, decisions)?;
        if (4..=8).contains(&decisions.len()) { Ok(()) } else { Err(format!("{} messages", decisions.len())) }
    });
}
