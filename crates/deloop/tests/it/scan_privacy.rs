//! What of a transcript is shown: no secret, and nothing that acts on a terminal or a page.

use std::path::Path;

use serde_json::json;

use crate::binary::{deloop, run};

/// Put together here, so that no scanner of this repository takes it for a real one.
fn secret() -> String {
    format!("sk-ant-{}", "api03-abcdefghijklmnopqrstuv")
}

/// A stuck session in which every text is hostile.
fn hostile() -> String {
    let evil = "\u{1b}]0;pwned\u{7}\u{1b}[2J\u{9b}31m\u{202e}txt.exe\u{2066}<script>alert(1)</script><img src=x onerror=alert(2)>\u{200b}";
    let session = format!("s-{evil}");
    let mut lines = vec![json!({"type": "user", "session": session, "text": format!("{evil} {}", secret())})];
    for n in 0..6 {
        lines.push(json!({"type": "turn", "session": session, "agent": format!("a{evil}"), "ts": 1_772_000_000_000_i64 + n,
            "text": format!("Thinking {evil} password={}hunter2hunter2", ""),
            "calls": [{"id": format!("c{n}"), "tool": format!("bash{evil}"),
                "args": {"command": format!("ARGUMENT curl -H 'x-api-key: {}' {evil}", secret())}}]}));
        lines.push(json!({"type": "usage", "session": session, "agent": format!("a{evil}"), "model": format!("m{evil}"),
            "input_tokens": 1000, "output_tokens": 10}));
        lines.push(json!({"type": "result", "session": session, "agent": format!("a{evil}"), "id": format!("c{n}"),
            "ok": false, "output": format!("RESULT {evil} </script><script>alert(3)</script> {} ", secret())}));
    }
    lines.iter().map(|l| format!("{l}\n")).collect()
}

/// Everything that can be printed or written about the file, by name.
fn outputs(home: &Path, more: &[&str]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for arguments in [
        &["scan", "s.jsonl", "-p", "doom-loop"][..],
        &["scan", "s.jsonl", "-p", "doom-loop", "--json"],
        &["scan", "s.jsonl", "-p", "doom-loop", "--csv"],
        &["scan", "s.jsonl", "-p", "signature", "--html", "r.html"],
        &["show", "s.jsonl", "-p", "behavioral", "--all"],
        &["compare", "--a", "doom-loop", "--b", "turn-hash", "s.jsonl"],
        &["compare", "--a", "doom-loop", "--b", "turn-hash", "s.jsonl", "--json"],
    ] {
        for columns in ["50", "120"] {
            let output = run(deloop(home).args(arguments).args(more).env("COLUMNS", columns), b"");
            assert_eq!(
                output.status.code(),
                Some(0),
                "{arguments:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            let text = [output.stdout, output.stderr].concat();
            all.push((format!("{arguments:?} {columns}"), String::from_utf8(text).unwrap()));
        }
    }
    let page = std::fs::read_to_string(home.join("r.html")).unwrap();
    all.push(("the page".to_owned(), page));
    all
}

#[test]
fn nothing_from_a_transcript_acts_and_no_secret_is_shown() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("s.jsonl"), hostile()).unwrap();
    for (name, text) in outputs(home.path(), &[]) {
        assert!(text.contains("ARGUMENT") || name.ends_with("50"), "{name} shows the call: {text}");
        assert!(!text.contains("abcdefghijkl"), "{name} shows a secret: {text}");
        assert!(!text.contains("hunter2hunter2"), "{name} shows a password: {text}");
        for bad in ['\u{1b}', '\u{9b}', '\u{7}', '\u{202e}', '\u{2066}', '\u{200b}'] {
            assert!(!text.contains(bad), "{name} has {bad:?}");
        }
        if name == "the page" {
            assert_eq!(text.matches("<script").count(), 2, "the data and the page's own");
            assert_eq!(text.matches("</script").count(), 2);
            assert!(!text.contains("<img") && text.contains("&lt;img"), "{name}");
        }
    }
}

#[test]
fn redact_leaves_arguments_and_results_out() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("s.jsonl"), hostile()).unwrap();
    for (name, text) in outputs(home.path(), &["--redact"]) {
        assert!(!text.contains("ARGUMENT") && !text.contains("RESULT"), "{name}: {text}");
        assert!(text.contains("bash"), "{name} still names the tool: {text}");
    }
}

/// The page says itself that nothing may be asked of the network, and asks for nothing.
#[test]
fn the_page_stands_alone() {
    let home = tempfile::tempdir().unwrap();
    let output = run(deloop(home.path()).args(["scan", "--html", "r.html"]), b"");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Wrote the report to r.html."));
    let page = std::fs::read_to_string(home.path().join("r.html")).unwrap();
    assert!(page.contains("default-src 'none'"));
    for outside in ["http://", "https://", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let output = run(deloop(home.path()).args(["scan", "--html", "no/such/folder/r.html"]), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no/such/folder/r.html"));
}
