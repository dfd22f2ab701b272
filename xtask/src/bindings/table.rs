//! The table of frameworks in the docs, made from what the tests measured.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

const PAGE: &str = "docs/frameworks/README.md";
const BEGIN: &str = "<!-- Made by `cargo xtask bindings --update` from the tests' runs. -->\n";
const END: &str = "<!-- End of what is made. -->\n";
/// Each framework: the name of its row, how people call it, and its page.
const FRAMEWORKS: [(&str, &str, &str); 11] = [
    ("langchain", "LangChain, LangGraph", "langchain.md"),
    ("openai-agents", "OpenAI Agents SDK", "openai-agents.md"),
    ("pydantic-ai", "Pydantic AI", "pydantic-ai.md"),
    ("claude-agent-sdk", "Claude Agent SDK", "claude-agent-sdk.md"),
    ("openai", "OpenAI client, Python", "openai.md"),
    ("anthropic", "Anthropic client, Python", "anthropic.md"),
    ("ai-7", "AI SDK 7", "ai-sdk.md"),
    ("ai-6", "AI SDK 6", "ai-sdk.md"),
    ("langchain-js", "LangChain.js", "langchain-js.md"),
    ("openai-node", "OpenAI client, Node", "openai-node.md"),
    ("anthropic-node", "Anthropic client, Node", "anthropic-node.md"),
];
/// Each part of a row, and its heading.
const PARTS: [(&str, &str); 7] = [
    ("own_limit", "Own limit, without deloop"),
    ("nudge", "Nudge"),
    ("block", "Block"),
    ("stop", "Stop"),
    ("healthy", "Healthy run of 30 turns"),
    ("crash", "deloop fails inside"),
    ("resume", "Resumed in a new process"),
];

/// Compares the table with the rows that the tests wrote; writes it if `update`.
///
/// # Errors
/// When a row is missing or the table is another.
pub(super) fn check(repository: &Path, rows: &Path, update: bool) -> Result<(), String> {
    let file = repository.join(PAGE);
    let page = std::fs::read_to_string(&file).map_err(|error| format!("{PAGE}: {error}"))?;
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?)));
    let Some((before, (now, after))) = parts else {
        return Err(format!("{PAGE} has no place for the table"));
    };
    let table = table(rows)?;
    if table == now {
        return Ok(());
    }
    if !update {
        return Err(format!(
            "{PAGE} isn't what the runs measured; `cargo xtask bindings --update` writes:\n{table}"
        ));
    }
    std::fs::write(&file, format!("{before}{BEGIN}{table}{END}{after}")).map_err(|error| error.to_string())
}

fn table(rows: &Path) -> Result<String, String> {
    let mut text = String::new();
    for (row, name, page) in FRAMEWORKS {
        let file = rows.join(format!("{row}.json"));
        let read = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let measured: Value =
            serde_json::from_slice(&read).map_err(|error| format!("{}: {error}", file.display()))?;
        let value = |part: &str| {
            measured[part].as_str().map(str::to_owned).ok_or(format!("{}: no `{part}`", file.display()))
        };
        let _ = write!(text, "\n### [{name}]({page}) {}\n\n| | |\n|---|---|\n", value("version")?);
        for (part, heading) in PARTS {
            let _ = writeln!(text, "| {heading} | {} |", value(part)?.replace('|', "\\|").replace('\n', " "));
        }
    }
    text.push('\n');
    Ok(text)
}
