//! Subagents that start subagents, and tasks that are given to them again and again.

use serde_json::{Value, json};

use crate::agent_hooks::{Agent, denied};
use crate::binary::{deloop, run, said, stream};

/// The steps with a decision, each with its action and rung.
fn decided(steps: &[Value]) -> Vec<(usize, String)> {
    let home = tempfile::tempdir().unwrap();
    let input: String = steps.iter().map(|step| format!("{step}\n")).collect();
    let answers = stream(home.path(), &[], input.as_bytes());
    assert_eq!(answers.len(), steps.len());
    let acts = answers.iter().enumerate().filter(|(_, answer)| answer["action"] != "continue");
    acts.map(|(n, answer)| (n, format!("{} {}", answer["action"], answer["rung"]).replace('"', ""))).collect()
}

fn spawn(agent: Option<&str>, id: &str, prompt: &str) -> Value {
    json!({"type": "call", "agent": agent, "id": id, "tool": "Task", "args": {"prompt": prompt}})
}

fn read(agent: &str, id: &str, file: &str) -> [Value; 2] {
    [
        json!({"type": "call", "agent": agent, "id": id, "tool": "Read", "args": {"file_path": file}}),
        json!({"type": "result", "agent": agent, "id": id, "ok": true, "output": format!("text of {file}")}),
    ]
}

fn answer(agent: Option<&str>, id: &str, output: &str) -> Value {
    json!({"type": "result", "agent": agent, "id": id, "ok": true, "output": output})
}

fn at(steps: &[(usize, &str)]) -> Vec<(usize, String)> {
    steps.iter().map(|(step, act)| (*step, (*act).to_owned())).collect()
}

const ENDED: [&str; 5] = ["nudge nudge", "nudge second-nudge", "block block", "block hand-over", "stop stop"];
/// A level that is there although the one above it was refused leaves no more to say.
const DEEPER: [&str; 3] = ["nudge nudge", "block block", "stop stop"];

#[test]
fn sixty_nested_subagents_are_nudged_blocked_and_ended() {
    let mut steps = vec![spawn(None, "s0", "Part 0")];
    for n in 1..60 {
        let agent = format!("a{n}");
        steps.extend(read(&agent, &format!("r{n}"), &format!("{n}.rs")));
        steps.push(spawn(Some(&agent), &format!("s{n}"), &format!("Part {n}")));
    }
    let decided = decided(&steps);
    // The spawn of level n is step 3(n - 1).
    let expected = [9, 12, 15].into_iter().zip(DEEPER).collect::<Vec<_>>();
    assert_eq!(decided[..3], at(&expected));
    let stopped = decided[3..].iter().filter(|(_, act)| act == "stop stop").count();
    assert_eq!(stopped, steps.len() - 16, "the stop applies to every agent of the session");
}

#[test]
fn subagents_that_only_start_others_are_nudged_blocked_and_ended() {
    let mut steps = vec![spawn(None, "s0", "Build the page")];
    for n in 1..30 {
        let agent = format!("a{n}");
        steps.push(spawn(Some(&agent), &format!("s{n}"), &format!("Build the page, implementer {n}")));
        steps.push(answer(Some(&agent), &format!("s{n}"), "started in the background"));
    }
    let expected = [5, 7, 9].into_iter().zip(DEEPER).collect::<Vec<_>>();
    assert_eq!(decided(&steps)[..3], at(&expected));
}

/// Every subagent starts three others at once and does nothing else.
#[test]
fn a_tree_that_only_grows_is_ended() {
    let mut steps = vec![spawn(None, "s0", "Research")];
    let mut agents = std::collections::VecDeque::from(["a".to_owned()]);
    while steps.len() < 200 {
        let agent = agents.pop_front().unwrap();
        let calls: Vec<Value> = (0..3)
            .map(|n| json!({"id": format!("{agent}{n}"), "tool": "Agent", "args": {"prompt": format!("{agent} {n}")}}))
            .collect();
        steps.push(json!({"type": "turn", "agent": agent, "calls": calls}));
        agents.extend((0..3).map(|n| format!("{agent}{n}")));
    }
    let decided = decided(&steps);
    let first = |act: &str| decided.iter().find(|(_, a)| a.starts_with(act)).map(|(step, _)| *step);
    assert!(first("nudge") < first("block") && first("block") < first("stop"), "{decided:?}");
    assert!(first("stop").unwrap() < 60, "{decided:?}");
}

#[test]
fn the_same_task_twelve_times_is_nudged_blocked_and_ended() {
    let mut steps = Vec::new();
    for n in 0..12 {
        let again = if n % 2 == 0 { "Find the bug in a.rs." } else { "find the bug, in A.RS" };
        steps.push(spawn(None, &format!("s{n}"), again));
        steps.extend(read(&format!("a{n}"), &format!("r{n}"), "a.rs"));
        steps.push(answer(
            None,
            &format!("s{n}"),
            &format!("Answer {}: I found nothing.", "x".repeat(n + 1)),
        ));
    }
    let expected = [16, 20, 24, 28, 32].into_iter().zip(ENDED).collect::<Vec<_>>();
    assert_eq!(decided(&steps)[..5], at(&expected));
    // A person who writes lifts the stop, and a change makes the task new.
    steps.push(json!({"type": "user", "text": "Go on, the file has changed."}));
    steps.push(spawn(None, "last", "Find the bug in a.rs."));
    assert!(!self::decided(&steps).iter().any(|(step, _)| *step >= 48));
}

#[test]
fn honest_trees_are_left_alone() {
    // Forty files, in parallel and one by one.
    let prompt = |n: usize| format!("Review src/file_{n}.rs for bugs and report them");
    let calls: Vec<Value> = (0..40)
        .map(|n| json!({"id": format!("p{n}"), "tool": "Task", "args": {"prompt": prompt(n)}}))
        .collect();
    let mut parallel = vec![json!({"type": "turn", "calls": calls})];
    let mut in_turn = Vec::new();
    for n in 0..40 {
        let (agent, file) = (format!("w{n}"), format!("src/file_{n}.rs"));
        parallel.extend(read(&agent, "r", &file));
        parallel.push(answer(None, &format!("p{n}"), "No bugs found."));
        in_turn.push(spawn(None, &format!("p{n}"), &prompt(n)));
        in_turn.extend(read(&agent, "r", &file));
        in_turn.push(answer(None, &format!("p{n}"), "No bugs found."));
    }
    assert_eq!((decided(&parallel), decided(&in_turn)), (vec![], vec![]));

    // A planner, its workers and their testers.
    let mut tree = vec![spawn(None, "plan", "Plan and build the feature")];
    for n in 0..12 {
        let (worker, tester) = (format!("w{n}"), format!("t{n}"));
        tree.push(spawn(Some("planner"), &format!("w{n}"), &format!("Build part {n}")));
        tree.extend(read(&worker, "r", &format!("{n}.rs")));
        tree.push(spawn(Some(&worker), "t", "Run the tests and report"));
        tree.extend(read(&tester, "r", &format!("{n}.log")));
        tree.push(answer(Some(&worker), "t", "green"));
        tree.push(answer(Some("planner"), &format!("w{n}"), "built"));
    }
    assert_eq!(decided(&tree), vec![]);

    // A reviewer after every change, with the same words.
    let mut reviews = Vec::new();
    for n in 0..12 {
        let edit =
            json!({"file_path": "a.rs", "old_string": n.to_string(), "new_string": (n + 1).to_string()});
        reviews.push(json!({"type": "call", "id": format!("e{n}"), "tool": "Edit", "args": edit}));
        reviews.push(answer(None, &format!("e{n}"), "done"));
        reviews.push(spawn(None, &format!("s{n}"), "Review the uncommitted changes"));
        reviews.extend(read(&format!("r{n}"), "r", "a.rs"));
        reviews.push(answer(None, &format!("s{n}"), "Looks good."));
    }
    assert_eq!(decided(&reviews), vec![]);
}

#[test]
fn a_tool_can_be_declared_to_start_subagents() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("own.toml");
    std::fs::write(&config, "[tools.hire]\nspawns = true\n[tools.Task]\nspawns = false\n").unwrap();
    let found = |tool: &str| {
        let chain = (0..8).map(|n| {
            let agent = (n > 0).then(|| format!("a{n}"));
            json!({"type": "call", "agent": agent, "id": format!("{n}"), "tool": tool, "args": {"job": format!("{n}")}})
        });
        let input: String = chain.map(|step| format!("{step}\n")).collect();
        let answers = stream(home.path(), &["--config", config.to_str().unwrap()], input.as_bytes());
        answers.iter().filter(|answer| answer["action"] == "block").count()
    };
    assert_eq!((found("hire"), found("Task")), (1, 0));
}

/// Through the hook, as Claude Code calls it: a subagent's events carry its `agent_id`, and nobody says who started it.
#[test]
fn nested_subagents_are_refused_through_the_hook() {
    let agent = Agent::new("claude-code", "default", "enforce");
    let event = |kind: &str, who: usize, more: Value| {
        let mut all = more;
        if who > 0 {
            all["agent_id"] = json!(format!("sub{who}"));
        }
        agent.event(kind, all)
    };
    let mut replies = Vec::new();
    for who in 0..9 {
        let read = json!({"tool_name": "Read", "tool_input": {"file_path": format!("{who}")}, "tool_use_id": format!("r{who}")});
        event("PreToolUse", who, read.clone());
        let mut done = read;
        done["tool_response"] = json!(format!("text {who}"));
        event("PostToolUse", who, done);
        let task = json!({"tool_name": "Agent", "tool_input": {"prompt": format!("part {who}")}, "tool_use_id": format!("s{who}")});
        let reply = event("PreToolUse", who, task);
        let told = reply["hookSpecificOutput"]["additionalContext"]
            .as_str()
            .is_some_and(|t| t.contains("levels below"));
        replies.push((told, denied(&reply)));
        if denied(&reply) {
            // It insists.
            let again = json!({"tool_name": "Agent", "tool_input": {"prompt": "the same"}, "tool_use_id": format!("t{who}")});
            let next = event("PreToolUse", who, again.clone());
            let mut last = again;
            last["tool_use_id"] = json!("u");
            let last = event("PreToolUse", who, last);
            assert_eq!((denied(&next), last["continue"].clone()), (true, json!(false)), "{next} {last}");
            break;
        }
    }
    let (f, t) = (false, true);
    assert_eq!(replies, [(f, f), (f, f), (f, f), (t, f), (f, t)]);
    let state = run(deloop(agent.home.path()).args(["state", "s1"]), b"");
    assert_eq!(said(&state), "");
    let state = String::from_utf8(state.stdout).unwrap();
    assert!(state.contains("Subagents: ") && state.contains("at most 4 levels deep"), "{state}");
    assert!(state.contains("spawn-tree is at rung 5 of 5"), "{state}");
}
