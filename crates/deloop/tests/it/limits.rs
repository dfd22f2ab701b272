//! What one event may cost, whatever it holds: memory and time are bounded by its bytes (A6), and what parsers refuse
//! costs what it stands for, not the event (A10).
//!
//! `cargo test --release -p deloop limits -- --ignored --nocapture` measures 64 MB and prints the table of
//! `docs/limits.md`.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent_hooks::Agent;
use crate::binary::{deloop, lines, run};
use crate::parallel::in_parallel;

/// A piece of JSON of about so many bytes.
type Make = fn(usize) -> String;

/// What is put where the agent's data stands: `tool_input`, `tool_response`, a prompt.
const HOSTILE: &[(&str, Make)] = &[
    ("empty objects in a list", |n| list("{}", n)),
    ("objects of one field", |n| list(r#"{"":0}"#, n)),
    ("objects in objects", |n| list(r#"{"":{"":{"":{}}}}"#, n)),
    ("empty lists", |n| list("[]", n)),
    ("lists in lists", |n| list("[[[[]]]]", n)),
    ("numbers", |n| list("7", n)),
    ("long fractions", |n| list("0.12345678901234567", n)),
    ("exponents", |n| list("1e300", n)),
    ("numbers out of range", |n| list("1e400", n)),
    ("one number", |n| "1".repeat(n)),
    ("nulls", |n| list("null", n)),
    ("empty strings", |n| list(r#""""#, n)),
    ("strings of one letter", |n| list(r#""a""#, n)),
    ("one object with many keys", |n| keys(n, |i| format!(r#""{i}":0"#))),
    ("many keys that are objects", |n| keys(n, |i| format!(r#""{i}":{{}}"#))),
    ("one key again and again", |n| keys(n, |_| r#""k":{"a":1}"#.to_owned())),
    ("keys of 4 KB", |n| keys(n, |i| format!(r#""{}{i}":1"#, "k".repeat(4096)))),
    ("a deep list", |n| format!("{}{}", "[".repeat(n / 2), "]".repeat(n / 2))),
    ("a deep object", |n| format!("{}1{}", r#"{"a":"#.repeat(n / 6), "}".repeat(n / 6))),
    ("many lists 100 deep", |n| list(&format!("{}{}", "[".repeat(100), "]".repeat(100)), n)),
    ("one text", |n| text("word ", n)),
    ("one word", |n| text("a", n)),
    ("escapes", |n| text(r"\n", n)),
    ("backslashes", |n| text(r"\\", n)),
    ("quotes", |n| text(r#"\""#, n)),
    ("unicode escapes", |n| text(r"\u00e9", n)),
    ("surrogate pairs", |n| text(r"\ud83d\ude00", n)),
    ("lone surrogates", |n| text(r"\ud83d", n)),
    ("four-byte letters", |n| text("\u{1f600}", n)),
    ("lines", |n| text(r"error: it failed\n", n)),
    ("digits with colons", |n| text("1:", n)),
    ("dates", |n| text("2026-01-31 ", n)),
    ("pipes", |n| command("a|", n)),
    ("open quotes", |n| command("'", n)),
    ("here-documents", |n| command(r"<<a\n", n)),
    ("substitutions", |n| command("$(", n)),
    ("separators", |n| command(";", n)),
    ("assignments", |n| command("A=1 ", n)),
    ("edits", |n| {
        format!(r#"{{"file_path":"f","edits":{}}}"#, list(r#"{"old_string":"a","new_string":"b"}"#, n))
    }),
    ("a patch", |n| format!(r#"{{"input":{}}}"#, text(r"*** Update File: f\n-a\n+b\n", n))),
    ("JSON in a string", |n| text(r#"{\"a\":{\"b\":{}}},"#, n)),
];

fn list(item: &str, size: usize) -> String {
    format!("[{item}{}]", format!(",{item}").repeat(size / (item.len() + 1)))
}

fn text(piece: &str, size: usize) -> String {
    format!(r#""{}""#, piece.repeat(size / piece.len()))
}

fn command(piece: &str, size: usize) -> String {
    format!(r#"{{"command":{}}}"#, text(piece, size))
}

fn keys(size: usize, entry: impl Fn(usize) -> String) -> String {
    let mut out = String::from("{");
    for i in 0.. {
        out.push_str(&entry(i));
        if out.len() >= size {
            return out + "}";
        }
        out.push(',');
    }
    out
}

/// What a run took: the most memory it held, in bytes, seconds of processor time, and what it wrote.
struct Cost {
    memory: usize,
    seconds: f64,
    output: Vec<u8>,
}

/// Runs deloop to its end with this input, under GNU time.
fn measured(home: &Path, arguments: &[&str], input: &[u8]) -> Cost {
    let (file, report) = (home.join("input"), home.join("report"));
    std::fs::write(&file, input).unwrap();
    let deloop = deloop(home);
    let mut command = std::process::Command::new("/usr/bin/time");
    command.env_clear().env("HOME", home).current_dir(home);
    command.args(["-f", "%M %U %S", "-o"]).arg(&report).arg(deloop.get_program()).args(arguments);
    let output = command.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    let report = std::fs::read_to_string(report).unwrap();
    let mut numbers = report.lines().last().unwrap().split(' ').map(|n| n.parse::<f64>().unwrap());
    let mut next = || numbers.next().unwrap();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "kilobytes")]
    let memory = next() as usize * 1024;
    Cost { memory, seconds: next() + next(), output: output.stdout }
}

/// Where an agent's data stands: in arguments, in a result.
fn events(data: &str) -> [(&'static str, Vec<&'static str>, String); 3] {
    let hook = vec!["hook", "claude-code", "--mode", "enforce"];
    let head = r#""session_id":"s1","cwd":"/tmp","transcript_path":"","tool_name":"Bash","tool_use_id":"c1""#;
    [
        (
            "hook, arguments",
            hook.clone(),
            format!(r#"{{{head},"hook_event_name":"PreToolUse","tool_input":{data}}}"#),
        ),
        (
            "hook, result",
            hook,
            format!(
                r#"{{{head},"hook_event_name":"PostToolUse","tool_input":{{"command":"ls"}},"tool_response":{data}}}"#
            ),
        ),
        (
            "stream",
            vec!["stream"],
            format!(
                "{{\"type\":\"call\",\"tool\":\"bash\",\"args\":{data}}}\n{{\"type\":\"result\",\"output\":{data}}}\n"
            ),
        ),
    ]
}

/// What an input costs in one place.
struct Measured {
    name: &'static str,
    place: &'static str,
    /// Of the event.
    length: usize,
    cost: Cost,
}

/// The hostile inputs, each in arguments, in a result and in a stream.
fn measure(size: usize) -> Vec<Measured> {
    let places = HOSTILE.iter().flat_map(|input| (0..3).map(move |place| (input, place)));
    in_parallel(places, |((name, make), place)| measure_one(name, *make, place, size))
}

fn measure_one(name: &'static str, make: Make, place: usize, size: usize) -> Measured {
    let data = make(size);
    let (place, arguments, event) = events(&data).into_iter().nth(place).unwrap();
    let home = tempfile::tempdir().unwrap();
    let cost = measured(home.path(), &arguments, event.as_bytes());
    let log = std::fs::read_to_string(home.path().join(".local/state/deloop/deloop.log"));
    assert_eq!(log.unwrap_or_default(), "", "{name} in {place}: the event was not read");
    if place == "stream" {
        let answers = lines(&cost.output);
        assert!(answers.iter().all(|a| a["error"].is_null()), "{name}: {answers:?}");
    }
    Measured { name, place, length: event.len(), cost }
}

/// Memory stays below twice the input plus 32 MB, and time grows as the input does.
#[test]
#[ignore = "needs GNU time"]
fn an_event_costs_little_more_than_its_bytes() {
    const SIZE: usize = 4 << 20;
    for (at, Measured { name, place, length, cost }) in measure(SIZE).into_iter().enumerate() {
        let most = 2 * length + (32 << 20);
        assert!(cost.memory <= most, "{name} in {place}: {} MB of {length} bytes", cost.memory >> 20);
        // What takes less than this doesn't take the square of its size, which is millions of bytes.
        if cost.seconds < 0.5 {
            continue;
        }
        let (_, make) = HOSTILE[at / 3];
        let least = |size: usize| {
            let times = (0..3).map(|_| measure_one(name, make, at % 3, size).cost.seconds);
            times.fold(f64::INFINITY, f64::min)
        };
        // 16 times as much input takes up to 16 times as long; with the square of its size it would be 256 times.
        let (small, large) = (least(SIZE / 16).max(0.01), least(SIZE));
        assert!(large < 64.0 * small, "{name} in {place}: {small} s, and {large} s for 16 times as much");
    }
}

/// The same in the formats of the other agents, some of which put JSON into strings.
#[test]
#[ignore = "needs GNU time"]
fn an_event_of_any_agent_costs_little_more_than_its_bytes() {
    let tree = list(r#"{"":{"":0}}"#, 4 << 20);
    let packed = json!(list(r#"{"":{"":0}}"#, 2 << 20)).to_string();
    let short = json!(list(r#"{"":{"":0}}"#, 60 << 10)).to_string();
    let pipes = command("a|", 4 << 20);
    let agents = [
        ("codex", "PreToolUse", "PostToolUse"),
        ("gemini-cli", "BeforeTool", "AfterTool"),
        ("copilot-cli", "PreToolUse", "PostToolUse"),
        ("copilot-cli", "preToolUse", "postToolUse"),
        ("qwen-code", "PreToolUse", "PostToolUse"),
        ("cursor", "preToolUse", "postToolUse"),
    ];
    let both =
        [&tree, &packed, &short, &pipes].into_iter().flat_map(|data| agents.map(|agent| (data, agent)));
    in_parallel(both, |(data, (agent, before, after))| {
        let own = agent == "copilot-cli" && before == "preToolUse";
        let home = tempfile::tempdir().unwrap();
        for name in [before, after] {
            let event = if own {
                format!(
                    r#"{{"sessionId":"s","hookName":"{name}","toolName":"bash","toolArgs":{data},"toolResult":{data}}}"#
                )
            } else {
                format!(
                    r#"{{"session_id":"s","conversation_id":"s","hook_event_name":"{name}","tool_name":"Bash","tool_use_id":"c","tool_input":{data},"tool_response":{data},"tool_result":{data},"tool_output":{data}}}"#
                )
            };
            let arguments = ["hook", agent, "--mode", "enforce"];
            let cost = measured(home.path(), &arguments, event.as_bytes());
            let most = 2 * event.len() + (32 << 20);
            assert!(cost.memory <= most, "{name} of {agent}: {} MB of {}", cost.memory >> 20, event.len());
            let log = std::fs::read_to_string(home.path().join(".local/state/deloop/deloop.log"));
            assert_eq!(log.unwrap_or_default(), "", "{name} of {agent}: the event was not read");
        }
    });
}

/// The same for a long line in a transcript that a hook reads.
#[test]
#[ignore = "needs GNU time"]
fn a_transcript_costs_little_more_than_its_bytes() {
    let home = tempfile::tempdir().unwrap();
    let data = list(r#"{"":{"":0}}"#, 900 << 10);
    let line = format!(
        r#"{{"type":"assistant","sessionId":"s","message":{{"id":"m","role":"assistant","content":[{{"type":"tool_use","id":"c","name":"Bash","input":{{"x":{data}}}}}]}}}}"#
    );
    let path = home.path().join("t.jsonl");
    std::fs::write(&path, format!("{line}\n")).unwrap();
    let event = json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "c",
        "tool_input": {"command": "ls"}, "transcript_path": path});
    let arguments = ["hook", "claude-code", "--mode", "enforce"];
    let cost = measured(home.path(), &arguments, event.to_string().as_bytes());
    assert!(cost.memory <= 2 * line.len() + (32 << 20), "{} MB", cost.memory >> 20);
}

/// The figures of `docs/limits.md`. Without optimisation, large inputs say nothing.
#[test]
#[ignore = "a measurement; run it with --release and --nocapture"]
#[expect(clippy::print_stdout, reason = "it prints a table")]
fn the_table_of_limits() {
    let sizes: &[usize] = if cfg!(debug_assertions) { &[1 << 20] } else { &[1 << 20, 60 << 20] };
    for one in sizes.iter().flat_map(|size| measure(*size)) {
        let Measured { name, place, length, cost } = one;
        println!(
            "| {name} | {place} | {:.1} | {} | {:.0} | {} |",
            length as f64 / 1e6,
            cost.memory / 1_000_000,
            cost.seconds * 1e3,
            cost.memory.saturating_sub(2 * length) >> 20,
        );
    }
}

/// A value over a limit is compared by its beginning, its end, its length and its hash.
#[test]
fn what_is_too_long_is_judged_all_the_same() {
    let home = tempfile::tempdir().unwrap();
    let rows = |n: usize, last: &str| {
        let row = json!({"id": 7, "name": "x", "tags": ["a", "b"]}).to_string();
        format!("[{}{last}]", format!("{row},").repeat(n))
    };
    let lap = |args: &str, output: &str| {
        let call = format!(r#"{{"type":"call","tool":"query","args":{{"sql":{args}}}}}"#);
        format!("{call}\n{{\"type\":\"result\",\"ok\":false,\"output\":{output}}}\n")
    };
    let answers =
        |laps: Vec<String>| lines(&run(deloop(home.path()).arg("stream"), laps.concat().as_bytes()).stdout);
    let same = answers((0..6).map(|_| lap(&rows(20_000, "1"), &rows(20_000, "2"))).collect());
    assert!(same.iter().any(|a| a["action"] == "nudge"), "the same large call fails six times");
    // Only the middle differs: the hash tells them apart.
    let middle = |n: usize| rows(20_000, "1").replacen("\"x\"", &format!("\"y{n}\""), 9000);
    let other = answers((0..6).map(|n| lap(&middle(n), r#""ok""#).replace("false", "true")).collect());
    assert!(other.iter().all(|a| a["action"] == "continue"), "{other:?}");
}

/// Input that parsers reject costs one character, in a stream as in a hook.
#[test]
fn what_parsers_refuse_costs_a_character() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let odd: Vec<(&str, Vec<u8>)> = vec![
        ("lone surrogate", br#""make \ud83d""#.to_vec()),
        ("invalid UTF-8", b"\"make \xff\xfe\"".to_vec()),
        ("number out of range", b"[\"make\",1e400]".to_vec()),
        ("not a number", b"[\"make\",NaN]".to_vec()),
        ("nesting", format!(r#"["make",{deep}]"#).into_bytes()),
        ("control character", b"\"make \x01\ttest\"".to_vec()),
        ("byte order mark", b"\"make\"".to_vec()),
    ];
    for (name, data) in odd {
        let mark: &[u8] = if name == "byte order mark" { b"\xef\xbb\xbf" } else { b"" };
        let home = tempfile::tempdir().unwrap();
        let call = [mark, br#"{"type":"call","tool":"bash","args":{"command":"#, &data, b"}}\n"].concat();
        let result = [br#"{"type":"result","ok":false,"output":"#, &data[..], b"}\n"].concat();
        let output = run(deloop(home.path()).arg("stream"), &[call, result].concat().repeat(4));
        let answers = lines(&output.stdout);
        assert_eq!((answers.len(), output.status.code()), (8, Some(0)), "{name}: {answers:?}");
        assert!(answers.iter().any(|a| a["action"] == "nudge"), "{name}: {answers:?}");

        let agent = Agent::new("claude-code", "default", "enforce");
        let mut replies = Vec::new();
        for n in 0..4 {
            for (event, more) in [("PreToolUse", &b""[..]), ("PostToolUseFailure", b",\"error\":")] {
                let head = format!(
                    r#"{{"session_id":"s","hook_event_name":"{event}","tool_name":"Bash","tool_use_id":"c{n}","tool_input":{{"command":"#
                );
                let error: &[u8] = if more.is_empty() { b"" } else { &data };
                let event = [mark, head.as_bytes(), &data, b"}", more, error, b"}"].concat();
                replies.push(agent.send_bytes(&event));
            }
        }
        assert!(replies.iter().any(|r| *r != Value::Null), "{name}: the hook said nothing");
    }
}

/// Names are kept short, and different names stay different.
#[test]
fn long_names_are_shortened() {
    let home = tempfile::tempdir().unwrap();
    let call =
        |session: &str| json!({"type": "call", "session": session, "tool": "ls", "args": {}}).to_string();
    let (one, other) = ("n".repeat(5_000_000), format!("{}x", "n".repeat(5_000_000)));
    let input = [call(&one), call(&other), call(&one)].join("\n");
    let answers = lines(&run(deloop(home.path()).arg("stream"), input.as_bytes()).stdout);
    let names: Vec<&str> = answers.iter().map(|a| a["session"].as_str().unwrap()).collect();
    assert!(names.iter().all(|n| n.len() <= deloop_types::limits::NAME));
    assert!(names[0] == names[2] && names[0] != names[1], "{names:?}");
}
