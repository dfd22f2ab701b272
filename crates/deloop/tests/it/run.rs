//! `deloop run`: small agents that call the real hook, and what becomes of them.

#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use crate::binary::{deloop, run, said, stop_clock};
use crate::run_clock::{PASS, run_with_clock};
use crate::wait::wait_for;

/// An agent in shell: `stuck N` makes the same failing call N times and asks its hook each time, as Claude Code and
/// Codex do, and ends when it is told to.
pub(crate) const AGENT: &str = r#"
say() { printf '{"session_id":"'${SESSION:-s-run}'","transcript_path":"'$TRANSCRIPT'","hook_event_name":"%s","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"make check"},"tool_use_id":"c%s"%s}' "$@" | "$BIN" hook ${HOOK:-claude-code} --mode nudge; }
result() {
    if [ "$HOOK" = codex ]; then
        say PostToolUse $1 ',"tool_response":"Process exited with code 2"'
    else
        say PostToolUseFailure $1 ',"error":"Exit code 2"'
    fi
}
stuck() {
    n=0
    while [ $n -lt $1 ]; do
        n=$((n + 1))
        reply=$(say PreToolUse $n)
        case $reply in
            *'"deny"'*) ;;
            *) echo ran; result $n > /dev/null ;;
        esac
        case $reply in *'"continue":false'*) ended=yes; break ;; esac
    done
}
"#;

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) home: tempfile::TempDir,
}

pub(crate) fn command(home: &Path, options: &[&str], script: &str) -> Command {
    let file = home.join("agent.sh");
    std::fs::write(&file, format!("{PASS}\n{AGENT}\n{script}\n")).unwrap();
    let mut command = deloop(home);
    command.env("PATH", "/usr/bin:/bin").env("BIN", env!("CARGO_BIN_EXE_deloop"));
    stop_clock(home, &mut command);
    command.args(["run", "--grace", "0.4"]).args(options).args(["--", "/bin/sh"]).arg(file);
    command
}

pub(crate) fn agent_with(options: &[&str], variables: &[(&str, &str)], script: &str) -> Ran {
    let home = tempfile::tempdir().unwrap();
    let mut command = command(home.path(), options, script);
    let output = run_with_clock(home.path(), command.envs(variables.iter().copied()), b"a task\n");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: said(&output),
        home,
    }
}

fn agent(script: &str) -> Ran {
    agent_with(&[], &[], script)
}

fn handoff(ran: &Ran) -> String {
    let path = ran.stderr.lines().find_map(|l| l.split_once("next steps: ")).expect(&ran.stderr).1;
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn an_agent_that_works_is_as_it_is_without() {
    let ran = agent("read task; echo \"did $task\"; stuck 2; exit 7");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(7), "did a task\nran\nran\n", ""));
    assert_eq!(agent("kill -TERM $$").code, Some(128 + 15));
    let ran = agent("stuck 4");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "a nudge is no stop");
}

/// Claude Code ends with code 0 when its hook stops it: a script must not take that for a success.
#[test]
fn an_agent_that_ends_by_itself_after_a_stop_is_no_success() {
    let ran = agent("stuck 30; echo ended by itself: $ended; exit 0");
    assert_eq!(ran.code, Some(86), "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("ran").count(), 5, "{}", ran.stdout);
    assert!(ran.stdout.contains("ended by itself: yes"));
    assert!(ran.stderr.contains("stopped the run: `make check`"), "{}", ran.stderr);
    let text = handoff(&ran);
    for part in [
        "# deloop stopped this run",
        "the agent exited after the stop, with code 0",
        "## Where it looped (LOOP_DETECTED)",
        "`Bash(make check)`: error",
        "## What deloop did",
        "`claude --resume s-run`",
        "deloop wrong d",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let log = run(deloop(ran.home.path()).args(["log", "--json"]), b"");
    let run_id = crate::binary::lines(&log.stdout)[0]["run"].as_str().unwrap().to_owned();
    assert!(ran.stderr.contains(&format!("handoff-{run_id}.md")));
}

/// Codex cannot be stopped by a hook: it would be refused for ever.
#[test]
fn an_agent_that_goes_on_is_interrupted() {
    let script = "trap 'echo interrupted; exit 1' INT; stuck 12; hang";
    let ran = agent_with(&["--handoff", "h.md"], &[("HOOK", "codex")], script);
    assert_eq!(ran.code, Some(86), "{}", ran.stderr);
    assert!(ran.stdout.contains("interrupted"), "{}", ran.stdout);
    let text = std::fs::read_to_string(ran.home.path().join("h.md")).unwrap();
    assert!(text.contains("deloop interrupted the agent") && text.contains("`codex resume s-run`"), "{text}");
}

/// One that ignores both signals is killed, with what it started.
#[test]
fn an_agent_that_ignores_signals_is_killed() {
    let script = "trap '' INT TERM; (trap '' INT TERM; echo $$ > group; exec sleep 300) & echo $! > child\n\
                  stuck 12; linger";
    let ran = agent_with(&[], &[("HOOK", "codex")], script);
    assert_eq!(ran.code, Some(86), "{}", ran.stderr);
    assert!(handoff(&ran).contains("deloop killed the agent"));
    let child = std::fs::read_to_string(ran.home.path().join("child")).unwrap();
    let gone = || !Path::new(&format!("/proc/{}/exe", child.trim())).exists();
    wait_for("what it started is gone too", || gone() || !cfg!(target_os = "linux"));
}

/// The end of a subagent is not the end of its session.
#[test]
fn a_subagent_that_is_stopped_does_not_end_the_run() {
    let script = r#"
        for n in 1 2 3 4 5 6 7 8 9; do
            printf '{"session_id":"s-run","agent_id":"a1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"x'$n'"}' | "$BIN" hook claude-code --profile signature
        done
        pass 500; exit 3"#;
    let ran = agent(script);
    assert!(ran.stdout.contains(r#""continue":false"#), "{}", ran.stdout);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), ""));
}

#[test]
fn signals_are_passed_on() {
    let home = tempfile::tempdir().unwrap();
    let script = "trap 'echo got it; exit 5' TERM; echo ready > ready; hang";
    let mut command = command(home.path(), &[], script);
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for("the agent is ready", || home.path().join("ready").exists());
    let killed = Command::new("/bin/sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(5), &b"got it\n"[..]));
}

#[test]
fn an_agent_that_does_not_call_deloop_is_told_of() {
    let ran = agent("true");
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("the agent never called deloop"), "{}", ran.stderr);
    let home = tempfile::tempdir().unwrap();
    let codex = home.path().join("codex");
    std::fs::write(&codex, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&codex, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = run(deloop(home.path()).args(["run", "--"]).arg(&codex), b"");
    assert!(said(&output).contains("`deloop install codex` to add them"), "{}", said(&output));
    let none = run(deloop(home.path()).args(["run", "--", "/no/such/agent"]), b"");
    assert_eq!(none.status.code(), Some(127), "{}", said(&none));
}

/// `--mode` holds for the run, whatever the settings of the agent say.
#[test]
fn a_run_may_be_held_to_less() {
    let ran = agent_with(&["--mode", "shadow"], &[], "stuck 12");
    assert_eq!((ran.code, ran.stdout.matches("ran").count()), (Some(0), 12), "{}", ran.stderr);
}

/// What the agent wrote last stands in the hand-off.
#[test]
fn the_last_words_are_handed_over() {
    let fixture =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/src/agents/claude_code/fixtures/stuck.jsonl");
    let ran = agent_with(&[], &[("TRANSCRIPT", fixture)], "stuck 30");
    assert!(handoff(&ran).contains("## Last message of the agent\n\n> "), "{}", handoff(&ran));
}
