//! Recognizes the names of secrets: `DB_PASS`, `apiKey`, `--access-token`.

use super::shapes::{NAME_ENDS, NAME_PAIRS, NAMES};

/// Returns whether this is the name of a secret: `DB_PASS`, `apiKey`, `--access-token`.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    const LONGEST: usize = 64;
    let bytes = name.as_bytes();
    let end = bytes.iter().rposition(u8::is_ascii_alphabetic).map_or(0, |at| at + 1);
    if !(3..=LONGEST).contains(&end) || !ENDS[ending(bytes[end - 2], bytes[end - 1])] {
        return false;
    }
    // The lower-cased parts of `x-api-key`, `xApiKey` or `X_API_KEY`, without trailing numbers.
    let mut lower = [0; LONGEST];
    let (mut first, mut last) = (0..0, 0..0);
    for (at, byte) in bytes[..end].iter().enumerate() {
        lower[at] = byte.to_ascii_lowercase();
        let joint = !byte.is_ascii_alphanumeric();
        let hump = at > 0 && byte.is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
        if (joint || hump) && !last.is_empty() {
            first = last;
            last = at..at;
        }
        if !joint {
            last = if last.is_empty() { at..at + 1 } else { last.start..at + 1 };
        }
    }
    let (first, last) = (&lower[first], &lower[last]);
    NAMES.iter().any(|name| last == name.as_bytes())
        || NAME_ENDS.iter().any(|end| last.ends_with(end.as_bytes()))
        || NAME_PAIRS
            .iter()
            .any(|(end, before)| last == end.as_bytes() && before.iter().any(|word| first == word.as_bytes()))
}

/// Returns the last two letters of a name as a number, ignoring case.
pub(super) const fn ending(one: u8, two: u8) -> usize {
    ((one & 31) as usize) << 5 | (two & 31) as usize
}

/// The endings of secrets' names; most words have none of them.
const ENDS: [bool; 1024] = {
    let mut ends = [false; 1024];
    let mut i = 0;
    while i < NAMES.len() + NAME_ENDS.len() + NAME_PAIRS.len() {
        let name = if i < NAMES.len() {
            NAMES[i].as_bytes()
        } else if i < NAMES.len() + NAME_ENDS.len() {
            NAME_ENDS[i - NAMES.len()].as_bytes()
        } else {
            NAME_PAIRS[i - NAMES.len() - NAME_ENDS.len()].0.as_bytes()
        };
        ends[ending(name[name.len() - 2], name[name.len() - 1])] = true;
        i += 1;
    }
    ends
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in
            ["DB_PASS", "apiKey", "--access-token", "X-Api-Key", "PGPASSWORD", "client_secret", "githubToken"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in
            ["tokenizer", "passes", "author", "path", "compass", "max_tokens", "key", "secretary", "patch"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
