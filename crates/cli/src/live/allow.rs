//! `deloop allow`: calls that are not looked at.

use std::io::Write;

use deloop_detect::telling_argument;
use deloop_types::Call;
use glob::Pattern;

use super::args::AllowArgs;
use crate::exit::{self, Failure};
use crate::state::{State, now};

pub(crate) fn run(args: &AllowArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let state = State::here()?;
    let told = |e: deloop_store::StoreError| Failure::new(e.to_string());
    let Some(pattern) = &args.pattern else {
        let allowed = match state.existing()? {
            Some(store) => store.allowed().map_err(told)?,
            None => Vec::new(),
        };
        for pattern in &allowed {
            writeln!(out, "{}", deloop_detect::clean(pattern, 400))?;
        }
        if allowed.is_empty() {
            writeln!(out, "nothing is allowed: every call is looked at")?;
        }
        return Ok(exit::OK);
    };
    let store = state.open()?;
    if args.remove {
        if !store.disallow(pattern).map_err(told)? {
            return Err(Failure::new(format!(
                "`{pattern}` is not allowed; `deloop allow --list` shows what is"
            )));
        }
        writeln!(out, "calls of `{pattern}` are looked at again")?;
        return Ok(exit::OK);
    }
    let (tool, text) = parts(pattern);
    for part in [tool, text] {
        Pattern::new(part).map_err(|e| {
            Failure::new(format!("`{part}` is not a pattern ({e}): `*` and `?` stand for any text and one character, `[[]` for a bracket"))
        })?;
    }
    store.allow(pattern, now()).map_err(told)?;
    writeln!(
        out,
        "calls of `{pattern}` are not looked at any more; `deloop allow --remove '{pattern}'` undoes it"
    )?;
    Ok(exit::OK)
}

/// Whether a call is one that a person allowed.
pub(crate) fn matches(allowed: &[String], call: &Call) -> bool {
    let about = telling_argument(&call.args);
    allowed.iter().any(|pattern| {
        let (tool, rest) = parts(pattern);
        is_like(tool, &call.tool) && is_like(rest, &about)
    })
}

/// The tool's pattern, and that of its arguments: anything where there is none.
fn parts(pattern: &str) -> (&str, &str) {
    match pattern.trim().split_once(char::is_whitespace) {
        Some((tool, rest)) => (tool, rest.trim_start()),
        None => (pattern.trim(), "*"),
    }
}

fn is_like(pattern: &str, text: &str) -> bool {
    Pattern::new(pattern).is_ok_and(|pattern| pattern.matches(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_and_arguments_both_count() {
        let call =
            |tool: &str, command: &str| Call::new(tool.to_owned(), json!({"command": command, "timeout": 5}));
        let allowed =
            |pattern: &str, tool: &str, command: &str| matches(&[pattern.to_owned()], &call(tool, command));
        assert!(allowed("Bash npm run watch*", "Bash", "npm run watch --port 1"));
        assert!(!allowed("Bash npm run watch*", "Bash", "npm run build"));
        assert!(!allowed("Bash npm run watch*", "Shell", "npm run watch"));
        assert!(allowed("mcp__ci__status", "mcp__ci__status", "anything (at all)"));
        assert!(allowed("mcp__ci__*", "mcp__ci__status", ""));
        assert!(!allowed("Bash ls", "Bash", "ls /tmp"));
        assert!(allowed("Bash ls (a)", "Bash", "ls (a)"));
    }
}
