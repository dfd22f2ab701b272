//! The small world that made-up calls and texts are about.

use serde_json::{Value, json};

use super::{Rng, Scene};

const WORDS: [&str; 24] = [
    "check", "price", "and", "decide", "trade", "current", "make", "look", "data", "more", "need", "Start",
    "framing", "plan", "größe", "数据", "Été", "again", "then", "with", "Index", "value", "over", "file's",
];

/// One call out of a small world.
pub(super) fn plain_call(rng: &mut Rng, shell: &str) -> Value {
    let path = rng.pick(&["src/auth.py", "/work/src/main.rs", "C:\\app\\a.ini", "notes.md"]);
    let (tool, args) = match rng.below(9) {
        0 | 1 => ("read_file", json!({ "path": path })),
        2 => (
            "edit_file",
            json!({"file_path": path, "content": rng.pick(&["x = 1", "x = 2"]), "dry_run": rng.percent(30)}),
        ),
        3 => ("grep", json!({"pattern": rng.pick(&["TODO", "fn main"]), "path": path, "flags": ["i"]})),
        4 => (
            shell,
            json!({"command": rng.pick(&["ls -la", "git status", "echo a b; ls", "grep \"a|b\" notes.md"])}),
        ),
        5 => (shell, json!({"command": "git log | head -n 5", "timeout": 1000 * rng.below(2)})),
        6 => (
            "fetch",
            json!({"url": rng.pick(&["https://a.test/p/1", "https://a.test/p/2"]), "retries": rng.below(3)}),
        ),
        7 => ("plan", json!({})),
        _ => (
            "note",
            json!({"topic": rng.pick(&["a", "b"]), "meta": {"z": null, "deep": {"b": true, "a": []}}}),
        ),
    };
    json!({"tool": tool, "args": args})
}

pub(super) fn cycle_turn(rng: &mut Rng, scene: &Scene, at: usize) -> (Option<String>, Vec<Value>) {
    let calls = match rng.below(10) {
        0 => Vec::new(),
        1 => vec![plain_call(rng, scene.shell), plain_call(rng, scene.shell)],
        _ => vec![plain_call(rng, scene.shell)],
    };
    let text = (calls.is_empty() || rng.percent(40)).then(|| format!("Step {at}: let me look."));
    (text, calls)
}

pub(super) fn read(rng: &mut Rng, shell: &str, file: &str) -> Value {
    let quoted = if file.contains('|') || rng.percent(30) { format!("'{file}'") } else { file.to_owned() };
    let verb =
        rng.pick(&["cat", "head", "tail", "head -n 5", "tail -n 20", "head -5", "cat -n", "wc -l", "stat"]);
    let pipe = if rng.percent(12) { " | wc -l" } else { "" };
    let mut args = json!({"command": format!("{verb} {quoted}{pipe}")});
    if rng.percent(25) {
        args["description"] = json!("look again");
    }
    json!({"tool": shell, "args": args})
}

pub(super) fn masked(rng: &mut Rng, kind: usize) -> Value {
    let (a, b) = (rng.next(), rng.next());
    let uuid = format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        a as u32,
        (a >> 32) as u16,
        (a >> 48) as u16,
        b as u16,
        b >> 16
    );
    let uuid = if rng.percent(30) { uuid.to_uppercase() } else { uuid };
    let (day, second) = (10 + rng.below(19), 10 + rng.below(50));
    let zone = rng.pick(&["Z", "+02:00", ".125Z"]);
    let time = format!("2026-03-{day}T08:15:{second}{zone}");
    let folder = rng.pick(&["a", "b/c", "logs/2026"]);
    let number = rng.below(5000);
    let (tool, args) = match kind {
        0 => {
            let path = format!("/srv/{folder}/Report.csv");
            ("export", json!({"path": path, "request": uuid, "at": time, "page": number}))
        }
        1 => {
            let text =
                format!("find user {number} at {time} (id {uuid}) in /var/{folder}/app.log and v2 of it");
            ("logs", json!({ "query": text }))
        }
        2 => {
            let url =
                format!("https://a.test/users/{number}/jobs/{uuid}?page={}&since={time}", rng.below(30));
            ("fetch", json!({ "url": url, "accept": "text/html" }))
        }
        _ => {
            let join = rng.pick(&["-", "_", ".", ""]);
            let hour = rng.pick(&["", "T10:20", "_10-20-30", " 10:20:30.5", "-1"]);
            let name = rng.pick(&["page_1", "v2", "file1"]);
            let path = format!("/tmp/{folder}/{name}{join}2026-03-{day}{hour}{join}{uuid}.json");
            ("read", json!({"path": path, "lines": number}))
        }
    };
    json!({"tool": tool, "args": args})
}

pub(super) fn sentence(rng: &mut Rng, length: usize) -> Vec<String> {
    (0..length).map(|at| format!("{}{}", rng.pick(&WORDS), letters(at))).collect()
}

/// A number written in letters, so that normalising does not drop it.
pub(super) fn letters(number: usize) -> String {
    let digit = |d: usize| char::from(b'a' + (d % 26) as u8);
    [digit(number / 26), digit(number)].iter().collect()
}
