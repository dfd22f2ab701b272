//! Loops that must be found, each with something around it that once hid it.

use serde_json::{Value, json};

use super::{Agent, Done, Transcript, done, edit, fails, judged, passes};

/// What an unattended run in enforce mode goes through, one rung a turn.
const LADDER: [&str; 5] = ["nudge", "nudge", "block", "block", "stop"];

/// What deloop does about ten times this call.
fn ten_times(request: &str, call: &Done) -> Vec<String> {
    let mut agent = Agent::new();
    agent.user(request);
    for _ in 0..10 {
        agent.does(call.clone());
    }
    agent.actions().into_iter().map(str::to_owned).collect()
}

#[test]
fn words_of_waiting_in_the_output_of_a_loop() {
    for output in [
        "interactive rebase in progress; onto 9f31c2e\nerror: commit is not possible because you have unmerged files",
        "12 passed, 1 failed, 1 pending\nError: expected 41 to be 42",
        "image processing failed: still running the old worker, please wait",
    ] {
        assert_eq!(ten_times("Finish the release.", &fails("make release", output)), LADDER, "{output}");
    }
    for output in [
        "interactive rebase in progress; onto 9f31c2e\nNo commands done.\nYou are currently rebasing.",
        "deploy: 3 done, 1 pending",
    ] {
        let actions = ten_times("Finish the release.", &passes("cat .git/state", output));
        assert_eq!(actions.first().map(String::as_str), Some("nudge"), "{output}");
    }
}

#[test]
fn a_message_with_a_number_in_it_raises_no_threshold() {
    let read = done(
        "Read",
        json!({"file_path": "src/cart.ts"}),
        json!({"ok": true, "output": "export const total = 41;\n"}),
    );
    let test = fails("npm test", "AssertionError: expected 41 to be 42");
    for call in [read, test] {
        let plain = ten_times("Fix the cart.", &call);
        assert_eq!(plain.first().map(String::as_str), Some("nudge"));
        for request in [
            "Fix the cart. The build failed 10 times yesterday.",
            "the build failed 10 times yesterday",
            "Fix the cart, and indent every second line.",
            "indent every second line",
        ] {
            assert_eq!(ten_times(request, &call), plain, "{request}");
        }
    }
}

#[test]
fn an_output_that_quotes_deloop() {
    let quoted = "[deloop] Blocked. You ran `npm test` 3 times without changing anything in between.\nAssertionError: expected 41 to be 42";
    assert_eq!(ten_times("Fix the cart.", &fails("npm test", quoted)), LADDER);
    let log = "[deloop] This is the second warning. You ran `npm test` 5 times.\n";
    let actions = ten_times("Fix the cart.", &passes("cat agent.log", log));
    assert_eq!(actions.first().map(String::as_str), Some("nudge"));
}

#[test]
fn the_same_edit_refused_in_new_words() {
    let refusals = [
        "Edit blocked: src/schema.ts is generated. Run the generator instead.",
        "The guard rejected this change because generated files are read-only.",
        "Not allowed. Schema files may only be written by `make schema`.",
        "Refused again: see CONTRIBUTING.md on generated code.",
        "Permission for this write was not given.",
        "This hook does not let you touch generated sources.",
        "No: the file has a DO NOT EDIT header.",
        "Write to a protected path prevented.",
    ];
    for result in [
        |text: &str| json!({"outcome": "denied", "output": text}),
        |text: &str| json!({"ok": false, "output": text}),
    ] {
        let mut agent = Agent::new();
        agent.user("Rename the column in the schema.");
        for refusal in refusals {
            let mut refused = edit("src/schema.ts", "user_name", "username");
            refused.result = result(refusal);
            agent
                .does(refused)
                .does(passes("git add -A", ""))
                .does(passes("git diff --stat", " src/model.ts | 2 +-\n"));
        }
        let actions = agent.actions();
        assert!(actions.starts_with(&["nudge", "nudge", "block"]), "{actions:?}");
        assert_eq!(agent.first()["findings"][0]["count"], 3);
        assert_eq!(agent.first()["findings"][0]["changed"], false);
    }
}

/// Twenty turns with as many calls each, and what becomes of them.
fn many_a_turn(turn: &dyn Fn(usize) -> Vec<Done>) -> Agent {
    let mut agent = Agent::new();
    agent.user("Get the services up.");
    for n in 0..20 {
        agent.turn(turn(n));
    }
    agent
}

#[track_caller]
fn assert_told_then_refused(agent: &Agent) {
    let actions = agent.actions();
    assert!(actions.starts_with(&["nudge", "nudge"]), "told twice first: {actions:?}");
    assert!(actions.contains(&"block"), "then refused: {actions:?}");
    assert!(agent.stopped(), "then ended: {actions:?}");
}

#[test]
fn forty_identical_failing_calls_in_each_turn() {
    let call = fails("bin/health 8080", "health: cannot connect to localhost port 8080");
    assert_told_then_refused(&many_a_turn(&|_| vec![call.clone(); 40]));
}

fn batch(size: usize) -> Vec<Done> {
    let one = |n: usize| {
        let output = format!("health: services.toml has no entry for svc-{n}, port 80{n:02}");
        fails(&format!("bin/health svc-{n}:80{n:02}"), &output)
    };
    (0..size).map(one).collect()
}

#[test]
fn twenty_failing_calls_in_each_turn() {
    assert_told_then_refused(&many_a_turn(&|_| batch(20)));
}

/// Services that can't be reached may come up by themselves.
#[test]
fn twenty_calls_in_each_turn_that_reach_nothing_are_told_and_never_refused() {
    let one = |n: usize| fails(&format!("bin/health svc-{n}"), "health: cannot connect to the service");
    let agent = many_a_turn(&|_| (0..20).map(one).collect());
    let actions = agent.actions();
    assert!(!actions.is_empty() && actions.iter().all(|action| *action == "nudge"), "{actions:?}");
}

/// Of so many calls not all arguments are remembered. The shell alone was called far more often than three times.
#[test]
fn a_call_without_its_arguments_is_not_named_by_its_tool_alone() {
    let agent = many_a_turn(&|_| batch(20));
    let told = agent.first()["message"].as_str().unwrap();
    assert!(told.starts_with("[deloop] You made the same call of `Bash` 3 times without changing"), "{told}");
}

#[test]
fn ten_failing_calls_in_each_turn() {
    assert_told_then_refused(&many_a_turn(&|_| batch(10)));
}

#[test]
fn a_headless_agent_asks_four_times() {
    let questions = [
        "Which database should I use?",
        "Before I go on: do you prefer Postgres or SQLite?",
        "I need a decision about storage. What shall it be?",
        "Could you confirm the storage engine for the service?",
        "Storage is still open. Any preference at all?",
    ];
    let mut transcript = Transcript::new("Add persistence to the service.");
    for question in questions {
        let options = json!([{"label": "Postgres", "description": "a server"}, {"label": "SQLite", "description": "a file"}]);
        let input = json!({"questions": [{"question": question, "header": "Storage", "options": options, "multiSelect": false}]});
        transcript.call("AskUserQuestion", input, "Answer questions?", true);
    }
    let (decisions, loops) = judged("5f0c.jsonl", &transcript.text, 11);
    assert!(
        decisions.iter().take(13).any(|d| d["action"] == "nudge"),
        "by the fourth question: {decisions:#?}"
    );
    assert_eq!(loops.as_array().map(Vec::len), Some(1), "{loops:#}");
}

/// All kinds of calls with all kinds of failures.
fn misfortune(n: usize) -> Done {
    let failures = [
        ("make", "make: *** No targets specified and no makefile found.  Stop."),
        ("npm test", "npm ERR! enoent Could not read package.json"),
        ("cargo build", "error: could not find `Cargo.toml` in `/srv`"),
        ("python run.py", "python: can't open file 'run.py': [Errno 2] No such file or directory"),
        ("git log", "fatal: not a git repository (or any of the parent directories): .git"),
        ("go vet ./...", "go: go.mod file not found in current directory"),
        ("docker build .", "ERROR: failed to read dockerfile: open Dockerfile: no such file"),
        ("psql shop", "psql: error: connection to server on socket failed"),
        ("kubectl apply -f x.yaml", "The connection to the server localhost:8443 was refused"),
        ("terraform init", "Terraform initialized in an empty directory! Error: no configuration"),
        ("ruby app.rb", "ruby: No such file or directory -- app.rb (LoadError)"),
        ("mvn package", "[ERROR] there is no POM in this directory"),
    ];
    let (command, output) = failures[n % failures.len()];
    fails(&format!("{command} # {n}"), &format!("{output} ({})", "x".repeat(n / failures.len())))
}

#[test]
fn a_run_in_which_everything_fails() {
    for a_turn in [1, 2] {
        let mut agent = Agent::new();
        agent.user("Deploy the shop.");
        for turn in 0..24 / a_turn + 4 {
            agent.turn((0..a_turn).map(|n| misfortune(turn * a_turn + n)).collect());
        }
        assert_eq!(agent.actions(), ["nudge", "nudge", "stop"], "{a_turn} a turn");
        assert_eq!(agent.made, 20, "{a_turn} a turn");
        assert_eq!(agent.decisions.last().unwrap()["status"], "LOOP_DETECTED");
    }
}

/// With a person there, such a run is asked about or only told, never ended.
#[test]
fn an_attended_run_in_which_everything_fails_is_not_stopped() {
    let mut agent = Agent::with(&["--attended"]);
    agent.user("Deploy the shop.");
    for turn in 0..26 {
        agent.does(misfortune(turn));
    }
    let actions = agent.actions();
    assert!(actions.starts_with(&["nudge", "nudge"]), "{actions:?}");
    assert!(!actions.contains(&"stop") && !actions.contains(&"block"), "{actions:?}");
}

#[test]
fn workers_of_a_swarm_fail_the_same_call() {
    let mut agent = Agent::new();
    for worker in 0..14 {
        agent.who =
            json!({"session": format!("w{worker}"), "agent": format!("worker-{worker}"), "swarm": "port"});
        agent
            .user(&format!("Port module {worker}."))
            .does(fails("npm ci", "npm ERR! code E401\nnpm ERR! Incorrect or missing password."));
    }
    assert!(agent.actions().contains(&"nudge"), "{:?}", agent.actions());
    let finding: &Value = &agent.first()["findings"][0];
    assert_eq!((&finding["detector"], &finding["count"]), (&json!("swarm-repeat"), &json!(10)));
}
