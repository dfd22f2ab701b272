//! Sessions for the report to show: several weeks, several models, loops of several kinds, and hostile text.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

const MODELS: [&str; 5] = [
    "claude-sonnet-4-5-20250929",
    "claude-opus-4-5-20251101",
    "gpt-5.1-codex",
    "gemini-2.5-pro",
    "house-model",
];
const COMMANDS: [&str; 4] =
    ["cargo test --workspace", "npm run build", "pytest -x tests/test_api.py", "make lint"];
/// Text that must never act.
const HOSTILE: &str =
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>\u{202e}evil\u{1b}[31m";

/// Writes them into a folder, always the same.
pub fn write(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for number in 0..18_u64 {
        let mut file =
            std::io::BufWriter::new(std::fs::File::create(folder.join(format!("{number:02}.jsonl")))?);
        for step in session(number) {
            writeln!(file, "{step}")?;
        }
    }
    Ok(())
}

struct Session {
    id: String,
    model: &'static str,
    time: u64,
    steps: Vec<Value>,
    calls: u64,
}

fn session(number: u64) -> Vec<Value> {
    let spread = number * 2_654_435_761 % 97;
    let mut session = Session {
        id: format!("{:08x}-0000-4000-8000-{number:012}", 0x9e37_79b9_u64 * (number + 1) % 0x1_0000_0000),
        model: MODELS[usize::try_from(number).unwrap_or(0) % MODELS.len()],
        time: 1_769_900_000_000 + (spread % 40) * 86_400_000,
        steps: Vec::new(),
        calls: 0,
    };
    let user = json!({"type": "user", "session": session.id, "ts": session.time, "text": "Please get the build green."});
    session.steps.push(user);
    for k in 0..6 + spread % 50 {
        let path = format!("src/part{k}.rs");
        session.turn(
            &format!("Looking at part {k}."),
            "Read",
            json!({"path": path}),
            k % 9 != 4,
            &format!("fn part{k}() {{}}"),
        );
    }
    match number % 4 {
        0 | 1 => {
            let command = COMMANDS[usize::try_from(spread).unwrap_or(0) % COMMANDS.len()];
            for _ in 0..5 + spread % 16 {
                let output = "error[E0425]: cannot find value `total` in this scope\n --> src/cart.rs:41:9";
                session.turn("Let me run it again.", "bash", json!({"command": command}), false, output);
            }
        }
        2 => {
            for _ in 0..4 + spread % 6 {
                for file in ["cart.ts", "order.ts", "index.ts"] {
                    session.turn(
                        "Reading on.",
                        "Read",
                        json!({"file_path": format!("src/{file}")}),
                        true,
                        "export {}",
                    );
                }
            }
        }
        _ => {
            for _ in 0..6 {
                session.turn(
                    HOSTILE,
                    "web_fetch",
                    json!({"url": format!("https://example.com/{HOSTILE}")}),
                    true,
                    HOSTILE,
                );
            }
        }
    }
    for k in 0..3 + spread % 8 {
        session.turn("Wrapping up.", "Edit", json!({"path": format!("docs/{k}.md")}), true, "ok");
    }
    session.steps
}

impl Session {
    fn turn(&mut self, text: &str, tool: &str, args: Value, ok: bool, output: &str) {
        self.calls += 1;
        self.time += 41_000;
        let (session, ts, id) = (&self.id, self.time, format!("c{}", self.calls));
        let call = json!({"id": id, "tool": tool, "args": args});
        self.steps.push(json!({"type": "turn", "session": session, "ts": ts, "text": text, "calls": [call]}));
        self.steps.push(
            json!({"type": "usage", "session": session, "ts": ts, "model": self.model, "input_tokens": 1800,
            "output_tokens": 240, "cache_read_tokens": 20_000 + 900 * self.calls}),
        );
        self.steps.push(json!({"type": "result", "session": session, "ts": ts + 900, "id": id, "ok": ok, "output": output}));
    }
}
