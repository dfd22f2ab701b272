//! `deloop eval` on the sessions written for this project: a change of behaviour shows as a change of the snapshot.

use std::path::Path;

use serde_json::Value;

use crate::binary::{deloop, run, said};

#[test]
fn the_reviewed_score_of_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let labels = corpus.join("labels.jsonl");
    let home = tempfile::tempdir().unwrap();
    let output = run(deloop(home.path()).arg("eval").arg(&labels).arg("--json"), b"");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "", "every session can be read");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = &report["profiles"][0];
    let labelled = std::fs::read_to_string(&labels).unwrap().lines().count();
    assert_eq!(report["all"]["rates"]["sessions"], labelled, "every label has its session, and the reverse");
    assert_eq!(report["all"]["rates"]["unlabelled"], 0, "every session has its label");
    insta::assert_snapshot!(summary(report));
}

/// What a reviewer wants to see change: the counts, and each mistake on a line.
fn summary(report: &Value) -> String {
    let (rates, score) = (&report["all"]["rates"], &report["all"]["score"]);
    let mut lines = vec![
        format!(
            "loops {}, found {}, median delay {}",
            rates["episodes"], rates["episodes_found"], rates["median_delay"]
        ),
        format!(
            "alarms right {}, borderline {}, late {}, false {}",
            rates["alarms_right"], rates["alarms_borderline"], rates["alarms_late"], rates["alarms_false"]
        ),
        format!("hard alarms right {}, false {}", rates["hard_right"], rates["hard_false"]),
        format!(
            "sessions without a loop {}, with a false alarm {}",
            score["healthy"], score["healthy_alarms"]
        ),
        "missed:".to_owned(),
    ];
    lines.extend(items(&report["missed"]).map(|one| {
        let alarms = items(&one["alarms"]).map(|alarm| format!(", {}", said_by(alarm)));
        format!("  {} [{}]{}", text(&one["path"]), text(&one["kind"]), alarms.collect::<String>())
    }));
    lines.push("false alarms:".to_owned());
    lines.extend(
        items(&report["false_alarms"]).map(|alarm| format!("  {}, {}", text(&alarm["path"]), said_by(alarm))),
    );
    lines.join("\n")
}

/// What was done, by which detector, from which turn to which.
fn said_by(alarm: &Value) -> String {
    let (detector, action) = (text(&alarm["detector"]), text(&alarm["action"]));
    format!("{detector} {action} at {} to {}", alarm["first_turn"], alarm["last_turn"])
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().expect("a list").iter()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
