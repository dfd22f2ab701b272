//! Honest waits, at any rate: never blocked, asked about or stopped.

use serde_json::{Value, json};

use super::rules::{are_let_wait, expect, is_only_messaged};
use super::session::{Gap, Look, PAUSES, PAUSES_OR_UNTIMED, SHELL, Session};

/// So many looks at each gap.
fn at_each(gaps: &[Gap], case: &str, look: impl Fn(usize) -> Look) -> Vec<Session> {
    gaps.iter().map(|gap| Session::new(case, *gap).looking(40, &look)).collect()
}

const CHECKS: &str = "Some checks are still pending\n0 failing, 1 successful, 0 skipped, and 2 pending checks\n\n\
    *  e2e (chrome)   pending  0      https://github.com/acme/web/actions/runs/88/job/1\n\
    *  e2e (firefox)  pending  0      https://github.com/acme/web/actions/runs/88/job/2\n\
    ✓  build          pass     2m31s  https://github.com/acme/web/actions/runs/88/job/3\n";

/// `gh` exits with 8 while checks are pending.
#[test]
fn pending_checks_of_a_pull_request() {
    are_let_wait(&at_each(&SHELL, "gh pr checks", |_| Look::shell("gh pr checks 12", CHECKS).fails()));
}

#[test]
fn pending_checks_with_the_exit_code_in_the_output() {
    let text = format!("Exit code 8\n{CHECKS}");
    let look = |_| Look::new("Bash", json!({"command": "gh pr checks 12"}), text.clone()).fails();
    are_let_wait(&at_each(&SHELL, "gh pr checks, exit code in the output", look));
}

fn rollout(available: usize) -> Look {
    let text = format!(
        "Waiting for deployment \"web\" rollout to finish: {available} of 30 updated replicas are available...\n\
         error: timed out waiting for the condition"
    );
    Look::shell("kubectl rollout status deploy/web --timeout=15s", text).fails().takes(15.0)
}

#[test]
fn a_rollout_whose_replicas_rise() {
    are_let_wait(&at_each(&SHELL, "kubectl rollout status, rising", |i| rollout(1 + i * 29 / 39)));
}

#[test]
fn a_rollout_that_stands_still() {
    are_let_wait(&at_each(&SHELL, "kubectl rollout status, constant", |_| rollout(7)));
}

#[test]
fn a_build_that_an_mcp_tool_reports() {
    let build = json!({"building": true, "number": 512});
    let args = json!({"number": 512});
    let look = |output: Value| Look::new("mcp__ci__get_build", args.clone(), output);
    let mut sessions = at_each(&PAUSES_OR_UNTIMED, "building, as an object", |_| look(build.clone()));
    let text = build.to_string();
    sessions.extend(at_each(&PAUSES_OR_UNTIMED, "building, as a string", |_| look(text.clone().into())));
    are_let_wait(&sessions);
}

#[test]
fn a_service_that_starts() {
    let look = |i| {
        let command = "curl -sf http://localhost:8080/health";
        match i {
            39 => Look::shell(command, "ok"),
            _ => Look::shell(command, "curl: (22) The requested URL returned error: 503").fails(),
        }
    };
    are_let_wait(&at_each(&SHELL, "curl, 503", look));
}

#[test]
fn a_service_that_an_mcp_tool_asks() {
    let args = json!({"url": "http://localhost:8080/health"});
    let starting = json!({"status": 503, "body": "starting"});
    let look = |output: Value| Look::new("http_get", args.clone(), output);
    let mut sessions = at_each(&PAUSES_OR_UNTIMED, "http_get, as an object", |_| look(starting.clone()));
    let text = starting.to_string();
    sessions.extend(at_each(&PAUSES_OR_UNTIMED, "http_get, as a string", |_| look(text.clone().into())));
    are_let_wait(&sessions);
}

#[test]
fn a_job_in_a_batch_queue() {
    let text = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n\
                \x20             4711       gpu    train      ann PD       0:00      1 (Priority)\n";
    are_let_wait(&at_each(&SHELL, "squeue", |_| Look::shell("squeue -j 4711", text)));
}

/// Without times, nothing shows that it waits.
#[test]
fn an_empty_queue() {
    let look = |output: Value| Look::new("sqs_receive", json!({"queue": "orders"}), output);
    let mut sessions = Vec::new();
    for (case, output) in [("no messages", json!({"Messages": []})), ("an empty list", json!([]))] {
        let text = output.to_string();
        sessions.extend(at_each(&PAUSES, &format!("sqs_receive, {case}"), |_| look(output.clone())));
        sessions.extend(at_each(&PAUSES, &format!("sqs_receive, {case}, as a string"), |_| {
            look(text.clone().into())
        }));
    }
    are_let_wait(&sessions);
}

#[test]
fn a_process_that_starts_or_ends() {
    for command in ["lsof -i :3000", "pgrep -f import-worker"] {
        are_let_wait(&at_each(&SHELL, command, |_| Look::shell(command, "").fails()));
    }
}

#[test]
fn a_branch_that_others_push_to() {
    are_let_wait(&at_each(&SHELL, "git fetch", |_| {
        Look::shell("git fetch && git status -sb", "## main...origin/main\n")
    }));
}

/// The log stands still while a module compiles.
#[test]
fn a_log_that_a_background_build_writes() {
    let session = |gap: &Gap| {
        let mut session = Session::new("tail of a background build", *gap);
        session.prompt("Build the release.", "human");
        let start = json!({"command": "make release > build.log 2>&1", "run_in_background": true});
        session.works(Look::new("Bash", start, "Command running in background with ID: b1").ends("running"));
        (0..40).for_each(|_| {
            session.look(Look::shell("tail -2 build.log", "[12/80] libsearch\n[13/80] libindex\n"));
        });
        session
    };
    let sessions: Vec<Session> = SHELL.iter().map(session).collect();
    expect(&[], &sessions, is_only_messaged);
    expect(&["--attended"], &sessions, is_only_messaged);
}
