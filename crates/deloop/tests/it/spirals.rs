//! Runaways that consist of rounds: compactions that bring nothing new, and requests to continue that bring nothing new.

use serde_json::{Value, json};

use crate::agent_hooks::Agent;
use crate::binary::stream;

/// A session as Steps.
#[derive(Default)]
struct Written {
    steps: Vec<Value>,
    calls: usize,
}

impl Written {
    #[expect(clippy::needless_pass_by_value, reason = "a case reads better with its JSON in place")]
    fn call(&mut self, tool: &str, args: Value, ok: bool, output: &str) {
        self.calls += 1;
        let id = self.calls.to_string();
        self.steps.push(json!({"type": "call", "id": id, "tool": tool, "args": args}));
        self.steps.push(json!({"type": "result", "id": id, "ok": ok, "output": output}));
    }

    fn read(&mut self, path: &str) {
        self.call("read_file", json!({"path": path}), true, &format!("text of {path}"));
    }

    fn edit(&mut self, path: &str, old: &str, new: &str) {
        self.call("edit", json!({"path": path, "old_str": old, "new_str": new}), true, "done");
    }

    fn run(&mut self, command: &str, ok: bool, output: &str) {
        self.call("bash", json!({"command": command}), ok, output);
    }

    fn compact(&mut self) {
        self.steps.push(json!({"type": "compact"}));
    }

    fn asked(&mut self, text: &str, origin: &str) {
        self.steps.push(json!({"type": "user", "text": text, "origin": origin}));
    }

    fn says(&mut self, text: &str) {
        self.steps.push(json!({"type": "turn", "text": text}));
    }

    /// The decisions other than `continue`: step, action and rung, up to the first stop.
    fn decisions(&self, arguments: &[&str]) -> Vec<(u64, String, String)> {
        let home = tempfile::tempdir().unwrap();
        let input: String = self.steps.iter().map(|step| format!("{step}\n")).collect();
        let answers = stream(home.path(), arguments, input.as_bytes());
        assert_eq!(answers.len(), self.steps.len());
        let mut decided = Vec::new();
        for answer in answers.iter().filter(|answer| answer["action"] != "continue") {
            let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
            decided.push((answer["step"].as_u64().unwrap(), text("action"), text("rung")));
            if answer["action"] == "stop" {
                assert_eq!(answer["status"], "LOOP_DETECTED");
                break;
            }
        }
        decided
    }

    /// Expects two nudges and then a stop at these steps.
    fn is_ended(&self, [first, second, end]: [u64; 3]) {
        let expected = [(first, "nudge", "nudge"), (second, "nudge", "second-nudge"), (end, "stop", "stop")];
        let expected = expected.map(|(step, action, rung)| (step, action.to_owned(), rung.to_owned()));
        assert_eq!(self.decisions(&[]), expected);
    }

    fn is_untouched(&self) {
        assert_eq!(self.decisions(&[]), []);
    }
}

/// So many rounds in which the same files are read.
fn rereading(rounds: usize, files: usize) -> Written {
    let mut session = Written::default();
    session.asked("Fix the parser.", "human");
    for _ in 0..rounds {
        (0..files).for_each(|file| session.read(&format!("src/part{file}.py")));
        session.compact();
    }
    session
}

/// So many answers to a stop hook. `answer` says what the agent does each time.
fn persisted(rounds: usize, answer: impl Fn(&mut Written, usize)) -> Written {
    let mut session = Written::default();
    session.asked("Fix the parser.", "human");
    session.edit("parser.py", "x", "y");
    session.run("git status --short", true, " M parser.py");
    session.says("The parser is fixed.");
    for round in 1..=rounds {
        session.asked(&format!("Stop hook feedback: not done (round {round})."), "harness");
        answer(&mut session, round);
    }
    session
}

/// A sentence that shares few words with the others.
fn reworded(round: usize) -> String {
    let words = ["finished", "complete", "delivered", "closed", "over", "resolved", "ready", "settled"];
    let more = ["parser", "work", "task", "request", "ticket", "change", "repair"];
    format!("{} {}", more[round % more.len()], words[round % words.len()])
}

#[test]
fn rounds_of_rereading_are_nudged_and_ended() {
    rereading(30, 3).is_ended([23, 30, 42]);
}

#[test]
fn a_spiral_of_211_compactions_is_ended_at_the_sixth() {
    let session = rereading(211, 20);
    let decided = session.decisions(&[]);
    let (step, action, _) = decided.last().unwrap();
    assert_eq!((action.as_str(), *step), ("stop", 6 * 41), "{decided:?}");
    assert!(decided.iter().filter(|(_, action, _)| action == "nudge").count() >= 2, "{decided:?}");
    assert!(decided.iter().all(|(_, action, _)| action != "block"), "{decided:?}");
}

#[test]
fn compactions_with_nothing_in_between_are_ended() {
    let mut session = Written::default();
    session.asked("Fix the parser.", "human");
    session.read("parser.py");
    (0..30).for_each(|_| session.compact());
    session.is_ended([5, 6, 7]);
}

#[test]
fn an_attended_spiral_warns_the_person() {
    let session = rereading(30, 3);
    let decided = session.decisions(&["--attended"]);
    assert_eq!(decided[2], (42, "warn".to_owned(), "stop".to_owned()));
    assert_eq!(decided.iter().filter(|(_, action, _)| action != "nudge").count(), 1, "{decided:?}");
    let nudging = session.decisions(&["--mode", "nudge"]);
    assert_eq!(nudging[2], (42, "warn".to_owned(), "stop".to_owned()));
}

#[test]
fn five_honest_compactions_stay_untouched() {
    let mut session = Written::default();
    session.asked("Build the importer.", "human");
    for round in 0..6 {
        session.read("PLAN.md");
        session.read("docs/rules.md");
        for file in 0..8 {
            session.read(&format!("src/{round}/{file}.py"));
        }
        session.edit(&format!("src/{round}/0.py"), "pass", "return 1");
        session.run(&format!("pytest src/{round}"), true, &format!("{} passed in 1.{round}s", 10 + round));
        session.compact();
    }
    session.is_untouched();
}

#[test]
fn rereading_instructions_and_one_edit_a_round_stays_untouched() {
    let mut session = Written::default();
    session.asked("Translate the pages.", "human");
    for round in 0..20 {
        session.read("AGENTS.md");
        session.edit(&format!("pages/{round}.md"), "Hello", "Bonjour");
        session.compact();
    }
    session.is_untouched();
}

#[test]
fn two_compactions_in_a_row_stay_untouched() {
    let mut session = Written::default();
    for round in 0..4 {
        session
            .asked(&format!("Explain module {}.", ["lexer", "parser", "printer", "cache"][round]), "human");
        session.read("README.md");
        session.compact();
        session.compact();
    }
    session.is_untouched();
}

#[test]
fn done_is_ended_in_the_same_words() {
    persisted(200, |session, _| session.says("The parser is fixed.")).is_ended([11, 13, 15]);
}

#[test]
fn done_is_ended_in_other_words_each_time() {
    persisted(200, |session, round| session.says(&reworded(round))).is_ended([13, 15, 17]);
}

#[test]
fn done_is_ended_with_a_call_that_brings_nothing() {
    let session = persisted(200, |session, round| {
        session.run("git status --short", true, " M parser.py");
        session.says(&reworded(round));
    });
    session.is_ended([20, 21, 25]);
}

#[test]
fn an_attended_persistence_loop_warns_the_person() {
    let decided = persisted(200, |session, round| session.says(&reworded(round))).decisions(&["--attended"]);
    assert_eq!(decided.len(), 3, "{decided:?}");
    assert_eq!(decided[2], (17, "warn".to_owned(), "stop".to_owned()));
}

#[test]
fn a_person_who_writes_ends_the_count() {
    let session = persisted(40, |session, round| {
        session.says(&reworded(round));
        if round % 3 == 0 {
            session.asked(&format!("Look at {} again.", reworded(round + 1)), "human");
            session.says("I looked.");
        }
    });
    session.is_untouched();
}

#[test]
fn a_hook_that_runs_the_tests_stays_untouched() {
    let session = persisted(12, |session, round| {
        session.edit("parser.py", &reworded(round), &reworded(round + 1));
        session.run("pytest", false, &format!("{} failed, {round} passed", 20 - round));
        session.says("The parser is fixed.");
    });
    session.is_untouched();
}

#[test]
fn a_ralph_loop_that_makes_progress_stays_untouched() {
    let mut session = Written::default();
    for round in 0..30 {
        session.asked("Read PROMPT.md, do the next open item and stop.", "harness");
        session.read("PROMPT.md");
        session.edit(&format!("src/item{round}.py"), "todo", "done");
        session.says("One item is done.");
    }
    session.is_untouched();
}

#[test]
fn a_reviewer_and_a_poll_stay_untouched() {
    let mut session = Written::default();
    for round in 0..40 {
        session.asked(&format!("Approve this command: {}", reworded(round)), "harness");
        session.says(&format!("allow: {}", reworded(round * 3)));
    }
    for round in 0..40 {
        session.asked("Is the build green?", "harness");
        session.run("curl -s ci.example.com/7", true, &format!("stage {} of forty", reworded(round)));
        session.says(&format!("Not yet, {}", reworded(round * 5)));
    }
    session.is_untouched();
}

/// The end of a turn, after a hook kept the agent going or not.
fn stop(agent: &Agent, name: &str, active: bool, text: &str) -> Value {
    let text = json!({"stop_hook_active": active, "last_assistant_message": text, "prompt_response": text});
    agent.event(name, text)
}

#[test]
fn a_stop_hook_that_never_lets_go_is_outweighed() {
    for (name, event) in
        [("claude-code", "Stop"), ("codex", "Stop"), ("gemini-cli", "AfterAgent"), ("qwen-code", "Stop")]
    {
        let agent = Agent::new(name, "default", "enforce");
        let mut warned = 0;
        let ended = (0..30).find(|round| {
            let reply = stop(&agent, event, *round > 0, &reworded(*round));
            if reply["continue"] == false {
                assert!(
                    reply["stopReason"].as_str().unwrap().starts_with("[deloop] Stopped after two warnings"),
                    "{reply}"
                );
                return true;
            }
            assert_eq!(reply["decision"], Value::Null, "{name} must not be kept going: {reply}");
            assert_eq!(reply["hookSpecificOutput"], Value::Null, "{name} must not be kept going: {reply}");
            warned +=
                usize::from(reply["systemMessage"].as_str().is_some_and(|m| m.contains("keeps asking")));
            false
        });
        assert_eq!((warned, ended), (2, Some(6)), "{name}");
        let later = stop(&agent, event, true, "It is really done.");
        assert_eq!(later["continue"], false, "{name}: {later}");
        let end = agent.query::<String>("SELECT action FROM decisions ORDER BY rowid DESC LIMIT 1");
        assert_eq!(end, "stop", "{name}");
    }
}

#[test]
fn the_model_reads_the_message_with_its_next_call() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    agent.before("git status");
    agent.after("PostToolUse", "git status", json!({"tool_response": {"stdout": "clean", "exit_code": 0}}));
    let mut told = 0;
    for round in 0..6 {
        stop(&agent, "Stop", round > 0, &reworded(round));
        let reply = agent.before("git status");
        let message = reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
        told += usize::from(message.contains("asked to continue"));
        agent.after(
            "PostToolUse",
            "git status",
            json!({"tool_response": {"stdout": "clean", "exit_code": 0}}),
        );
    }
    assert!(told > 0);
}

#[test]
fn mode_nudge_and_document_profiles_end_nothing() {
    let agent = Agent::new("claude-code", "default", "nudge");
    let replies: Vec<Value> = (0..12).map(|n| stop(&agent, "Stop", n > 0, &reworded(n))).collect();
    assert!(replies.iter().all(|reply| reply["continue"] != false));
    let held =
        |reply: &Value| reply["systemMessage"].as_str().is_some_and(|m| m.contains("would have stopped"));
    assert_eq!(replies.iter().filter(|reply| held(reply)).count(), 1, "{replies:?}");
    for profile in ["signature", "behavioral", "turn-similarity"] {
        let agent = Agent::new("claude-code", profile, "enforce");
        let silent = (0..12).all(|n| stop(&agent, "Stop", n > 0, &reworded(n)).is_null());
        assert!(silent, "{profile}");
    }
}

#[test]
fn a_spiral_is_ended_through_the_hooks() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    let (mut told, mut compactions) = (0, 0);
    let ended = (0..400).find(|call| {
        let command = format!("cat src/part{}.py", call % 20);
        let reply = agent.before(&command);
        told += usize::from(reply["hookSpecificOutput"]["additionalContext"].is_string());
        if reply["continue"] == false {
            return true;
        }
        let output = json!({"tool_response": {"stdout": format!("text of {command}"), "exit_code": 0}});
        told += usize::from(
            agent.after("PostToolUse", &command, output)["hookSpecificOutput"]["additionalContext"]
                .is_string(),
        );
        if call % 20 == 19 {
            assert_eq!(agent.event("PreCompact", json!({"trigger": "auto"})), Value::Null);
            compactions += 1;
        }
        false
    });
    assert!(ended.is_some() && compactions <= 8, "{ended:?} after {compactions} compactions");
    assert!(told >= 2, "{told}");
}
