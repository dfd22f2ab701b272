//! Sessions in the shape that Claude Code writes, made up: the mix of records and their sizes is that of real ones.
//!
//! Three fifths of the bytes are results of tools, each told twice (for the model and for the screen); a message of the
//! model comes as several lines of one id, with its thinking and what it used.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

/// Changes when the data does, so that old data is made anew.
const VERSION: &str = "1";
const WORDS: &str = "the of value return error function test result file path module option state when where match \
    order cart total price index buffer stream parse write read handler request response config default cache user \
    session token length offset build cargo src main lib self let const struct impl async await import export type \
    interface number string boolean null undefined throw catch finally while for each map filter reduce collect";

/// Makes so many sessions of half a megabyte on average, half of them in `a` and half in `b`, unless they are there.
/// Returns how many bytes there are.
pub(crate) fn make(folder: &Path, sessions: u64) -> std::io::Result<u64> {
    made(folder, || {
        for number in 0..sessions {
            let half = folder.join(if number % 2 == 0 { "a" } else { "b" });
            std::fs::create_dir_all(&half)?;
            // From 60 KB to 2 MB, most of them small.
            let size = [60, 110, 160, 230, 320, 420, 560, 760, 1040, 1560][(number / 2 % 10) as usize] * 1000;
            let id = uuid(number);
            let mut file = BufWriter::new(File::create(half.join(format!("{id}.jsonl")))?);
            Writer::new(number, id).fill(size, &mut file)?;
            file.flush()?;
        }
        Ok(())
    })
}

/// Makes one session of at least this size.
pub(crate) fn make_one(folder: &Path, size: u64) -> std::io::Result<u64> {
    made(folder, || {
        std::fs::create_dir_all(folder)?;
        let id = uuid(0xbeef);
        let mut file = BufWriter::new(File::create(folder.join(format!("{id}.jsonl")))?);
        Writer::new(0xbeef, id).fill(size, &mut file)?;
        file.flush()
    })
}

fn made(folder: &Path, make: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<u64> {
    let mark = folder.join("version");
    if !std::fs::read_to_string(&mark).is_ok_and(|text| text == VERSION) {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder)?;
        make()?;
        std::fs::write(mark, VERSION)?;
    }
    Ok(crate::files(folder).iter().map(|f| std::fs::metadata(f).map_or(0, |m| m.len())).sum())
}

fn uuid(number: u64) -> String {
    let a = mix(number);
    let b = mix(a);
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        b >> 52,
        b & 0xffff_ffff_ffff
    )
}

fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

struct Writer {
    seed: u64,
    id: String,
    words: Vec<&'static str>,
    records: u64,
    parent: Option<String>,
    time: i64,
    written: u64,
    /// In a loop: so many turns of it are left.
    stuck: u64,
}

impl Writer {
    fn new(number: u64, id: String) -> Self {
        Self {
            seed: mix(number ^ 0x5eed),
            id,
            words: WORDS.split_whitespace().collect(),
            records: 0,
            parent: None,
            time: 1_767_225_600_000 + i64::try_from(number % 4000).unwrap_or(0) * 7_200_000,
            written: 0,
            stuck: 0,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed = mix(self.seed);
        self.seed % below
    }

    /// Prose or code of about this many bytes.
    fn text(&mut self, size: u64) -> String {
        let size = usize::try_from(size).unwrap_or(0);
        let mut out = String::with_capacity(size + 16);
        while out.len() < size {
            let index = usize::try_from(self.random(self.words.len() as u64)).unwrap_or(0);
            out.push_str(self.words[index]);
            match self.random(14) {
                0 => out.push_str(";\n    "),
                1 => out.push_str(" = \""),
                2 => out.push_str("\",\n\t"),
                3 => out.push_str(" → "),
                4 => out.push_str(&format!("({})", self.seed % 1000)),
                _ => out.push(' '),
            }
        }
        out
    }

    /// Writes turns until there are so many bytes.
    fn fill(&mut self, size: u64, out: &mut dyn Write) -> std::io::Result<()> {
        let prompt = self.text(400);
        self.record(json!({"type": "user", "message": {"role": "user", "content": prompt}}), out)?;
        let mut turns = 0;
        while self.written < size {
            turns += 1;
            if turns % 40 == 0 {
                let prompt = self.text(300);
                self.record(json!({"type": "user", "message": {"role": "user", "content": prompt}}), out)?;
            }
            if self.random(700) == 0 {
                self.stuck = 5 + self.random(8);
            }
            self.turn(out)?;
        }
        Ok(())
    }

    fn turn(&mut self, out: &mut dyn Write) -> std::io::Result<()> {
        let message = format!("msg_{:016x}", mix(self.seed ^ self.records));
        let usage = json!({"input_tokens": 3, "cache_creation_input_tokens": self.random(9000),
            "cache_read_input_tokens": 20_000 + self.random(90_000), "output_tokens": self.random(900),
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": self.random(9000)},
            "service_tier": "standard"});
        if self.random(4) == 0 {
            let size = 300 + self.random(2500);
            let thinking = self.text(size);
            let signature = format!("{:016x}", self.seed).repeat(30);
            let block = json!({"type": "thinking", "thinking": thinking, "signature": signature});
            self.assistant(&message, &usage, &block, out)?;
        }
        if self.random(2) == 0 {
            let size = 60 + self.random(500);
            let text = self.text(size);
            self.assistant(&message, &usage, &json!({"type": "text", "text": text}), out)?;
        }
        let call = format!("toolu_{:016x}", mix(self.seed ^ 0xca11 ^ self.records));
        let (name, input, result, screen, failed) = self.call();
        let block = json!({"type": "tool_use", "id": call, "name": name, "input": input});
        self.assistant(&message, &usage, &block, out)?;
        if name == "Bash" {
            for _ in 0..self.random(3) {
                let progress = json!({"type": "progress", "toolUseID": call,
                    "data": {"type": "bash_progress", "output": self.text(300), "elapsedTimeSeconds": self.random(90)}});
                self.record(progress, out)?;
            }
        }
        let mut block = json!({"tool_use_id": call, "type": "tool_result", "content": result});
        if failed {
            block["is_error"] = true.into();
        }
        let content = json!({"role": "user", "content": [block]});
        self.record(json!({"type": "user", "message": content, "toolUseResult": screen}), out)?;
        if name == "Edit" {
            let snapshot = json!({"type": "file-history-snapshot", "messageId": uuid(self.seed), "isSnapshotUpdate": true,
                "snapshot": {"messageId": uuid(self.seed), "trackedFileBackups": {"src/main.rs": {"backupFileName": "a@v1", "version": 1}}}});
            self.written += line(&snapshot, out)?;
        }
        Ok(())
    }

    /// A tool, its arguments, what came back to the model and to the screen, and whether it failed.
    fn call(&mut self) -> (&'static str, Value, Value, Value, bool) {
        if self.stuck > 0 {
            self.stuck -= 1;
            let output = "error[E0425]: cannot find value `total` in this scope\n --> src/cart.rs:41:9";
            let input = json!({"command": "cargo test --workspace", "description": "Run the tests"});
            return (
                "Bash",
                input,
                format!("Exit code 101\n{output}").into(),
                format!("Error: Exit code 101\n{output}").into(),
                true,
            );
        }
        let number = self.random(500);
        let word = &self.words[usize::try_from(self.seed % 40).unwrap_or(0)];
        let file = format!("/home/dev/shop/src/{word}_{number}.rs");
        match self.random(10) {
            0..4 => {
                let size = 1000 + self.random(14_000);
                let content = self.text(size);
                let numbered: String =
                    content.lines().enumerate().map(|(n, l)| format!("{:>6}→{l}\n", n + 1)).collect();
                let screen = json!({"type": "text", "file": {"filePath": file, "content": content, "numLines": 90, "startLine": 1, "totalLines": 90}});
                ("Read", json!({"file_path": file}), numbered.into(), screen, false)
            }
            4..7 => {
                let (size, command) = (200 + self.random(6000), self.text(60));
                let output = self.text(size);
                let failed = self.random(8) == 0;
                let screen = json!({"stdout": output, "stderr": "", "interrupted": false, "isImage": false});
                let result = if failed { format!("Exit code 1\n{output}") } else { output };
                ("Bash", json!({"command": command, "description": "Look"}), result.into(), screen, failed)
            }
            7 | 8 => {
                let (old, new) = (self.text(300), self.text(350));
                let size = 2000 + self.random(16_000);
                let original = self.text(size);
                let screen = json!({"filePath": file, "oldString": old, "newString": new, "originalFile": original,
                    "structuredPatch": [{"oldStart": 1, "oldLines": 9, "newStart": 1, "newLines": 11, "lines": new.lines().collect::<Vec<_>>()}]});
                let result = format!(
                    "The file {file} has been updated. Here's the result of running `cat -n`:\n{new}"
                );
                (
                    "Edit",
                    json!({"file_path": file, "old_string": old, "new_string": new}),
                    result.into(),
                    screen,
                    false,
                )
            }
            _ => {
                let size = 300 + self.random(4000);
                let found = self.text(size);
                let pattern = self.text(20);
                let screen = json!({"mode": "content", "numFiles": 0, "filenames": [], "content": found, "numLines": 40});
                ("Grep", json!({"pattern": pattern, "output_mode": "content"}), found.into(), screen, false)
            }
        }
    }

    fn assistant(
        &mut self,
        message: &str,
        usage: &Value,
        block: &Value,
        out: &mut dyn Write,
    ) -> std::io::Result<()> {
        let message = json!({"model": "claude-opus-4-5-20251101", "id": message, "type": "message", "role": "assistant",
            "content": [block], "stop_reason": null, "stop_sequence": null, "usage": usage});
        let request = format!("req_{:016x}", mix(self.records));
        self.record(json!({"type": "assistant", "message": message, "requestId": request}), out)
    }

    /// A record with what every record has.
    fn record(&mut self, mut record: Value, out: &mut dyn Write) -> std::io::Result<()> {
        self.records += 1;
        self.time += 700 + i64::try_from(self.random(20_000)).unwrap_or(0);
        let own = uuid(mix(self.seed ^ self.records));
        let common = [
            ("parentUuid", self.parent.replace(own.clone()).map_or(Value::Null, Value::String)),
            ("isSidechain", false.into()),
            ("userType", "external".into()),
            ("cwd", "/home/dev/shop".into()),
            ("sessionId", self.id.clone().into()),
            ("version", "2.1.50".into()),
            ("gitBranch", "main".into()),
            ("uuid", own.into()),
            ("timestamp", deloop_types::Millis(self.time).to_string().into()),
        ];
        if let Value::Object(map) = &mut record {
            map.extend(common.map(|(key, value)| (key.to_owned(), value)));
        }
        self.written += line(&record, out)?;
        Ok(())
    }
}

fn line(record: &Value, out: &mut dyn Write) -> std::io::Result<u64> {
    let mut text = serde_json::to_vec(record)?;
    text.push(b'\n');
    out.write_all(&text)?;
    Ok(text.len() as u64)
}
