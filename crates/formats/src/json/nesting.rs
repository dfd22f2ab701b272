//! How deep JSON nests, found without recursion and much faster than by parsing.

/// Deeper than any agent writes, and shallow enough for the stack of any thread.
const DEEPEST: usize = 512;

/// Whether the brackets nest too deeply for a parser that recurses.
pub(crate) fn is_too_deep(json: &[u8]) -> bool {
    may_nest_deeply(json) && depth(json) > DEEPEST
}

/// Whether there are enough opening brackets, in strings or not, for more than [`DEEPEST`] levels.
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

/// 1 for `[` and `{`, which differ in one bit.
fn is_opening(byte: u8) -> u8 {
    u8::from(byte | 0x20 == b'{')
}

/// How deep the brackets nest.
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

/// What follows a string, given what follows its opening quote.
pub(crate) fn after_string(text: &[u8]) -> &[u8] {
    let is_end = |at: &usize| {
        let before = text.get(..*at).unwrap_or_default();
        before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
    };
    let end = memchr::memchr_iter(b'"', text).find(is_end);
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
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
    }
}
