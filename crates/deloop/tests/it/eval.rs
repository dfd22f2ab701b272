//! `deloop eval` on small sets of sessions whose figures can be counted by hand.

use std::io::Write;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::binary::{deloop, run, said};

/// Turns of honest work: each reads another file.
fn work(turns: usize, from: usize) -> String {
    (from..from + turns)
        .map(|n| turn(n, "Read", &json!({"file_path": format!("src/{n}.rs")}), &source(n)))
        .collect()
}

/// Turns of a loop: the same command with the same failure.
fn stuck(turns: usize, from: usize, command: &str) -> String {
    let error = format!("error: `{command}` can't find module {}", command.len());
    (from..from + turns)
        .map(|n| {
            let call = json!({"type": "turn", "calls": [{"id": format!("c{n}"), "tool": "Bash",
                "args": {"command": command}}]});
            let result = json!({"type": "result", "id": format!("c{n}"), "ok": false, "output": error});
            format!("{call}\n{result}\n")
        })
        .collect()
}

fn turn(n: usize, tool: &str, args: &Value, output: &str) -> String {
    let call = json!({"type": "turn", "calls": [{"id": format!("c{n}"), "tool": tool, "args": args}]});
    let result = json!({"type": "result", "id": format!("c{n}"), "ok": true, "output": output});
    format!("{call}\n{result}\n")
}

fn source(n: usize) -> String {
    format!("pub fn part_{n}() -> usize {{ {} }}", n * n + 7)
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    if Path::new(name).extension().is_some_and(|e| e == "gz") {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(text.as_bytes()).unwrap();
        std::fs::write(path, gz.finish().unwrap()).unwrap();
    } else {
        std::fs::write(path, text).unwrap();
    }
}

fn eval(home: &Path, arguments: &[&str]) -> Output {
    run(deloop(home).arg("eval").args(arguments), b"")
}

fn report(home: &Path, arguments: &[&str]) -> Value {
    let output = eval(home, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["profiles"][0].take()
}

fn printed(home: &Path, arguments: &[&str]) -> String {
    let output = eval(home, arguments);
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// A set with a packed session of two loops, an honest one, and a stuck one that nobody has read.
fn a_set() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let set = home.path().join("runs");
    let two = [work(30, 0), stuck(5, 30, "make check"), work(30, 35), stuck(5, 65, "npm test")].concat();
    write(&set, "pi/shop__one.jsonl.gz", &two);
    write(&set, "pi/bank__two.jsonl", &work(20, 0));
    write(&set, "pi/bank__three.jsonl", &[work(5, 0), stuck(3, 5, "make docs")].concat());
    write(&set, "notes.json", "{\"no\": \"session\"}");
    let labels = [
        json!({"path": "pi/shop__one.jsonl.gz", "label": "loop", "onset_turn": 32, "last_turn": 34, "kind": "exact"}),
        json!({"path": "pi/shop__one.jsonl.gz", "label": "loop", "onset_turn": 67, "last_turn": 69, "kind": "exact"}),
        json!({"path": "pi/bank__two.jsonl", "label": "none"}),
    ];
    write(&set, "labels.jsonl", &labels.map(|l| l.to_string()).join("\n"));
    home
}

#[test]
fn several_episodes_packed_files_and_sessions_without_a_label() {
    let home = a_set();
    let report = report(home.path(), &["runs/labels.jsonl"]);
    let rates = &report["sets"][0]["rates"];
    assert_eq!(report["sets"][0]["name"], "runs", "a set is named after its folder");
    assert_eq!(
        (&rates["sessions"], &rates["unlabelled"], &rates["calls"]),
        (&json!(3), &json!(1), &json!(98))
    );
    assert_eq!((&rates["episodes"], &rates["episodes_found"]), (&json!(2), &json!(2)));
    assert_eq!((&rates["alarms_right"], &rates["alarms_false"]), (&json!(2), &json!(1)));
    assert_eq!((&rates["healthy"], &rates["healthy_alarmed"]), (&json!(2), &json!(1)));
    assert_eq!(report["unlabelled_alarms"][0]["path"], "pi/bank__three.jsonl");
    let score = &report["sets"][0]["score"];
    assert_eq!(
        (&score["sessions"], &score["f1"]),
        (&json!(2), &json!(1.0)),
        "F1 is of labelled sessions only"
    );
    let projects: Vec<&str> =
        report["by"]["project"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(projects, ["bank", "shop"]);
    assert_eq!(report["by"]["agent"][0]["name"], "native");
}

#[test]
fn a_rate_has_an_exact_interval() {
    let home = a_set();
    let some = report(home.path(), &["runs/labels.jsonl"])["all"]["rates"].take();
    let per_thousand = |events: f64| events / 0.098;
    for (key, events) in
        [("false_per_1000_calls", 1.0), ("false_per_1000_low", 0.025_318), ("false_per_1000_high", 5.571_643)]
    {
        assert!((number(&some[key]) - per_thousand(events)).abs() < 0.01, "{key} {}", some[key]);
    }
    let none = report(home.path(), &["runs/labels.jsonl", "--labelled-only"])["all"]["rates"].take();
    assert_eq!((&none["sessions"], &none["calls"]), (&json!(2), &json!(90)));
    assert_eq!((number(&none["false_per_1000_calls"]), number(&none["false_per_1000_low"])), (0.0, 0.0));
    assert!((number(&none["false_per_1000_high"]) - 3.688_879 / 0.09).abs() < 0.01, "{none}");
}

#[test]
fn what_is_wrong_is_listed_with_its_evidence() {
    let home = a_set();
    let labels = home.path().join("runs/labels.jsonl");
    let told = std::fs::read_to_string(&labels).unwrap().replace("\"onset_turn\":67", "\"onset_turn\":6");
    std::fs::write(&labels, told.replace("\"last_turn\":69", "\"last_turn\":9")).unwrap();
    let text = printed(home.path(), &["runs/labels.jsonl"]);
    assert!(text.contains("missed loops: 1\n  runs: pi/shop__one.jsonl.gz turns 6 to 9 [exact]"), "{text}");
    assert!(text.contains("false alarms on labelled sessions: 0"), "late is not false: {text}");
    let listed = text.split("alarms on sessions without a label: 1\n").nth(1).expect("the heading");
    assert!(listed.contains("runs: pi/bank__three.jsonl turns 7 to 7, nudge by "), "{text}");
    assert!(listed.contains("make docs"), "the evidence: {text}");
    assert!(!text.contains("      turn "), "{text}");
    let all = printed(home.path(), &["runs/labels.jsonl", "--verbose"]);
    assert!(all.contains("      turn 32, nudge by "), "every fire of that session: {all}");
}

#[test]
fn doubtful_sessions_count_neither_way() {
    let home = a_set();
    let set = home.path().join("runs");
    let lines = |doubtful: Value| {
        let loops =
            json!({"path": "pi/shop__one.jsonl.gz", "label": "loop", "onset_turn": 67, "last_turn": 69});
        write(&set, "labels.jsonl", &format!("{loops}\n{doubtful}\n"));
        let rates = report(home.path(), &["runs/labels.jsonl", "--labelled-only"])["all"]["rates"].take();
        ["alarms_right", "alarms_borderline", "alarms_false"].map(|key| rates[key].as_u64().unwrap())
    };
    let path = "pi/shop__one.jsonl.gz";
    assert_eq!(lines(json!({"path": path, "label": "legit"})), [1, 0, 1], "before the loop is false");
    assert_eq!(lines(json!({"path": path, "label": "borderline"})), [1, 1, 0]);
    let there = json!({"path": path, "label": "borderline", "onset_turn": 32, "last_turn": 34});
    assert_eq!(lines(there), [1, 1, 0]);
    let elsewhere = json!({"path": path, "label": "borderline", "onset_turn": 10, "last_turn": 12});
    assert_eq!(lines(elsewhere), [1, 0, 1]);
}

#[test]
fn an_ablation_has_a_row_per_detector_and_a_column_per_set() {
    let home = a_set();
    write(&home.path().join("calm"), "a.jsonl", &work(12, 0));
    write(&home.path().join("calm"), "labels.jsonl", "{\"path\":\"a.jsonl\",\"label\":\"none\"}\n");
    let profile = r#"
        name = "mine"
        order = ["repeated-failure", "chanting"]
        detectors.repeated-failure.ladder = "nudge"
        [[ladders.nudge.rungs]]
        at = 3
        action = "nudge"
        message = "{summary}"
    "#;
    write(home.path(), "mine.toml", profile);
    let arguments = ["runs/labels.jsonl", "calm/labels.jsonl", "--ablate", "-p", "mine.toml"];
    let report = report(home.path(), &arguments);
    let rows = report["ablation"].as_array().unwrap();
    let main = json!({"without": "repeated-failure", "sets": [
        {"set": "runs", "episodes_found": -2, "false_alarms": -1, "f1": -1.0},
        {"set": "calm", "episodes_found": 0, "false_alarms": 0, "f1": 0.0}]});
    assert_eq!(rows[1]["without"], "chanting");
    assert_eq!(rows[0], main);
    let text = printed(home.path(), &arguments);
    assert!(text.contains("| runs                 | calm"), "{text}");
    assert!(
        text.contains("repeated-failure           |    -2     -1  -1.000 |     0      0       0"),
        "{text}"
    );
    assert!(!printed(home.path(), &["runs/labels.jsonl"]).contains("turning off"));
}

#[test]
fn many_sessions_in_one_file_go_by_id() {
    let home = tempfile::tempdir().unwrap();
    let in_session = |name: &str, text: String| -> String {
        text.lines()
            .map(|line| {
                let mut step: Value = serde_json::from_str(line).unwrap();
                step["session"] = json!(name);
                format!("{step}\n")
            })
            .collect()
    };
    let text = [
        in_session("a", stuck(5, 0, "make check")),
        in_session("b", work(9, 0)),
        in_session("c", stuck(5, 0, "npm test")),
    ];
    write(home.path(), "all.jsonl", &text.concat());
    let label =
        |id: &str| json!({"path": "all.jsonl", "id": id, "label": "loop", "onset_turn": 2, "last_turn": 4});
    write(home.path(), "labels.jsonl", &label("a").to_string());
    let report = report(home.path(), &["labels.jsonl"]);
    let rates = &report["all"]["rates"];
    assert_eq!((&rates["sessions"], &rates["unlabelled"]), (&json!(3), &json!(2)));
    assert_eq!((&rates["alarms_right"], &rates["alarms_false"]), (&json!(1), &json!(1)));
    assert_eq!(report["unlabelled_alarms"][0]["id"], "c");

    write(home.path(), "labels.jsonl", &label("nobody").to_string());
    let output = eval(home.path(), &["labels.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("all.jsonl: has a label for session `nobody`, which the file doesn't contain")
    );
}

#[test]
fn mistakes_are_told() {
    let home = a_set();
    let fails = |arguments: &[&str]| {
        let output = eval(home.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        said(&output)
    };
    assert!(fails(&["nowhere.jsonl"]).contains("nowhere.jsonl"));
    assert!(
        fails(&["runs/labels.jsonl", "runs/labels.jsonl", "--corpus", "runs"]).contains("one labels file")
    );
    write(home.path(), "runs/labels.jsonl", "{\"path\":\"gone.jsonl\",\"label\":\"loop\"}\n");
    assert!(fails(&["runs/labels.jsonl"]).contains("gone.jsonl: no such file"));
    write(home.path(), "runs/labels.jsonl", "{\"path\":\"notes.json\",\"label\":\"loop\"}\n");
    assert!(fails(&["runs/labels.jsonl"]).contains("notes.json: unknown session format"));
    write(home.path(), "runs/labels.jsonl", "\n{\"label\":\"loop\"}\n");
    assert!(fails(&["runs/labels.jsonl"]).contains("labels.jsonl: line 2: missing field `path`"));
}
