//! The loops as CSV, one a line.

use std::io::Write;

use crate::exit::Failure;
use crate::scan::report::{ActionRow, LoopRow};

const HEAD: &str = "session,file,format,agent,model,project,started,ended,pattern,detector,tool,count,step,first_turn,\
                    last_turn,repeated_turns,actions,action,level,minutes,tokens,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,usd,\
                    unpriced_tokens";

/// Prints a header and one line per loop.
pub(crate) fn print(loops: &[LoopRow], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{HEAD}")?;
    for row in loops {
        let option = |text: &Option<String>| cell(text.as_deref().unwrap_or_default());
        let spend = &row.spend;
        let cells = [
            cell(&row.session),
            cell(&row.file),
            cell(&row.format),
            option(&row.agent),
            option(&row.model),
            option(&row.project),
            option(&row.started),
            option(&row.ended),
            cell(&row.pattern),
            cell(&row.detector),
            option(&row.tool),
            row.count.to_string(),
            row.step.to_string(),
            row.first_turn.to_string(),
            row.last_turn.to_string(),
            row.repeated.len().to_string(),
            cell(&actions(&row.actions)),
            row.action.to_string(),
            row.level.to_string(),
            format!("{:.2}", row.minutes),
            spend.tokens().to_string(),
            spend.input_tokens.to_string(),
            spend.output_tokens.to_string(),
            spend.cache_read_tokens.to_string(),
            spend.cache_write_tokens.to_string(),
            format!("{:.6}", spend.usd),
            spend.unpriced_tokens.to_string(),
        ];
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}

/// Returns actions with their turns: `nudge@4 block@7`.
fn actions(actions: &[ActionRow]) -> String {
    actions.iter().map(|a| format!("{}@{}", a.action, a.turn)).collect::<Vec<_>>().join(" ")
}

/// Returns text as a cell. One that a spreadsheet would take for a formula gets an apostrophe before it.
pub(crate) fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r', '\'']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        assert_eq!(cell("plain"), "plain");
        assert_eq!(cell("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(cell("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
        assert_eq!(cell("@x"), "\"'@x\"");
    }
}
