//! `deloop run` and the system around it: a terminal, signals, its own end, no home folder.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::binary::{deloop, run, said};
use crate::wait::wait_for;

/// Kills a process at the end of a test, whatever comes of it.
struct KilledAtEnd(Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `deloop run` with an agent in shell.
fn start(home: &Path, options: &[&str], script: &str) -> KilledAtEnd {
    std::fs::write(home.join("agent.sh"), script).unwrap();
    let mut command = deloop(home);
    command.env("PATH", "/usr/bin:/bin").args(["run", "--grace", "0.2"]).args(options);
    command.args(["--", "/bin/sh", "agent.sh"]).stdin(Stdio::null()).stdout(Stdio::null());
    KilledAtEnd(command.stderr(Stdio::null()).spawn().unwrap())
}

fn send(signal: &str, process: u32) {
    let kill = Command::new("/bin/sh").args(["-c", &format!("kill -{signal} {process}")]).status();
    assert!(kill.unwrap().success());
}

/// A process that has ended, or only waits to be noticed, has no program.
fn is_gone(process: &str) -> bool {
    !Path::new(&format!("/proc/{}/exe", process.trim())).exists()
}

fn written(path: PathBuf) -> String {
    wait_for(&format!("{} is written", path.display()), || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n'))
    });
    std::fs::read_to_string(path).unwrap()
}

/// With its input in a file, the agent still belongs to the terminal and may use it. In a group of its own it would be stopped.
#[test]
fn an_agent_with_redirected_input_may_use_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let script = "read task; stty -echo < /dev/tty && echo \"$task\" > used; exit 3";
    std::fs::write(home.path().join("agent.sh"), script).unwrap();
    std::fs::write(home.path().join("task"), "a task\n").unwrap();
    let plain = deloop(home.path());
    let mut command = Command::new("/usr/bin/script");
    let line = format!("'{}' run -- /bin/sh agent.sh < task", plain.get_program().display());
    command.args(["-qec", &line, "/dev/null"]).env_clear().current_dir(home.path());
    command
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut terminal = KilledAtEnd(command.spawn().unwrap());
    assert_eq!(written(home.path().join("used")), "a task\n");
    assert_eq!(terminal.0.wait().unwrap().code(), Some(3));
}

/// Nothing can catch SIGKILL, so a second process ends the agent, and what it started, even what left its group.
#[test]
fn the_agent_of_a_killed_run_ends() {
    let home = tempfile::tempdir().unwrap();
    let script =
        "trap '' TERM; setsid sleep 300 & echo $! > child; echo $$ > agent; while :; do sleep 0.05; done";
    let mut deloop = start(home.path(), &[], script);
    let agent = written(home.path().join("agent"));
    let child = written(home.path().join("child"));
    assert!(!is_gone(&agent) && !is_gone(&child));
    send("KILL", deloop.0.id());
    deloop.0.wait().unwrap();
    wait_for("the agent is gone", || is_gone(&agent));
    wait_for("what it started is gone", || is_gone(&child));
}

/// What an agent leaves running when it ends by itself is none of deloop's business.
#[test]
fn a_run_that_ends_by_itself_kills_nothing() {
    let home = tempfile::tempdir().unwrap();
    let script = "cat /proc/$PPID/task/$PPID/children > children\n\
                  setsid sleep 300 > /dev/null 2>&1 & echo $! > child; echo >> children; exit 0";
    let mut deloop = start(home.path(), &[], script);
    assert_eq!(deloop.0.wait().unwrap().code(), Some(0));
    let (child, children) = (written(home.path().join("child")), written(home.path().join("children")));
    let children: Vec<&str> = children.split_whitespace().collect();
    assert_eq!(children.len(), 2, "the agent and the watchdog: {children:?}");
    wait_for("the watchdog is gone", || children.iter().all(|process| is_gone(process)));
    assert!(!is_gone(&child));
    send("KILL", child.trim().parse().unwrap());
}

/// They would end deloop and leave the agent alone.
#[test]
fn other_signals_reach_the_agent() {
    let home = tempfile::tempdir().unwrap();
    let script = "trap 'echo user > user' USR1; trap 'exit 7' ALRM; (trap - USR1 ALRM; exec sleep 300) & \
                  echo ready > ready; while :; do sleep 0.05; done";
    let mut deloop = start(home.path(), &[], script);
    written(home.path().join("ready"));
    send("USR1", deloop.0.id());
    assert_eq!(written(home.path().join("user")), "user\n");
    send("ALRM", deloop.0.id());
    assert_eq!(deloop.0.wait().unwrap().code(), Some(7));
}

/// Services and scheduled jobs often have no home folder: every command works, or says what to set.
#[test]
fn without_a_home_folder_every_command_works_or_says_what_to_set() {
    let folder = tempfile::tempdir().unwrap();
    let command = |arguments: &[&str]| {
        let mut command = deloop(folder.path());
        for name in ["HOME", "APPDATA", "LOCALAPPDATA"] {
            command.env_remove(name);
        }
        let of_document = r#"{"taskId":"t","toolName":"Bash","args":{}}"#;
        let event = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{},"taskId":"t","toolName":"Bash","type":"call","tool":"ls"}"#;
        let event = if arguments == ["hook", "behavioral"] { of_document } else { event };
        run(command.args(arguments), event.as_bytes())
    };
    for arguments in [
        &["demo"][..],
        &["prices"],
        &["config"],
        &["stream"],
        &["compare", "--a", "default", "--b", "signature"],
        &["install", "claude-code", "--scope", "project"],
    ] {
        let output = command(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    }
    for arguments in [
        &["status"][..],
        &["doctor"],
        &["log"],
        &["state", "s"],
        &["swarm"],
        &["explain", "d1"],
        &["wrong", "d1"],
        &["pause", "--for", "1m"],
        &["resume"],
        &["allow", "Bash"],
        &["purge", "--yes"],
        &["trust", "--list"],
        &["prices", "reset"],
        &["install", "claude-code"],
        &["uninstall"],
        &["serve"],
        &["keys", "list"],
        &["audit", "verify"],
        &["hook", "behavioral"],
    ] {
        let output = command(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        let names_the_fix =
            ["set XDG_STATE_HOME", "set HOME", "--state"].iter().any(|fix| said(&output).contains(fix));
        assert!(names_the_fix, "{arguments:?}: {}", said(&output));
    }
    let scan = command(&["scan"]);
    assert!(String::from_utf8_lossy(&scan.stdout).contains("Set HOME"), "{scan:?}");
    let hook = command(&["hook", "claude-code"]);
    assert_eq!((hook.status.code(), hook.stdout.len()), (Some(0), 0), "the agent continues");
    assert!(said(&hook).contains("set XDG_STATE_HOME"), "{}", said(&hook));
    let agent = command(&["run", "--", "/bin/sh", "-c", "exit 5"]);
    assert_eq!(agent.status.code(), Some(5), "the agent runs: {}", said(&agent));
    assert!(said(&agent).contains("deloop can't stop this run: no home folder"), "{}", said(&agent));
}
