//! `deloop run --stall`: agents that hang, and agents that only take their time.

#![cfg(unix)]

use std::path::Path;

use serde_json::Value;

use crate::binary::{deloop, lines, run};
use crate::run::{Ran, agent_with};
use crate::run_clock::{PASS, run_with_clock};

/// `begin N ARGS` starts a call with these arguments, `end N` ends it, and `prompt` is what comes before all of them.
const STEPS: &str = r#"
call() { printf '{"session_id":"'${SESSION:-s-run}'","hook_event_name":"%s","permission_mode":"default","tool_name":"Bash","tool_input":{%s},"tool_use_id":"c%s"%s}' "$1" "$3" "$2" "$4" | "$BIN" hook claude-code > reply-$2; }
prompt() { printf '{"session_id":"'${SESSION:-s-run}'","hook_event_name":"UserPromptSubmit","prompt":"fix it"}' | "$BIN" hook claude-code; }
begin() { call PreToolUse "$1" "$2"; }
end() { call PostToolUse "$1" "$2" ',"tool_response":{"stdout":"out '$1'"}'; }
"#;

fn agent(options: &[&str], script: &str) -> Ran {
    let options: Vec<&str> = ["--json", "result.json"].iter().chain(options).copied().collect();
    agent_with(&options, &[], &format!("{STEPS}\n{script}"))
}

fn result(ran: &Ran) -> Value {
    serde_json::from_slice(&std::fs::read(ran.home.path().join("result.json")).unwrap()).unwrap()
}

/// The running processes with this home in their environment.
fn left(home: &Path) -> Vec<String> {
    let mark = format!("HOME={}", home.display());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_marked = |path: &std::path::PathBuf| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    processes
        .filter(is_marked)
        .map(|path| std::fs::read_to_string(path.join("cmdline")).unwrap_or_default())
        .collect()
}

/// A tool that never returns, with processes that left the group, ignore signals or dropped the environment.
#[test]
fn a_call_that_never_returns_is_ended_and_nothing_is_left() {
    let script = r#"
        prompt; begin 1 '"command":"make all"'
        (setsid /bin/sh -c 'trap "" INT TERM HUP; echo $$ > one; while :; do sleep 1; done' > /dev/null 2>&1 &)
        (setsid env -i /bin/sh -c 'echo $$ > two; exec sleep 240' > /dev/null 2>&1 &)
        trap '' INT TERM
        until [ -s one ] && [ -s two ]; do sleep 0.01; done
        pass 2000; linger"#;
    let ran = agent(&["--stall", "4s", "--handoff", "h.md"], script);
    assert_eq!(ran.code, Some(88), "{}", ran.stderr);
    let what = "nothing happened for 4 s while `Bash(make all)` was running";
    assert!(ran.stderr.contains(&format!("ended the run: {what}")), "{}", ran.stderr);
    let warning = "nothing has happened for 2 s: `Bash(make all)` was running; the limit is 4 s";
    assert_eq!(ran.stderr.matches(warning).count(), 1, "{}", ran.stderr);

    let result = result(&ran);
    assert_eq!((&result["outcome"], &result["exit_code"]), (&"stalled".into(), &88.into()), "{result}");
    let attempt = &result["attempts"][0];
    assert_eq!((&attempt["stopped"], &attempt["status"]), (&true.into(), &"STALLED".into()), "{result}");
    let text = std::fs::read_to_string(ran.home.path().join("h.md")).unwrap();
    for part in [
        "# deloop ended this run",
        "deloop killed the agent",
        "## Where it stalled (STALLED)",
        "Nothing happened for 4 s while \\`Bash(make all)\\` was running",
        "- `Bash(make all)`: no result",
        "`claude --resume s-run`",
        "a longer limit",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let log = lines(&run(deloop(ran.home.path()).args(["log", "--json"]), b"").stdout);
    let stop = log.last().unwrap();
    assert_eq!((&stop["action"], &stop["rung"]), (&"stop".into(), &"stall".into()), "{stop}");
    let explained = run(deloop(ran.home.path()).args(["explain", stop["id"].as_str().unwrap()]), b"").stdout;
    let explained = String::from_utf8_lossy(&explained);
    assert!(
        explained.contains(what) && explained.contains("`deloop run --stall` ends an agent"),
        "{explained}"
    );

    if cfg!(target_os = "linux") {
        assert_eq!(left(ran.home.path()), Vec::<String>::new());
        for file in ["one", "two"] {
            let id = std::fs::read_to_string(ran.home.path().join(file)).expect(file);
            assert!(!Path::new(&format!("/proc/{}/exe", id.trim())).exists(), "{file} still runs");
        }
    }
}

/// A retry of a run that hung is told so, and what follows is its own.
#[test]
fn a_model_that_never_answers_is_a_stall_too() {
    let script = r#"
        SESSION=s-$DELOOP_RUN
        prompt > told
        [ -n "$DELOOP_RUN_HANDOFF" ] || linger"#;
    let ran = agent(&["--stall", "3s", "--on-stop", "retry"], script);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("nothing happened for 3 s while the agent waited for its model"),
        "{}",
        ran.stderr
    );
    assert_eq!(result(&ran)["outcome"], "retried");
    let told = std::fs::read_to_string(ran.home.path().join("told")).unwrap();
    assert!(
        told.contains("An earlier attempt at this task was ended because it hung: nothing happened for 3 s"),
        "{told}"
    );
    assert!(told.contains("give it a time limit"), "{told}");
}

/// What takes long in all, and never long at once, is left alone.
#[test]
fn a_long_run_that_makes_steps_is_untouched() {
    let script = r#"
        prompt
        for n in 1 2 3 4 5 6; do begin $n "\"command\":\"step $n\""; pass 1000; end $n "\"command\":\"step $n\""; pass 1000; done
        exit 3"#;
    let ran = agent(&["--stall", "6s"], script);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), ""));
    assert_eq!(result(&ran)["outcome"], "failed", "the agent's own end");
}

/// A call gets the time that the agent itself gave it, and one that writes is alive.
#[test]
fn a_call_with_a_long_limit_of_its_own_or_with_output_is_not_stalled() {
    let waits = r#"prompt; begin 1 '"command":"make","timeout":600000'; pass 300000; end 1 '"command":"make"'; exit 4"#;
    let ran = agent(&["--stall", "2s"], waits);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(4), ""));
    if cfg!(target_os = "linux") {
        let writes = format!(
            r#"prompt; begin 1 '"command":"make"'
            /bin/sh -c '{PASS} for n in 1 2 3 4 5 6 7 8; do pass 1000; echo $n; done' > /dev/null
            end 1 '"command":"make"'; exit 5"#
        );
        let ran = agent(&["--stall", "4s"], &writes);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(5), ""));
    }
}

fn configure(home: &Path, limit: &str) {
    let folder = home.join(".config/deloop");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("deloop.toml"), format!("[run]\nstall = \"{limit}\"\n")).unwrap();
}

/// The configuration sets the limit, the command line wins, and 0 switches it off.
#[test]
fn the_limit_can_be_configured() {
    let code = |limit: &str, options: &[&str], script: &str| {
        let home = tempfile::tempdir().unwrap();
        configure(home.path(), limit);
        let mut command = crate::run::command(home.path(), options, &format!("{STEPS}\n{script}"));
        run_with_clock(home.path(), &mut command, b"").status.code()
    };
    assert_eq!(code("2s", &[], "prompt; linger"), Some(88));
    for (limit, options) in
        [("2s", &["--stall", "0"][..]), ("0", &[]), ("off", &[]), ("2s", &["--stall", "1h"])]
    {
        assert_eq!(code(limit, options, "prompt; pass 600000; exit 6"), Some(6), "{limit} {options:?}");
    }
    let ran = agent(&["--stall", "soon"], "echo started");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("takes 30s, 90m, 3h or 0 for none"), "{}", ran.stderr);
}

/// At a terminal the agent may wait for a person, so deloop only reports it, unless the command line asks for more.
#[test]
#[ignore = "needs script"]
fn at_a_terminal_a_stall_is_only_reported() {
    let at_terminal = |options: &[&str]| {
        let home = tempfile::tempdir().unwrap();
        configure(home.path(), "2s");
        let script = format!("{STEPS}\nprompt; pass 6000; exit 9");
        let command = crate::run::command(home.path(), options, &script);
        let words: Vec<String> =
            command.get_args().map(|word| format!("'{}'", word.to_string_lossy())).collect();
        let line = format!("'{}' {}", env!("CARGO_BIN_EXE_deloop"), words.join(" "));
        let mut terminal = std::process::Command::new("/usr/bin/script");
        terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        terminal.current_dir(home.path()).env_clear().env("HOME", home.path());
        terminal
            .env("BIN", env!("CARGO_BIN_EXE_deloop"))
            .env("PATH", "/usr/bin:/bin")
            .env("SHELL", "/bin/sh");
        let output = run_with_clock(home.path(), &mut terminal, b"");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, shown) = at_terminal(&[]);
    assert_eq!(code, Some(9), "{shown}");
    assert!(shown.contains("deloop doesn't end it at a terminal unless you set --stall"), "{shown}");
    let (code, shown) = at_terminal(&["--stall", "2s"]);
    assert_eq!(code, Some(88), "{shown}");
}

/// Without a mode that enforces, and before the first hook, deloop only watches.
#[test]
fn what_deloop_may_not_end_or_does_not_see_goes_on() {
    let ran = agent(&["--stall", "1s", "--mode", "nudge"], "prompt; pass 4000; pass 4000; exit 7");
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("deloop doesn't end it in this mode").count(), 1, "{}", ran.stderr);
    let ran = agent(&["--stall", "1s"], "pass 4000; exit 8");
    assert_eq!(ran.code, Some(8), "{}", ran.stderr);
    assert!(ran.stderr.contains("the agent never called deloop"), "{}", ran.stderr);
}
