//! Makes untrusted text fit for people's screens and for the markup of a service.

/// How much of a text is looked at, in bytes.
const READ: usize = 16 << 10;

/// Returns one line of at most `room` characters, without secrets, control characters and invisible ones.
pub(crate) fn plain(text: &str, room: usize) -> String {
    let mut end = text.len().min(READ);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    deloop_detect::clean(&deloop_detect::redact(&text[..end]), room)
}

/// Returns as much of a text as fits into `room` UTF-16 units once each character is escaped. Services count
/// characters in different ways; none of them counts more than these units.
pub(crate) fn fit(text: &str, room: usize, escape: impl Fn(char, &mut String)) -> String {
    let (mut out, mut used) = (String::new(), 0);
    let mut before_last = (0, 0);
    let mut one = String::new();
    for c in text.chars() {
        one.clear();
        escape(c, &mut one);
        let units = one.encode_utf16().count();
        if used + units > room {
            // Room for the ellipsis: without the last character, if it took the last unit.
            if used + 1 > room {
                out.truncate(before_last.0);
            }
            if room > 0 {
                out.push('…');
            }
            return out;
        }
        before_last = (out.len(), used);
        out.push_str(&one);
        used += units;
    }
    out
}

/// Returns the length that [`fit`] counts.
pub(crate) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(c: char, out: &mut String) {
        if c == '*' {
            out.push('\\');
        }
        out.push(c);
    }

    #[test]
    fn an_escape_is_never_cut_in_half() {
        for text in ["*****", "a*a*a*", "𝄞𝄞𝄞", "aaaaaa"] {
            for room in 0..12 {
                let cut = fit(text, room, double);
                assert!(units(&cut) <= room, "{text} in {room}: {cut}");
                assert!(!cut.trim_end_matches('…').ends_with('\\'), "{text} in {room}: {cut}");
                let whole = fit(text, 100, double);
                assert!(cut == whole || room == 0 || cut.ends_with('…'), "{text} in {room}: {cut}");
            }
        }
    }

    #[test]
    fn plain_text_has_no_secrets_and_no_lines() {
        let text = "a\nb\u{202e} AKIAIOSFODNN7EXAMPLE token=ghp_abcdefghijklmnopqrstuvwxyz0123456789";
        let shown = plain(text, 200);
        assert!(
            shown.starts_with("a b ") && !shown.contains("ghp_abc") && !shown.contains("AKIA"),
            "{shown}"
        );
    }
}
