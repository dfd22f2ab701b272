//! The signature document: the texts of its warnings, and where they and the stop go.

use serde_json::{Value, json};

use super::text;
use crate::agent_hooks::{Agent, denied};
use crate::binary::stream;

fn answers(steps: &[Value]) -> Vec<Value> {
    stream(tempfile::tempdir().unwrap().path(), &["-p", "signature"], &text(steps))
}

#[expect(clippy::needless_pass_by_value, reason = "a case reads better with its JSON in place")]
fn call(tool: &str, args: Value) -> Value {
    json!({"type": "call", "tool": tool, "args": args})
}

fn warning(count: u32, pattern: &str) -> String {
    format!(
        "⚠️ Loop detected: You appear to be repeating the same sequence of tool calls\n\
         without making progress. The following pattern has repeated {count} times:\n\
         {pattern}\n\
         \n\
         Please try a different approach. Consider:\n\
         - Re-reading error messages more carefully\n\
         - Trying an alternative solution strategy\n\
         - Breaking the problem into smaller steps"
    )
}

#[test]
fn the_warning_has_the_documents_text() {
    let read = call("read_file", json!({"path": "src/auth.py"}));
    let edit = call("edit_file", json!({"path": "src/auth.py", "new": "x"}));
    let tests = call("run_tests", json!({}));
    for (cycle, pattern) in [
        (vec![read.clone()], "  1. read_file(src/auth.py)"),
        (vec![edit.clone(), tests.clone()], "  1. edit_file(src/auth.py)\n  2. run_tests()"),
        (
            vec![read, edit, tests],
            "  1. read_file(src/auth.py)\n  2. edit_file(src/auth.py)\n  3. run_tests()",
        ),
    ] {
        let twice: Vec<Value> = cycle.iter().chain(&cycle).cloned().collect();
        let last = answers(&twice).pop().unwrap();
        assert_eq!((&last["action"], &last["role"]), (&json!("nudge"), &json!("user")));
        assert_eq!(last["message"], warning(2, pattern));
    }
}

/// The stronger warning names tools of this session that aren't part of the loop, and what failed.
#[test]
fn the_stronger_warning_suggests_specific_alternatives() {
    let test = |id: &str| {
        let mut call = call("run_tests", json!({}));
        call["id"] = json!(id);
        [call, json!({"type": "result", "id": id, "ok": false, "output": "1 failed"})]
    };
    let mut steps = vec![call("search", json!({"query": "auth"})), call("git_log", json!({}))];
    for id in ["a", "b", "c"] {
        steps.extend(test(id));
    }
    let answers = answers(&steps);
    let (first, second) = (&answers[4], &answers[6]);
    assert_eq!((&first["level"], &second["level"]), (&json!(1), &json!(2)));
    let message = second["message"].as_str().unwrap();
    assert!(message.starts_with("⚠️ Loop detected again: You are still repeating"), "{message}");
    for part in
        ["search", "git_log", "run_tests failed 2 of 3 times", "The session ends if it occurs once more"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!first["message"].as_str().unwrap().contains("search"), "only the second one does");
}

#[test]
fn the_third_detection_stops_with_its_status() {
    let answers = answers(&vec![call("ls", json!({})); 5]);
    let seen: Vec<(&str, &Value)> =
        answers.iter().map(|answer| (answer["action"].as_str().unwrap(), &answer["status"])).collect();
    let (none, status) = (&Value::Null, &json!("LOOP_DETECTED"));
    let expected = [("continue", none), ("nudge", none), ("nudge", none), ("stop", status), ("stop", status)];
    assert_eq!(seen, expected);
}

/// Claude Code gives the model the warning with the result of the call, and the session ends for good.
#[test]
fn claude_code_gets_the_warning_before_its_next_turn() {
    let mut agent = Agent::new("claude-code", "signature", "enforce");
    agent.before("ls");
    let second = agent.before("ls");
    let told = second["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert_eq!(told, warning(2, "  1. Bash(ls)"));
    agent.before("ls");
    let fourth = agent.before("ls");
    assert!(denied(&fourth) && fourth["continue"] == false, "{fourth}");
    let prompt = agent.event("UserPromptSubmit", json!({"prompt": "Go on"}));
    assert!(agent.before("pwd")["continue"] == false, "{prompt}");
}

/// "If the loop continues after warning injection": within one turn nothing was injected yet.
#[test]
fn a_turn_of_identical_calls_is_warned_about_once() {
    let turn = |n: u32| {
        let calls: Vec<Value> =
            (0..4).map(|c| json!({"id": format!("{n}.{c}"), "tool": "ls", "args": {}})).collect();
        json!({"type": "turn", "calls": calls})
    };
    let levels: Vec<Value> =
        answers(&[turn(1), turn(2), turn(3)]).iter().map(|a| a["level"].clone()).collect();
    assert_eq!(levels, [1, 2, 3]);
}

/// A warning that was reported undelivered wasn't injected: the same warning comes again.
#[test]
fn undelivered_warnings_stop_nothing() {
    let mut steps = Vec::new();
    for n in 0..6 {
        steps.push(call("ls", json!({})));
        steps.push(json!({"type": "delivery", "step": 2 * n, "ok": false}));
    }
    let mut seen: Vec<Value> = answers(&steps).iter().step_by(2).map(|a| a["level"].clone()).collect();
    assert_eq!(seen, [0, 1, 1, 1, 1, 1], "never told, never stopped");
    for step in steps.iter_mut().skip(1).step_by(2) {
        step["ok"] = json!(true);
    }
    seen = answers(&steps).iter().step_by(2).map(|a| a["level"].clone()).collect();
    assert_eq!(seen, [0, 1, 2, 3, 3, 3]);
}

/// A call without arguments can't be made with others.
#[test]
fn a_tool_without_arguments_is_not_told_to_use_others() {
    let stronger = |cycle: &[Value]| {
        let steps: Vec<Value> = cycle.iter().cycle().take(3 * cycle.len()).cloned().collect();
        let last = answers(&steps).pop().unwrap();
        assert_eq!(last["level"], 2, "{last}");
        last["message"].as_str().unwrap().to_owned()
    };
    for args in [json!({}), json!(null)] {
        let message = stronger(&[call("run_tests", args)]);
        assert!(!message.contains("other arguments"), "{message}");
        assert!(message.contains("Change what run_tests works on before you call it again"), "{message}");
    }
    let read = call("read_file", json!({"path": "a.py"}));
    let message = stronger(std::slice::from_ref(&read));
    assert!(message.contains("Call read_file with other arguments"), "{message}");
    let message = stronger(&[read, call("run_tests", json!({}))]);
    assert!(message.contains("Call read_file with other arguments"), "{message}");
    assert!(!message.contains("run_tests with other"), "{message}");
}
