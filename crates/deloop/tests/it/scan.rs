//! `deloop scan` and `deloop show` over files, folders and homes.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::binary::{deloop, run, said, trusted_config};

/// A session that runs the same failing command `times` times, as native Steps, one turn a minute.
pub(crate) fn stuck(session: &str, model: &str, times: u32) -> String {
    let mut lines = vec![
        json!({"type": "user", "session": session, "ts": "2026-03-01T10:00:00Z", "text": "Fix it."}),
        json!({"type": "turn", "session": session, "ts": "2026-03-01T10:00:30Z", "text": "I will look around.",
               "calls": [{"id": "first", "tool": "bash", "args": {"command": "ls"}}]}),
        json!({"type": "result", "session": session, "ts": "2026-03-01T10:00:31Z", "id": "first", "ok": true, "output": "src"}),
    ];
    for n in 0..times {
        let ts = format!("2026-03-01T10:{:02}:00Z", n + 1);
        lines.push(json!({"type": "turn", "session": session, "ts": ts, "text": format!("Attempt {n}."),
            "calls": [{"id": format!("c{n}"), "tool": "bash", "args": {"command": "cargo test"}}]}));
        lines.push(json!({"type": "usage", "session": session, "ts": ts, "model": model,
            "input_tokens": 1000, "output_tokens": 100, "cache_read_tokens": 10_000}));
        lines
            .push(json!({"type": "result", "session": session, "ts": ts, "id": format!("c{n}"), "ok": false,
            "output": "error: cannot find value `total`"}));
    }
    lines.push(
        json!({"type": "turn", "session": session, "ts": "2026-03-01T11:00:00Z", "text": "I give up."}),
    );
    // Sessions of different names are of different days.
    let day = 1 + session.bytes().map(u32::from).sum::<u32>() % 28;
    lines.iter().map(|l| format!("{l}\n").replace("2026-03-01T", &format!("2026-03-{day:02}T"))).collect()
}

/// The JSON report of a scan in this home.
pub(crate) fn scan(home: &Path, arguments: &[&str]) -> Value {
    let output = run(deloop(home).args(["scan", "--json"]).args(arguments), b"");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)))
}

/// What a scan prints.
fn printed(home: &Path, arguments: &[&str]) -> String {
    String::from_utf8(run(deloop(home).arg("scan").args(arguments), b"").stdout).unwrap()
}

#[test]
fn a_home_without_sessions_shows_the_examples() {
    let home = tempfile::tempdir().unwrap();
    let output = run(deloop(home.path()).arg("scan"), b"");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text.starts_with("No sessions found"), "{text}");
    assert!(text.contains("deloop finds in its example sessions"), "{text}");
    assert!(text.contains("`cargo test --workspace` failed the same way 9 times"), "{text}");
    let report = scan(home.path(), &[]);
    assert_eq!((&report["examples"], &report["totals"]["sessions"]), (&json!(false), &json!(0)));
}

#[test]
fn a_loop_is_told_with_what_it_cost() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("s.jsonl"), stuck("s1", "claude-sonnet-4-5-20250929", 7)).unwrap();
    let report = scan(home.path(), &["s.jsonl"]);
    let one = &report["loops"][0];
    assert_eq!(report["loops"].as_array().unwrap().len(), 1);
    assert_eq!(one["pattern"], "`cargo test` failed the same way 7 times, with nothing changed in between");
    assert_eq!((&one["session"], &one["format"]), (&json!("s1"), &json!("native")));
    assert_eq!((&one["first_turn"], &one["last_turn"], &one["of_turns"]), (&json!(2), &json!(8), &json!(9)));
    assert_eq!(one["repeated"], json!([3, 4, 5, 6, 7, 8]), "the first time is no repetition");
    assert_eq!((&one["line"], &one["step"]), (&json!(4), &json!(3)));
    assert_eq!(
        (&one["started"], &one["ended"]),
        (&json!("2026-03-25T10:01:00Z"), &json!("2026-03-25T10:07:00Z"))
    );
    assert_eq!(one["minutes"], 6.0);
    assert_eq!(one["spend"]["cache_read_tokens"], 60_000);
    let dollars = 6.0 * (1000.0 * 3.0 + 100.0 * 15.0 + 10_000.0 * 0.3) / 1e6;
    assert!((one["spend"]["usd"].as_f64().unwrap() - dollars).abs() < 1e-9, "{one}");
    let text = printed(home.path(), &["s.jsonl"]);
    for part in [
        "s1",
        "native · claude-sonnet-4-5 ",
        "turns 2 to 8 of 9",
        "66.6k",
        "$0.04",
        "1 loop in 1 of 1 session",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn the_transcripts_own_figure_wins_and_an_unknown_model_is_said() {
    let home = tempfile::tempdir().unwrap();
    let own = stuck("own", "claude-sonnet-4-5", 4)
        .replace("\"output_tokens\":100", "\"output_tokens\":100,\"cost_usd\":0.5");
    std::fs::write(home.path().join("own.jsonl"), own).unwrap();
    std::fs::write(home.path().join("odd.jsonl"), stuck("odd", "house-model", 4)).unwrap();
    let report = scan(home.path(), &["own.jsonl", "odd.jsonl"]);
    let (own, odd) = (&report["loops"][0], &report["loops"][1]);
    assert_eq!((&own["session"], &own["spend"]["usd"]), (&json!("own"), &json!(1.5)));
    assert_eq!((&odd["spend"]["usd"], &odd["spend"]["unpriced_tokens"]), (&json!(0.0), &json!(33_300)));
    assert_eq!(report["totals"]["unpriced_models"], json!(["house-model"]));
    let text = printed(home.path(), &["odd.jsonl"]);
    let note = "44.4k tokens of 1 model have no price (house-model): `deloop prices` lists prices, `[prices]` in your";
    assert!(text.contains("price unknown") && text.contains(note), "{text}");
    trusted_config(home.path(), "deloop.toml", "[prices.house-model]\ninput = 10.0\noutput = 10.0");
    let dollars = scan(home.path(), &["odd.jsonl"])["loops"][0]["spend"]["usd"].as_f64().unwrap();
    assert!((dollars - 0.333).abs() < 1e-9, "{dollars}");
}

#[test]
fn files_folders_globs_input_and_packed_files_are_read() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("runs/deep");
    std::fs::create_dir_all(&folder).unwrap();
    let text = stuck("plain", "m", 4);
    std::fs::write(folder.join("a.jsonl"), &text).unwrap();
    std::fs::write(folder.join("notes.txt"), "not a session").unwrap();
    std::fs::write(folder.join("settings.json"), "{\"theme\": \"dark\"}").unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(stuck("gz", "m", 4).as_bytes()).unwrap();
    std::fs::write(folder.join("b.jsonl.gz"), gz.finish().unwrap()).unwrap();
    let zst = stuck("zst", "m", 4);
    let zst = ruzstd::encoding::compress_to_vec(zst.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    std::fs::write(folder.join("c.jsonl.zst"), zst).unwrap();
    let sessions = |arguments: &[&str]| {
        let report = scan(home.path(), arguments);
        assert_eq!(report["problems"], json!([]));
        let mut names: Vec<String> = report["loops"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| l["session"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(sessions(&["runs"]), ["gz", "plain", "zst"]);
    assert_eq!(sessions(&["runs/*/*.jsonl.*"]), ["gz", "zst"]);
    assert_eq!(sessions(&["runs/deep/a.jsonl", "runs", "runs/deep/../deep/a.jsonl"]), ["gz", "plain", "zst"]);
    let output = run(deloop(home.path()).args(["scan", "--json", "-"]), text.as_bytes());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["loops"][0]["session"], &report["loops"][0]["file"]), (&json!("plain"), &json!("-")));
}

#[test]
fn what_is_named_and_not_there_is_said_and_the_rest_is_read() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("s.jsonl"), stuck("s1", "m", 4)).unwrap();
    std::fs::write(home.path().join("not.jsonl"), "{\"theme\": \"dark\"}").unwrap();
    for (path, expected) in [
        ("gone.jsonl", "gone.jsonl: no such file or folder"),
        ("gone*.jsonl", "gone*.jsonl: the pattern matches no files"),
        ("not.jsonl", "not.jsonl: unknown session format"),
    ] {
        let output = run(deloop(home.path()).args(["scan", path, "s.jsonl"]), b"");
        assert_eq!(output.status.code(), Some(2), "{path}");
        assert!(said(&output).contains(expected), "{path}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("failed the same way 4 times"), "{path}");
    }
}

/// A scan that read nothing is no scan without loops.
#[test]
fn a_folder_in_which_nothing_can_be_read_is_a_failure() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    std::fs::create_dir_all(path("runs/empty")).unwrap();
    std::fs::write(path("runs/a.jsonl"), "{\"stamp\":1,\"payload\":{}}\n{\"stamp\":2}\n").unwrap();
    std::fs::write(path("runs/b.json"), "buy milk").unwrap();
    let first = "deloop: runs/a.jsonl: unknown session format: JSON lines with the keys `stamp`, `payload`";
    for arguments in
        [&["scan", "runs"][..], &["steps", "runs"], &["show", "s1", "runs"], &["compare", "runs"]]
    {
        let extra: &[&str] =
            if arguments[0] == "compare" { &["--a", "default", "--b", "signature"] } else { &[] };
        let output = run(deloop(home.path()).args(arguments).args(extra), b"");
        let said = said(&output);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {said}");
        assert!(
            said.starts_with(first) && said.contains("runs/b.json: unknown session format: not JSON"),
            "{said}"
        );
        assert!(said.contains("couldn't read any of the 2 files found. If you know the format"), "{said}");
        assert!(said.contains("`--format`") && said.contains("`deloop formats`"), "{said}");
    }
    let output = run(deloop(home.path()).args(["scan", "--json", "runs"]), b"");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["totals"]["unread_files"]), (Some(2), &json!(2)));
    let problems = report["problems"].as_array().unwrap();
    assert_eq!((problems.len(), &problems[0]["lost"]), (2, &json!(true)), "{report}");
    let forced = run(deloop(home.path()).args(["scan", "runs/a.jsonl", "--format", "codex"]), b"");
    assert_eq!(forced.status.code(), Some(2));
    assert!(said(&forced).contains("read as `codex`, but contains no steps"), "{}", said(&forced));
    let page = run(deloop(home.path()).args(["scan", "runs", "--html", "report.html"]), b"");
    assert!(
        page.status.code() == Some(2) && !path("report.html").exists(),
        "an old report isn't overwritten"
    );

    let none = run(deloop(home.path()).args(["scan", "runs/empty"]), b"");
    assert_eq!((none.status.code(), none.stdout), (Some(0), b"No sessions found.\n".to_vec()));
    std::fs::write(path("runs/s.jsonl"), stuck("s1", "m", 4)).unwrap();
    let mixed = run(deloop(home.path()).args(["scan", "runs"]), b"");
    assert_eq!((mixed.status.code(), said(&mixed).as_str()), (Some(0), ""));
    assert_eq!(scan(home.path(), &["runs"])["totals"]["unread_files"], 2);
}

#[test]
fn exit_codes_follow_fail_on() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("s.jsonl"), stuck("s1", "m", 9)).unwrap();
    let code = |arguments: &[&str]| {
        run(deloop(home.path()).args(["scan", "s.jsonl"]).args(arguments), b"").status.code()
    };
    assert_eq!(code(&["-p", "signature"]), Some(0));
    assert_eq!(code(&["-p", "signature", "--fail-on", "stop"]), Some(1));
    assert_eq!(code(&["-p", "signature", "--fail-on", "3"]), Some(1));
    assert_eq!(code(&["-p", "doom-loop", "--fail-on", "stop"]), Some(0), "it blocks, but does not stop");
    assert_eq!(code(&["-p", "doom-loop", "--fail-on", "4"]), Some(0));
    assert_eq!(code(&["--fail-on", "loud"]), Some(2));
    assert_eq!(code(&["-p", "nope"]), Some(2));
    assert_eq!(code(&["--since", "ever"]), Some(2));
    let examples = run(deloop(home.path()).args(["scan", "--fail-on", "1"]), b"");
    assert_eq!(examples.status.code(), Some(0), "the examples are not the user's loops");
}

#[test]
fn loops_can_be_chosen() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("cheap.jsonl"), stuck("cheap", "gpt-5-nano", 9)).unwrap();
    std::fs::write(home.path().join("dear.jsonl"), stuck("dear", "claude-opus-4-1", 4)).unwrap();
    let names = |arguments: &[&str]| -> Vec<String> {
        let report =
            scan(home.path(), &[&["cheap.jsonl", "dear.jsonl", "-p", "doom-loop"], arguments].concat());
        report["loops"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| l["session"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&[]), ["dear", "cheap"], "the costlier first");
    assert_eq!(names(&["--top", "1"]), ["dear"]);
    assert_eq!(names(&["--min-level", "block"]), ["cheap"]);
    assert_eq!(names(&["--since", "2026-03-30"]), [""; 0]);
    assert_eq!(names(&["--since", "2026-03-01"]), ["dear", "cheap"]);
    let text = printed(home.path(), &["cheap.jsonl", "dear.jsonl", "--top", "1"]);
    assert!(text.contains("… and 1 more loop") && text.contains("2 loops in 2 of 2 sessions"), "{text}");
}

#[test]
fn two_sessions_in_one_file_are_told_apart() {
    let home = tempfile::tempdir().unwrap();
    let (one, two) = (stuck("one", "m", 4), stuck("two", "m", 5));
    let mixed: String =
        one.lines().zip(two.lines()).flat_map(|(a, b)| [a, "\n", b, "\n"]).collect::<String>()
            + &two[two.len() - 600..];
    let mixed: String = mixed.lines().filter(|l| l.starts_with('{')).map(|l| format!("{l}\n")).collect();
    std::fs::write(home.path().join("both.jsonl"), mixed).unwrap();
    let report = scan(home.path(), &["both.jsonl"]);
    assert_eq!((&report["totals"]["files"], &report["totals"]["sessions"]), (&json!(1), &json!(2)));
    assert_eq!(report["totals"]["sessions_with_loops"], 2);
}

/// A session that was resumed carries what came before along: its loop and its tokens count once.
#[test]
fn a_copied_loop_is_one_loop() {
    let home = tempfile::tempdir().unwrap();
    let first = stuck("first", "m", 4);
    let resumed = stuck("first", "m", 6).replace("\"first\",\"t", "\"second\",\"t");
    std::fs::write(home.path().join("a.jsonl"), first).unwrap();
    std::fs::write(home.path().join("b.jsonl"), resumed).unwrap();
    let report = scan(home.path(), &["a.jsonl", "b.jsonl"]);
    assert_eq!(report["totals"]["loops"], 1);
    assert_eq!((&report["loops"][0]["session"], &report["loops"][0]["count"]), (&json!("second"), &json!(6)));
}

#[test]
fn a_narrow_terminal_gets_a_list() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("s.jsonl"), stuck("s1", "m", 7)).unwrap();
    for columns in ["40", "60", "90", "200"] {
        let output = run(deloop(home.path()).args(["scan", "s.jsonl"]).env("COLUMNS", columns), b"");
        let text = String::from_utf8(output.stdout).unwrap();
        let narrow = columns.parse::<usize>().unwrap() < 84;
        assert_eq!(text.contains('═'), !narrow, "{columns}: {text}");
        let table = text.lines().filter(|l| l.contains(['─', '═']));
        assert!(table.clone().all(|l| l.chars().count() <= columns.parse().unwrap()), "{columns}: {text}");
    }
}

#[test]
fn csv_has_one_line_per_loop() {
    let home = tempfile::tempdir().unwrap();
    let text = stuck("a,\"b\"", "=cmd|'/c calc'!A1", 4);
    std::fs::write(home.path().join("s.jsonl"), text).unwrap();
    let csv = printed(home.path(), &["s.jsonl", "--csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 2, "{csv}");
    assert!(lines[0].starts_with("session,file,format,agent,model,"));
    assert!(lines[1].starts_with("\"a,\"\"b\"\"\",s.jsonl,native,,\"'=cmd|"), "{csv}");
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let home = tempfile::tempdir().unwrap();
    let mut command = deloop(home.path());
    command
        .args(["scan", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""));
}

#[test]
fn a_session_is_shown_around_its_loop() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("s.jsonl"), stuck("session-one", "m", 20)).unwrap();
    let show = |arguments: &[&str]| {
        let output = run(deloop(home.path()).arg("show").args(arguments), b"");
        (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap(), said(&output))
    };
    let (code, text, _) = show(&["s.jsonl"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("── Loop: `cargo test` failed the same way 20 times"), "{text}");
    assert!(text.contains(" ⟲                 bash cargo test\n"), "{text}");
    assert!(
        text.contains("   turn 1    10:00 I will look around."),
        "what does not repeat has no mark: {text}"
    );
    assert!(text.contains("▲ deloop: nudge (level 1) at turn 4\n"), "{text}");
    assert!(
        (0..20).all(|n| text.contains(&format!("Attempt {n}."))),
        "every step that repeats is shown: {text}"
    );
    let (_, by_start, _) = show(&["session-o", "s.jsonl"]);
    assert_eq!(by_start, text);
    let (code, _, error) = show(&["nobody", "s.jsonl"]);
    assert!(code == Some(2) && error.contains("no session `nobody`"), "{error}");
    let (_, example, _) = show(&["example-tests"]);
    assert!(example.contains("▲ deloop: nudge"), "{example}");
}

/// A session with work before, between and after the runs of a loop.
fn worked(session: &str) -> String {
    let mut lines = Vec::new();
    let mut turn = |n: usize, tool: &str, args: Value, ok: bool, output: &str| {
        let ts = format!("2026-03-01T10:{:02}:00Z", lines.len() / 3);
        lines.push(json!({"type": "turn", "session": session, "ts": ts,
            "calls": [{"id": format!("c{n}"), "tool": tool, "args": args}]}));
        lines.push(json!({"type": "usage", "session": session, "ts": ts, "model": "claude-sonnet-4-5",
            "input_tokens": 1000, "output_tokens": 10}));
        lines.push(json!({"type": "result", "session": session, "ts": ts, "id": format!("c{n}"), "ok": ok, "output": output}));
    };
    for n in 0..20 {
        turn(n, "Edit", json!({"file_path": format!("src/{n}.rs")}), true, "done");
    }
    for n in 20..30 {
        if n % 2 == 0 {
            turn(n, "bash", json!({"command": "cargo test"}), false, "error: cannot find value `total`");
        } else {
            turn(n, "Read", json!({"file_path": format!("src/{n}.rs")}), true, &format!("pub fn part_{n}()"));
        }
    }
    for n in 30..42 {
        turn(n, "Grep", json!({"pattern": format!("part_{n}")}), true, &format!("src/{n}.rs: part_{n}"));
    }
    lines.iter().map(|l| format!("{l}\n")).collect()
}

/// Other work in between costs nothing, and what is not shown is said in words.
#[test]
fn only_what_repeats_is_counted_and_what_is_left_out_is_said() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("s.jsonl"), worked("w")).unwrap();
    let report = scan(home.path(), &["s.jsonl"]);
    let one = &report["loops"][0];
    assert_eq!((&one["first_turn"], &one["last_turn"]), (&json!(21), &json!(29)), "{one}");
    assert_eq!(one["repeated"], json!([23, 25, 27, 29]));
    assert_eq!((&one["spend"]["input_tokens"], &one["minutes"]), (&json!(4000), &json!(4.0)));
    assert_eq!(report["totals"]["loop_spend"], one["spend"]);
    let output = run(deloop(home.path()).args(["show", "s.jsonl"]), b"");
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["… 19 edits not shown", "… 1 read not shown", "… 11 searches not shown"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let all = run(deloop(home.path()).args(["show", "s.jsonl", "--all"]), b"");
    let all = String::from_utf8(all.stdout).unwrap();
    assert!(!all.contains("not shown") && all.matches("Grep").count() == 12, "{all}");
}

/// Sessions that are too old are counted, and none of their bytes.
#[test]
fn a_scan_of_nothing_but_old_sessions_says_so() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("s.jsonl"), stuck("s1", "m", 7)).unwrap();
    let text = printed(home.path(), &["s.jsonl", "--since", "2026-04-01"]);
    assert_eq!(text, "No sessions found since 2026-04-01 00:00; skipped 1 older file or session.\n");
    let report = scan(home.path(), &["s.jsonl", "--since", "2026-04-01"]);
    assert_eq!((&report["older"], &report["totals"]["bytes"]), (&json!(1), &json!(0)));
}

/// Standard input can be read only once, and is shown nevertheless.
#[test]
fn standard_input_is_shown_and_reported() {
    let home = tempfile::tempdir().unwrap();
    let text = stuck("piped", "m", 6);
    let shown = run(deloop(home.path()).args(["show", "-"]), text.as_bytes());
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("── Loop: `cargo test` failed the same way 6 times") && shown.contains("Attempt 3."),
        "{shown}"
    );
    let output = run(deloop(home.path()).args(["scan", "-", "--html", "r.html"]), text.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let page = std::fs::read_to_string(home.path().join("r.html")).unwrap();
    assert!(page.contains("Attempt 3."), "the steps are in the page");
}

/// opencode keeps its sessions in a database; earlier releases in many small files.
#[test]
fn the_sessions_of_opencode_are_found_where_it_keeps_them() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join(".local/share/opencode");
    std::fs::create_dir_all(&data).unwrap();
    let database = rusqlite::Connection::open(data.join("opencode.db")).unwrap();
    let tables = "CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, directory text, title text, version text, time_created integer);
        CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
        CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);
        INSERT INTO session VALUES ('ses_now', 'global', NULL, '/work/shop', 'Build', '1.18.33', 1794729384834);";
    database.execute_batch(tables).unwrap();
    let storage = data.join("storage");
    let write = |name: String, text: &str| {
        let path = storage.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "session/global/ses_then.json".into(),
        r#"{"id":"ses_then","directory":"/work/shop","version":"1.1.0"}"#,
    );
    for n in 0..6 {
        let at = 1_794_729_384_834_i64 + n * 1000;
        let message = format!(
            r#"{{"role":"assistant","modelID":"m","cost":0.5,"tokens":{{"input":10,"output":5,"reasoning":0,"cache":{{"read":0,"write":0}}}},"time":{{"created":{at}}}}}"#
        );
        let part = format!(
            r#"{{"type":"tool","tool":"bash","callID":"c{n}","state":{{"status":"completed","input":{{"command":"make widget"}},"output":"no target","metadata":{{"exit":2}}}}}}"#
        );
        let row = "INSERT INTO message VALUES (?1, 'ses_now', ?2, ?2, ?3)";
        database.execute(row, (format!("msg_{n}"), at, &message)).unwrap();
        let row = "INSERT INTO part VALUES (?1, ?2, 'ses_now', ?3, ?3, ?4)";
        database.execute(row, (format!("prt_{n}"), format!("msg_{n}"), at, &part)).unwrap();
        write(format!("message/ses_then/old_{n}.json"), &message);
        // Another target: the same loop at the same time would be a copy, and counts once.
        write(format!("part/old_{n}/prt_{n}.json"), &part.replace("widget", "gadget"));
    }
    drop(database);
    let before = std::fs::read(data.join("opencode.db")).unwrap();
    let table = printed(home.path(), &[]);
    for session in ["ses_now", "ses_then"] {
        assert!(table.contains(session), "{session} in {table}");
    }
    for target in ["widget", "gadget"] {
        assert!(table.contains(&format!("`make {target}` failed the same way 6 times")), "{table}");
    }
    assert!(table.contains("$3.00"), "the figures of the agent: {table}");
    assert_eq!(std::fs::read(data.join("opencode.db")).unwrap(), before, "it is only read");
    let shown = run(deloop(home.path()).args(["show", "ses_now"]), b"");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("make widget"), "{shown}");
}
