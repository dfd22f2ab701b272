//! Finds the ends of strings and nested values, and how deep they nest, without recursion and much faster than parsing.

/// Deeper than any agent writes, and shallow enough for the stack of any thread.
pub(crate) const DEEPEST: usize = 512;

/// Returns whether the brackets nest more than [`DEEPEST`] levels deep, which a recursive parser may not survive.
pub(crate) fn is_too_deep(json: &[u8]) -> bool {
    may_nest_deeply(json) && depth(json) > DEEPEST
}

/// Returns whether there are enough opening brackets, in strings or not, for more than [`DEEPEST`] levels.
fn may_nest_deeply(bytes: &[u8]) -> bool {
    const LANES: usize = 64;
    if bytes.len() <= DEEPEST {
        return false;
    }
    // Every line is counted: many bytes are compared at once, each into a counter of its own that cannot overflow.
    let mut opening = 0;
    for block in bytes.chunks(LANES * 255) {
        let mut counts = [0_u8; LANES];
        let rows = block.chunks_exact(LANES);
        let rest = rows.remainder();
        for row in rows {
            counts.iter_mut().zip(row).for_each(|(count, byte)| *count += is_opening(*byte));
        }
        opening += counts.iter().map(|count| usize::from(*count)).sum::<usize>();
        opening += rest.iter().map(|byte| usize::from(is_opening(*byte))).sum::<usize>();
    }
    opening > DEEPEST
}

/// Returns 1 for `[` and `{`, which differ in one bit.
fn is_opening(byte: u8) -> u8 {
    u8::from(byte | 0x20 == b'{')
}

fn depth(bytes: &[u8]) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = after_string(after),
            b'[' | b'{' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

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
    fn depth_is_that_of_brackets_outside_strings() {
        assert_eq!(depth(br#"{"a":[[],{"b":"[[[\"[["}]}"#), 3);
        assert_eq!(depth(b"]]]["), 1);
        assert_eq!(depth(br#"["unfinished [[["#), 1);
        assert!(!is_too_deep("[]".repeat(5000).as_bytes()));
        assert!(is_too_deep("[".repeat(5000).as_bytes()));
        assert!(is_too_deep(format!("{}\"", r#"{"a":"#.repeat(600)).as_bytes()));
    }

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
