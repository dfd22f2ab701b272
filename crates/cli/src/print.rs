//! Prints everything for people, so that nothing in the output can affect the terminal.
//!
//! Control characters, and characters that change the direction of text or hide it, are shown as
//! `\u001b`. JSON uses the same form, so JSON on a terminal keeps its meaning. Line endings, tabs and deloop's own
//! colors pass.

use std::io::{self, Write};

use crate::args::{Cli, Command};
#[cfg(feature = "serve")]
use crate::budget::BudgetCommand;
use crate::live::args::SwarmCommand;

/// Escapes everything written to it.
pub(crate) struct Escaped<W> {
    inner: W,
    /// Whether colors pass.
    colours: bool,
    /// The beginning of a character whose end hasn't been written yet.
    half: Vec<u8>,
}

/// Returns standard output for this command. Output for programs is written unchanged, unless it goes to a terminal.
pub(crate) fn stdout(cli: &Cli) -> Box<dyn Write> {
    let stdout = io::stdout().lock();
    let escapes = !is_for_programs(&cli.command) || io::IsTerminal::is_terminal(&stdout);
    let buffered = io::BufWriter::with_capacity(64 * 1024, stdout);
    if escapes {
        Box::new(Escaped { inner: buffered, colours: true, half: Vec::new() })
    } else {
        Box::new(buffered)
    }
}

/// Returns the text with everything escaped that could affect a terminal, for a file that people may print.
#[cfg(feature = "serve")]
pub(crate) fn escaped_text(text: &str) -> String {
    escaped(text, false)
}

/// Standard error.
pub(crate) fn stderr() -> Escaped<io::Stderr> {
    Escaped { inner: io::stderr(), colours: false, half: Vec::new() }
}

/// Writes a line to standard error; ignores errors, because there is nowhere left to report them.
pub(crate) fn tell(line: impl std::fmt::Display) {
    // Written in one piece, so that lines of parallel processes don't mix.
    let _ = io::stderr().write_all(escaped(&format!("{line}\n"), false).as_bytes());
}

/// Formats one line for a log, of at most `room` characters, without secrets or anything that affects a terminal.
pub(crate) fn log_line(text: &str, room: usize) -> String {
    let end = text.char_indices().nth(room).map_or(text.len(), |(end, _)| end);
    let cut = if end < text.len() { "…" } else { "" };
    let line = text[..end].replace(['\n', '\r'], " ");
    format!("{}{cut}", escaped(&deloop_detect::redact(&line), false))
}

/// Returns whether the output is data or a document, in which every byte counts.
fn is_for_programs(command: &Command) -> bool {
    match command {
        Command::Scan(args) => args.json || args.csv,
        Command::Compare(args) => args.json,
        Command::Log(args) => args.json,
        #[cfg(feature = "serve")]
        Command::Report(args) => args.json,
        #[cfg(feature = "serve")]
        Command::Budget(args) => matches!(args.command, BudgetCommand::Show { json: true, .. }),
        Command::State(args) => args.json,
        Command::Say(args) => args.json,
        #[cfg(feature = "serve")]
        Command::Audit(args) => args.is_for_programs(),
        Command::Swarm(args) => matches!(args.command, Some(SwarmCommand::Show { json: true, .. })),
        Command::Stream(_)
        | Command::Steps(_)
        | Command::Hook(_)
        | Command::Profiles(_)
        | Command::Schema(_)
        | Command::Completions(_)
        | Command::Man(_) => true,
        _ => false,
    }
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut joined = std::mem::take(&mut self.half);
        joined.extend_from_slice(bytes);
        let mut out = String::with_capacity(joined.len());
        let mut chunks = joined.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            out.push_str(&escaped(chunk.valid(), self.colours));
            let last = chunks.peek().is_none();
            if last && is_half(chunk.invalid()) {
                self.half = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                out.push('\u{fffd}');
            }
        }
        self.inner.write_all(out.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns whether these bytes may be the beginning of a character.
fn is_half(bytes: &[u8]) -> bool {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 0,
    };
    !bytes.is_empty() && bytes.len() < length
}

/// Returns the text with everything escaped that could affect a terminal.
fn escaped(text: &str, colours: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(acts) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let Some(c) = from.chars().next() else { break };
        let length = if colours { colour_length(from) } else { 0 };
        if length > 0 {
            out.push_str(&from[..length]);
            rest = &from[length..];
            continue;
        }
        rest = &from[c.len_utf8()..];
        if c == '\r' && rest.starts_with('\n') {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns whether a terminal does anything but show a character in its place.
fn acts(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns the length of one of deloop's own colors at the beginning of a text, if it hides nothing; 0 without one.
fn colour_length(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\u{1b}[") else { return 0 };
    let Some(end) = codes.bytes().take(16).position(|b| b == b'm') else { return 0 };
    let plain = |code: &str| {
        matches!(code, "" | "0" | "1" | "2" | "3" | "4" | "22" | "23" | "24" | "39")
            || matches!(code, "31" | "32" | "33" | "34" | "35" | "36")
    };
    let harmless = codes[..end].split(';').all(plain)
        || codes[..end]
            .strip_prefix("38;5;")
            .is_some_and(|n| n.parse::<u8>().is_ok_and(|n| (1..=15).contains(&n)));
    if harmless { 2 + end + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[&[u8]], colours: bool) -> String {
        let mut out = Escaped { inner: Vec::new(), colours, half: Vec::new() };
        for piece in pieces {
            out.write_all(piece).unwrap();
        }
        String::from_utf8(out.inner).unwrap()
    }

    #[test]
    fn nothing_acts_on_the_terminal() {
        let text = "a\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\u{202e}b\u{e0041}\rc\r\nd\te\u{7f}";
        let shown = r"a\u001b[2J\u001b]0;x\u0007\u009b31m\u202eb\udb40\udc41\u000dc";
        assert_eq!(written(&[text.as_bytes()], true), format!("{shown}\r\nd\te\\u007f"));
        assert_eq!(written(&[b"\x1b[31mred\x1b[0m"], true), "\u{1b}[31mred\u{1b}[0m");
        assert_eq!(written(&[b"\x1b[31mred\x1b[8mhidden"], false), r"\u001b[31mred\u001b[8mhidden");
        assert_eq!(written(&[b"\x1b[8mhidden"], true), r"\u001b[8mhidden");
    }

    #[test]
    fn characters_may_come_in_pieces() {
        let text = "é€😀";
        for cut in 0..=text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            assert_eq!(written(&[one, other], true), text);
        }
        assert_eq!(written(&[b"a\xffb", b"\xe2\x80", b"\xae"], true), "a\u{fffd}b\\u202e");
    }
}
