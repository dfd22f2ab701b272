use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

/// Writes JSON in which nothing acts on a terminal: control and invisible characters are escaped.
struct SafeFormatter;

impl Formatter for SafeFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(acts) {
            let (before, from) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let Some(c) = from.chars().next() else { break };
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &from[c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

fn acts(c: char) -> bool {
    c.is_control() || deloop_detect::is_invisible(c)
}

/// Returns a value as one line of JSON that is safe to print: control and invisible characters are escaped.
///
/// # Errors
/// When the value can't be written as JSON.
pub fn safe_json(value: &impl Serialize) -> serde_json::Result<String> {
    let mut out = Vec::with_capacity(512);
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, SafeFormatter))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_terminal_and_the_meaning_stays() {
        let text = "a\u{1b}[2J\u{9b}31m\u{202e}é\u{e0041}\r\n\t\"\\漢";
        let line = safe_json(&text).unwrap();
        assert!(!line.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{e0041}', '\r', '\n', '\t']), "{line:?}");
        assert!(line.contains('é') && line.contains('漢'), "{line}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
