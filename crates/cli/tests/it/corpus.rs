//! `deloop eval` on the sessions written for this project: a change of behaviour shows as a change of the snapshot.

use std::path::Path;

use serde_json::Value;

use crate::binary::{deloop, run, said};

#[test]
fn the_reviewed_score_of_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let labels = corpus.join("labels.jsonl");
    let home = tempfile::tempdir().unwrap();
    let output =
        run(deloop(home.path()).arg("eval").arg(&labels).arg("--corpus").arg(&corpus).arg("--json"), b"");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "", "every session can be read");
    let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = &reports[0];
    let labelled = std::fs::read_to_string(&labels).unwrap().lines().count();
    assert_eq!(report["score"]["sessions"], labelled, "every label has its session");
    insta::assert_snapshot!(summary(report));
}

/// What a reviewer wants to see change: the counts, and each mistake on a line.
fn summary(report: &Value) -> String {
    let score = &report["score"];
    let mut lines = vec![
        format!(
            "loops {}, found {}, median delay {}",
            score["positives"], score["hits"], score["median_delay"]
        ),
        format!(
            "others {}, false alarms {}, false blocks or stops {}",
            score["healthy"], score["healthy_alarms"], score["false_hard"]
        ),
    ];
    for (title, list) in [("missed", "misses"), ("false alarms", "false_alarms")] {
        lines.push(format!("{title}:"));
        lines.extend(items(&report[list]).map(|session| format!("  {}", mistake(session))));
    }
    lines.join("\n")
}

/// The path, the kind, and what was done at which turn.
fn mistake(session: &Value) -> String {
    let fires = items(&session["replay"]["fires"])
        .map(|fire| format!(", {} {} at {}", text(&fire["detector"]), text(&fire["action"]), fire["turn"]));
    format!("{} [{}]{}", text(&session["path"]), text(&session["kind"]), fires.collect::<String>())
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().expect("a list").iter()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
