//! Finds the ends of strings and nested values, without recursion and much faster than parsing.

/// Deeper than any agent writes, and shallow enough for the stack of any thread.
pub(crate) const DEEPEST: usize = 512;

/// Returns the length of a string's text, given what follows its opening quote; `None` when it has no end.
pub(crate) fn string_length(inside: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'"', inside).find(|end| !ends_in_escape(&inside[..*end]))
}

/// Returns what follows a string, given what follows its opening quote; nothing when it has no end.
pub(crate) fn after_string(inside: &[u8]) -> &[u8] {
    string_length(inside).map_or(&[], |length| &inside[length + 1..])
}

/// Returns whether a text ends in a backslash that escapes what follows it.
pub(crate) fn ends_in_escape(text: &[u8]) -> bool {
    text.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Returns what follows the object or list in which `bytes` are `depth` levels deep (0: it begins there); `None` when
/// it has no end.
pub(crate) fn after_nested(bytes: &[u8], mut depth: usize) -> Option<&[u8]> {
    let mut rest = bytes;
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => rest = after_string(after),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(rest);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_the_quote_that_is_not_escaped() {
        assert_eq!(after_string(br#"a\"b",1"#), b",1");
        assert_eq!(after_string(br#"a\\",1"#), b",1");
        assert_eq!(after_string(br#"a\""#), b"");
        assert_eq!((string_length(b"\""), string_length(br#"a\""#)), (Some(0), None));
    }

    #[test]
    fn a_nested_value_ends_with_its_bracket() {
        assert_eq!(after_nested(br#"[{"a":"]"}],1"#, 0), Some(&b",1"[..]));
        assert_eq!(after_nested(b"1]},2", 2), Some(&b",2"[..]));
        assert_eq!((after_nested(b"[[]", 0), after_nested(b"]", 0)), (None, None));
    }
}
