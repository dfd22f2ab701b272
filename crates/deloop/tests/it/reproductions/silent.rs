//! Honest work that looks like a loop: no decision may be above `continue`.

use serde_json::{Value, json};

use super::{Agent, Rollout, Transcript, assert_file_is_silent, done, edit, fails, passes};

const GREEN_TESTS: &str =
    "\n> shop@1.4.0 test\n> vitest run\n\n Test Files  31 passed (31)\n      Tests  214 passed (214)\n";
const GREEN_LINT: &str = "\n> shop@1.4.0 lint\n> eslint src --max-warnings 0\n";

/// Different things that were looked for and are not there.
const GONE: [&str; 12] = [
    "AWS_SECRET_ACCESS_KEY",
    "BEGIN RSA PRIVATE KEY",
    "password\\s*=",
    "ghp_[A-Za-z0-9]{36}",
    "xoxb-",
    "eval\\(",
    "dangerouslySetInnerHTML",
    "md5\\(",
    "verify=False",
    "http://",
    "TODO: security",
    "chmod 777",
];

fn six_requests(agent: &mut Agent) {
    let requests = [
        "Make the header sticky.",
        "The totals should be right-aligned.",
        "Please show the currency after the amount.",
        "Use the brand colour for links.",
        "The search box needs a label for screen readers.",
        "Sort the orders by date, newest first.",
    ];
    for (n, request) in requests.iter().enumerate() {
        let file = format!("src/view/part_{n}.tsx");
        agent
            .user(request)
            .does(edit(&file, &format!("<Old{n} />"), &format!("<New{n} label=\"{request}\" />")))
            .does(passes("npm test", GREEN_TESTS))
            .does(passes("npm run lint", GREEN_LINT))
            .says(&format!("Done: {request}"));
    }
}

#[test]
fn six_requests_with_an_edit_a_green_test_and_a_green_lint_each() {
    for mut agent in [Agent::new(), Agent::without_times()] {
        six_requests(&mut agent);
        agent.stays_silent();
    }
}

#[test]
fn code_mode_polls_a_build_for_forty_turns() {
    for timed in [true, false] {
        for code in [
            "const r = await tools.write_stdin({session_id: 7, chars: \"\", yield_time_ms: 5000}); text(r.output)",
            "tools.write_stdin({session_id: 7, chars: \"\"})",
        ] {
            let mut rollout = Rollout::new(timed, &json!("cli"));
            rollout.message("user", "Build the release and report the size of the binary.");
            rollout.script(
                "const r = await tools.exec_command({cmd: \"cargo build --release\", yield_time_ms: 1000}); text(JSON.stringify(r))",
                "Script completed\nWall time 1.0 seconds\nOutput:\n{\"chunk_id\":\"a1\",\"wall_time_seconds\":1.0,\"session_id\":7,\"output\":\"\"}",
                1,
            );
            for _ in 0..40 {
                rollout.script(code, "Script completed\nWall time 5.0 seconds\nOutput:\n", 5);
            }
            rollout.message("assistant", "The build is through: 4.1 MB.");
            assert_file_is_silent("rollout.jsonl", &rollout.text, 83);
        }
    }
}

#[test]
fn the_approval_reviewer_answers_twenty_requests() {
    let commands = [
        "ls",
        "git push",
        "rm -rf dist",
        "npm ci",
        "curl -I shop.test",
        "docker ps",
        "make",
        "git fetch",
        "psql -l",
        "kill 7",
        "chmod +x run.sh",
        "tar xf a.tgz",
        "ssh build",
        "cp a b",
        "pip install rich",
        "terraform plan",
        "df",
        "git tag v2",
        "helm lint",
        "crontab -l",
    ];
    for same_words in [true, false] {
        let mut rollout = Rollout::new(true, &json!({"subagent": {"other": "guardian"}}));
        for command in commands {
            let ask = json!({"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "The following is the Codex agent history whose request action you are assessing."},
                {"type": "input_text", "text": format!("Planned action JSON:\n{{\"tool\":\"exec_command\",\"cmd\":\"{command}\"}}")}]});
            rollout.line("response_item", ask);
            rollout.seconds += 4;
            let why = if same_words { "a routine step of the task" } else { command };
            rollout.message("assistant", &format!(r#"{{"risk_level":"low","user_authorization":"high","outcome":"allow","rationale":"The action is {why}."}}"#));
        }
        assert_file_is_silent("rollout.jsonl", &rollout.text, 40);
    }
}

#[test]
fn an_audit_of_twelve_searches_finds_nothing() {
    let mut transcript = Transcript::new("Audit the project for leaked secrets and unsafe calls.");
    for pattern in GONE {
        let input =
            json!({"pattern": pattern, "path": "/home/dev/shop", "output_mode": "files_with_matches"});
        transcript.call("Grep", input, "No files found", false);
    }
    assert_file_is_silent("5f0c.jsonl", &transcript.text, 25);

    for mut agent in [Agent::new(), Agent::without_times()] {
        agent.user("Audit the project for leaked secrets and unsafe calls.");
        for pattern in GONE {
            agent.does(fails(&format!("rg -n '{pattern}' src"), ""));
        }
        agent.stays_silent();
    }
}

#[test]
fn todo_lists_change_and_their_receipt_does_not() {
    let receipt = "Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable";
    let mut transcript = Transcript::new("Translate the ten help pages to Danish.");
    for n in 0..10 {
        let status = |page: i32| match page.cmp(&n) {
            std::cmp::Ordering::Less => "completed",
            std::cmp::Ordering::Equal => "in_progress",
            std::cmp::Ordering::Greater => "pending",
        };
        let todos: Vec<Value> = (0..10)
            .map(|page| json!({"content": format!("Translate page {page}"), "status": status(page)}))
            .collect();
        transcript.call("TodoWrite", json!({"todos": todos}), receipt, false);
        let file = format!("/home/dev/shop/help/da/{n}.md");
        let input = json!({"file_path": file, "content": format!("# Hjælp {n}\n\nSide {n} af ti.\n")});
        transcript.call("Write", input, &format!("File created successfully at: {file}"), false);
    }
    assert_file_is_silent("5f0c.jsonl", &transcript.text, 41);
}

#[test]
fn git_status_between_edits() {
    let status = "On branch sticky\nChanges not staged for commit:\n\tmodified:   src/view/header.tsx\n\nno changes added to commit";
    for mut agent in [Agent::new(), Agent::without_times()] {
        agent.user("Make the header sticky, and keep its style.");
        for n in 0..9 {
            agent
                .does(edit("src/view/header.tsx", &format!("line {n}"), &format!("row {n}")))
                .does(passes("git status", status))
                .does(passes("git diff --check", ""));
        }
        agent.stays_silent();
    }
}

#[test]
fn a_bisection_by_hand_with_one_failing_test() {
    let failure = "FAIL tests/cart.test.ts > adds up\nAssertionError: expected 41 to be 42\n";
    let loud = |n: usize| {
        format!("Bisecting: {} revisions left to test after this (roughly {} steps)\n", 300 >> n, 8 - n)
    };
    for quiet in [true, false] {
        for mut agent in [Agent::new(), Agent::without_times()] {
            agent.user("Since some commit the cart doesn't add up. Which one?");
            agent.does(passes(
                "git bisect start HEAD v1.0",
                "status: waiting for both good and bad commits\n",
            ));
            for n in 0..8 {
                agent.does(fails("npx vitest run tests/cart.test.ts", failure));
                agent.does(match quiet {
                    true => passes("git bisect bad > /dev/null", ""),
                    false => passes("git bisect bad", &loud(n)),
                });
            }
            agent.stays_silent();
        }
    }
}

#[test]
fn a_bisection_by_checkouts() {
    let failure = "FAIL tests/cart.test.ts > adds up\nAssertionError: expected 41 to be 42\n";
    let mut agent = Agent::new();
    agent.user("Since some commit the cart doesn't add up. Which one?");
    for commit in ["9f31c2e", "77ab010", "1c0de92", "5b2f7aa", "e04c1d8", "03aa51f", "be1f904", "c2e9f31"] {
        agent.does(passes(&format!("git checkout -q {commit}"), ""));
        agent.does(fails("npx vitest run tests/cart.test.ts", failure));
    }
    agent.stays_silent();
}

#[test]
fn a_banner_in_a_message() {
    let banner = "━".repeat(300);
    let rules = ["━", "─", "═", "=", "-", "* ", "▀"].map(|c| c.repeat(120)).join("\n");
    let report =
        format!("{banner}\n  RELEASE 2.4 IS OUT\n{banner}\n\nAll 12 checks passed.\n{rules}\n{banner}\n");
    let mut agent = Agent::new();
    agent.user("Release it.").does(passes("make release", "tagged v2.4\n")).says(&report);
    for piece in report.chars().collect::<Vec<_>>().chunks(40) {
        agent.send(json!({"type": "chunk", "text": piece.iter().collect::<String>()}));
    }
    agent.says(&report);
    agent.stays_silent();
}

#[test]
fn results_that_were_not_recorded() {
    for (ok, same) in [(json!(null), false), (json!(true), false), (json!(null), true), (json!(true), true)] {
        let mut agent = Agent::new();
        agent.user("Compare heat pumps for an old house.");
        for n in 0..12 {
            let query = if same {
                "heat pump old house".to_owned()
            } else {
                format!("heat pump old house offer {n}")
            };
            agent.does(done("web_search", json!({"query": query}), json!({"ok": ok, "output": null})));
        }
        agent.stays_silent();
    }
    let mut rollout = Rollout::new(true, &json!("cli"));
    rollout.message("user", "Compare heat pumps for an old house.");
    for n in 0..12 {
        let action = json!({"type": "search", "query": format!("heat pump old house test {n}")});
        let call = json!({"type": "web_search_call", "id": format!("ws_{n}"), "status": "completed", "action": action});
        rollout.seconds += 9;
        rollout.line("response_item", call);
        rollout.message("assistant", &format!("Source {n} is noted."));
        rollout.line("event_msg", json!({"type": "token_count", "info": null}));
    }
    assert_file_is_silent("rollout.jsonl", &rollout.text, 2);
}

#[test]
fn fifty_workers_install_what_they_need() {
    let mut agent = Agent::new();
    for worker in 0..50 {
        agent.who =
            json!({"session": format!("w{worker}"), "agent": format!("worker-{worker}"), "swarm": "port"});
        agent
            .user(&format!("Port module {worker}."))
            .does(passes("npm ci", "added 812 packages in 9s\n"))
            .does(edit(&format!("src/m{worker}.ts"), "var", "const"));
    }
    agent.stays_silent();
}
