//! Honest waits for services and machines of many kinds: whatever the rate, no count ever blocks or stops them.

use serde_json::json;

use super::rules::{expect, is_only_messaged};
use super::session::{Gap, Look, PAUSES, SHELL, Session};

/// Commands that fail until what they ask for is there.
const FAILING: [(&str, &str); 21] = [
    ("pg_isready -h localhost", "localhost:5432 - no response"),
    (
        "mysqladmin ping -h db",
        "mysqladmin: connect to server at 'db' failed\nerror: 'Can't connect to MySQL server on 'db:3306' (111)'",
    ),
    ("redis-cli -h cache ping", "Could not connect to Redis at cache:6379: Connection refused"),
    (
        "psql -h db -c 'select 1'",
        "psql: error: connection to server at \"db\" failed: FATAL:  the database system is starting up",
    ),
    ("nc -z localhost 5432", ""),
    ("ssh build-01 true", "ssh: connect to host build-01 port 22: Connection refused"),
    ("ping -c 1 10.0.0.7", "1 packets transmitted, 0 received, 100% packet loss, time 0ms"),
    ("systemctl is-active worker", "activating"),
    (
        "curl -sf localhost:8080/health",
        "curl: (7) Failed to connect to localhost port 8080: Connection refused",
    ),
    ("wget -qO- http://localhost:9000/ready", "wget: server returned error: HTTP/1.1 502 Bad Gateway"),
    (
        "npm view @acme/ui@2.4.0 version",
        "npm error code E404\nnpm error 404 No match found for version 2.4.0",
    ),
    (
        "pip index versions acme",
        "ERROR: Could not find a version that satisfies the requirement acme==2.4.0 (from versions: 2.3.9)",
    ),
    ("docker manifest inspect acme/web:2.4", "no such manifest: docker.io/acme/web:2.4"),
    ("kubectl get pod web-0", "Error from server (NotFound): pods \"web-0\" not found"),
    (
        "kubectl wait --for=condition=ready pod/web-0 --timeout=30s",
        "error: timed out waiting for the condition on pods/web-0",
    ),
    ("aws s3 ls s3://acme/export/2026-11-19/", ""),
    ("gh run view 88 --exit-status", "X main CI · 88\nTriggered via push"),
    ("dig +short _acme-challenge.acme.dev TXT", ""),
    (
        "rabbitmqctl status",
        "Error: unable to perform an operation on node 'rabbit@mq'. Please see diagnostics information",
    ),
    ("git ls-remote --exit-code origin refs/tags/v2.4", ""),
    ("pgrep -x soffice", ""),
];

/// Commands that succeed, with the same answer each time.
const ANSWERING: [(&str, &str); 16] = [
    ("docker images | grep web", "acme/web   2.3   9c1f   3 days ago   212MB"),
    ("curl -s -o /dev/null -w '%{http_code}' localhost:8080", "000"),
    ("curl -s localhost:8080/jobs/7", "{\"id\":7,\"state\":\"RUNNING\"}"),
    ("aws sqs receive-message --queue-url https://sqs/q", ""),
    (
        "aws cloudformation describe-stacks --stack-name web --query 'Stacks[0].StackStatus'",
        "\"UPDATE_IN_PROGRESS\"",
    ),
    ("gcloud builds describe 88 --format='value(status)'", "WORKING"),
    ("fly status", "PROCESS ID STATE\napp 3 starting"),
    ("heroku ps", "web.1: starting 2026/11/19"),
    ("adb devices", "List of devices attached\n"),
    ("psql -Atc \"select count(*) from jobs where state = 'queued'\"", "40"),
    ("redis-cli llen jobs", "(integer) 12"),
    (
        "squeue -u ann",
        "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n4711 gpu train ann PD 0:00 1 (Priority)",
    ),
    ("journalctl -u worker -n 3", "Nov 19 08:01:02 build worker[9]: waiting for a lease"),
    ("ps aux | grep '[m]ake release'", "ann  4711  99.0  1.2  make release"),
    ("supervisorctl status web", "web    STARTING"),
    ("pm2 jlist", "[{\"name\":\"web\",\"pm2_env\":{\"status\":\"launching\"}}]"),
];

/// Programs that no list names. An agent that asks them again at once doesn't wait.
const UNKNOWN: [(&str, &str); 6] = [
    ("argocd app get web", "Health Status: Progressing\nSync Status: Synced"),
    ("eas build:view 4711", "Status  in queue"),
    ("buildkite-agent step get state --step test", "running"),
    ("databricks runs get --run-id 55", "{\"state\":{\"life_cycle_state\":\"RUNNING\"}}"),
    ("solana confirm 5xyz", "Not found"),
    ("./deploy-status.sh", "null"),
];

fn sessions(case: &str, gaps: &[Gap], look: impl Fn() -> Look) -> Vec<Session> {
    gaps.iter().map(|gap| Session::new(case, *gap).looking(40, |_| look())).collect()
}

#[test]
fn commands_that_fail_until_it_is_there() {
    let all = FAILING
        .iter()
        .flat_map(|(command, text)| sessions(command, &SHELL, || Look::shell(*command, *text).fails()));
    let all: Vec<Session> = all.filter(|s| s.gap.timed).collect();
    expect(&[], &all, is_only_messaged);
}

#[test]
fn commands_that_answer_the_same_until_it_is_there() {
    let all = ANSWERING
        .iter()
        .flat_map(|(command, text)| sessions(command, &SHELL, || Look::shell(*command, *text)));
    let all: Vec<Session> = all.filter(|s| s.gap.timed).collect();
    expect(&[], &all, is_only_messaged);
}

#[test]
fn programs_that_nobody_knows() {
    let slow = SHELL.into_iter().filter(|gap| gap.timed && gap.seconds >= 15).collect::<Vec<_>>();
    let all = UNKNOWN
        .iter()
        .flat_map(|(command, text)| sessions(command, &slow, || Look::shell(*command, *text)))
        .collect::<Vec<_>>();
    expect(&[], &all, is_only_messaged);
}

/// A shell that leaves a program running declares nothing, but `&` says it.
#[test]
fn a_file_that_a_program_in_the_background_writes() {
    let session = |gap: &Gap| {
        let mut session = Session::new("a render left running", *gap);
        session.prompt("Render the film.", "human");
        session.works(Look::shell("nohup ./render.sh > render.log 2>&1 &", ""));
        let missing = "ls: cannot access 'out/film.mp4': No such file or directory";
        (0..40).for_each(|_| session.look(Look::shell("ls out/film.mp4", missing).fails()));
        session
    };
    expect(&[], &SHELL.iter().map(session).collect::<Vec<_>>(), is_only_messaged);
}

/// Only an agent that sleeps shows that it waits for the lock.
#[test]
fn a_lock_that_another_program_holds() {
    let text =
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 991 (unattended-upgr)";
    let look = || Look::shell("apt-get install -y jq", text).fails();
    let slept: Vec<Gap> = SHELL.into_iter().filter(|gap| gap.timed && gap.sleeps).collect();
    expect(&[], &sessions("apt-get install", &slept, look), is_only_messaged);
}

#[test]
fn tools_that_ask_a_service() {
    let fails = |tool, args: serde_json::Value, text: &'static str| {
        sessions(tool, &PAUSES, move || Look::new(tool, args.clone(), text).fails())
    };
    let answers = |tool, args: serde_json::Value, text: &'static str| {
        sessions(tool, &PAUSES, move || Look::new(tool, args.clone(), text))
    };
    let all: Vec<Session> = [
        fails("mcp__db__query", json!({"sql": "select 1"}), "FATAL: the database system is starting up"),
        fails(
            "mcp__jenkins__build",
            json!({"job": "web", "number": 88}),
            "Error: connect ECONNREFUSED 10.0.0.7:8080",
        ),
        fails("http_request", json!({"url": "http://localhost:8080/ready"}), "504 Gateway Timeout"),
        answers("mcp__mail__list", json!({"folder": "inbox", "unread": true}), "[]"),
        answers("mcp__slack__read_channel", json!({"channel": "C024", "limit": 5}), "{\"messages\":[]}"),
        answers("mcp__linear__get_issue", json!({"id": "WEB-7"}), "{\"id\":\"WEB-7\",\"assignee\":null}"),
        answers("get_order_status", json!({"order": 4711}), "{\"order\":4711,\"paid\":false}"),
    ]
    .into_iter()
    .flatten()
    .collect();
    expect(&[], &all, is_only_messaged);
}
