//! Recognizes secrets by their form: keys of known services, random words, private keys.

use super::names::ending;
use super::providers::PROVIDERS;
use super::shapes::PREFIXES;

pub(super) fn in_key(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=' | b'%' | b':')
}

pub(super) fn in_random(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'/' | b'=')
}

const COUNT: usize = PREFIXES.len() + PROVIDERS.len();

const fn start_of(index: usize) -> usize {
    let prefix = if index < PREFIXES.len() { PREFIXES[index].0 } else { PROVIDERS[index - PREFIXES.len()].0 };
    let prefix = prefix.as_bytes();
    ending(prefix[0], prefix[1])
}

/// Where the prefixes with these first letters begin in [`BY_START`]. Most words start with none of them.
const STARTS: [u16; 1025] = {
    let mut starts = [0; 1025];
    let mut i = 0;
    while i < COUNT {
        starts[start_of(i) + 1] += 1;
        i += 1;
    }
    let mut at = 0;
    while at < 1024 {
        starts[at + 1] += starts[at];
        at += 1;
    }
    starts
};

/// All prefixes, by their first letters.
const BY_START: [u16; COUNT] = {
    let (mut sorted, mut next) = ([0; COUNT], STARTS);
    let mut i = 0;
    while i < COUNT {
        let start = start_of(i);
        sorted[next[start] as usize] = i as u16;
        next[start] += 1;
        i += 1;
    }
    sorted
};

/// Returns the length of the known key prefix that this starts with, if enough follows it.
pub(super) fn prefix_of(word: &[u8]) -> Option<usize> {
    if word.len() < 2 {
        return None;
    }
    let start = ending(word[0], word[1]);
    let (from, to) = (usize::from(STARTS[start]), usize::from(STARTS[start + 1]));
    BY_START[from..to].iter().find_map(|index| {
        let index = usize::from(*index);
        match PREFIXES.get(index) {
            Some((prefix, more)) => is_key(word, prefix, *more, None),
            None => {
                let (prefix, letters, more) = PROVIDERS[index - PREFIXES.len()];
                is_key(word, prefix, more, Some(letters))
            }
        }
        .then_some(prefix_length(index))
    })
}

fn prefix_length(index: usize) -> usize {
    PREFIXES.get(index).map_or_else(|| PROVIDERS[index - PREFIXES.len()].0.len(), |(prefix, _)| prefix.len())
}

/// Returns whether a word starts with this prefix and goes on like a key: with `more` characters, and the given number of
/// letters and digits without a break.
fn is_key(word: &[u8], prefix: &str, more: usize, unbroken: Option<usize>) -> bool {
    let head = word.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()));
    if !head {
        return false;
    }
    // No key is longer, and this check runs for every part of a word.
    let rest = &word[prefix.len()..word.len().min(prefix.len() + 256)];
    // Words of letters are names: `sk-learn-contrib`, `npm_config_loglevel`.
    let length = rest.iter().position(|b| !in_key(*b)).unwrap_or(rest.len());
    let letters = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let opaque = rest[..length].iter().any(u8::is_ascii_digit) || is_jumbled(&rest[..length]);
    match unbroken {
        Some(unbroken) => length >= more && letters >= unbroken && opaque,
        None => {
            length >= more && (opaque || prefix.ends_with('/') || prefix.ends_with('_') && letters >= more)
        }
    }
}

/// Returns the length of the token that this starts with, if it is one of those whose parts have a fixed length: of
/// Terraform (`….atlasv1.…`), Airtable (`pat….…`), Discord (three parts with dots) and Entra (`…8Q~…`).
pub(super) fn shaped_token(word: &[u8]) -> Option<usize> {
    const SHORTEST: usize = 37;
    if word.len() < SHORTEST {
        return None;
    }
    let run = |bytes: &[u8], most: usize| {
        let in_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        bytes.iter().take(most + 1).position(|b| !in_part(b)).unwrap_or(bytes.len().min(most + 1))
    };
    if word[4..].starts_with(b"Q~") && word[3].is_ascii_digit() {
        let rest = word[6..].iter().take(40);
        let length = rest.take_while(|b| b.is_ascii_alphanumeric() || b"_~.-".contains(b)).count();
        return (length >= 31).then_some(6 + length);
    }
    let first = run(word, 28);
    let rest = word.get(first + 1..).filter(|_| word[first] == b'.')?;
    if first == 14 && rest.len() > 8 && rest[..8].eq_ignore_ascii_case(b"atlasv1.") {
        let length = rest[8..].iter().take_while(|b| in_key(**b)).count();
        return (length >= 20).then_some(first + 9 + length);
    }
    if first == 17 && word[..3].eq_ignore_ascii_case(b"pat") {
        let length = rest.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        return (length == 64).then_some(first + 1 + length);
    }
    let second = run(rest, 6);
    let third = rest.get(second + 1..).filter(|_| second == 6 && rest[second] == b'.')?;
    let third = run(third, 45);
    let is_token = (23..=28).contains(&first) && (27..=45).contains(&third) && is_mixed(&word[..first]);
    is_token.then_some(first + second + third + 2)
}

fn is_mixed(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_uppercase) && word.iter().any(u8::is_ascii_lowercase)
}

/// Returns whether a word has capital letters inside, or nothing but capitals.
fn is_jumbled(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_uppercase)
        || word.windows(2).filter(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase()).count() >= 2
}

/// Calls `found` with the start and end of what looks random in a word: long, and alternating between lower case, upper
/// case and digits. Plain hexadecimal numbers and UUIDs identify commits, images and objects more often than keys. So do words
/// without capitals whose parts are short: paths of builds, names of pods.
pub(super) fn random_parts(word: &[u8], mut found: impl FnMut(usize, usize)) {
    let has_capitals = |word: &[u8]| word.iter().any(u8::is_ascii_uppercase);
    let is_random = |word: &[u8]| if has_capitals(word) { alternates(word) } else { has_random_part(word) };
    let parts = || word.split(|b| *b == b'/');
    // A token in a path is one of its parts; in Base64, `/` is part of a token.
    let is_path = || parts().any(is_random) && parts().all(|part| !has_capitals(part) || is_random(part));
    if is_random(word) && !(has_capitals(word) && is_path()) {
        return found(0, word.len());
    }
    if has_capitals(word) {
        let mut start = 0;
        for part in parts() {
            if is_random(part) {
                found(start, start + part.len());
            }
            start += part.len() + 1;
        }
    }
}

/// For words without capitals. Tokens have underscores: `acme_live_…`.
fn has_random_part(word: &[u8]) -> bool {
    word.split(|b| matches!(b, b'/' | b'-')).any(alternates)
}

fn alternates(word: &[u8]) -> bool {
    if word.len() < 20 || is_hex(word) {
        return false;
    }
    let class = |b: u8| match b {
        b'a'..=b'z' => 1_u8,
        b'A'..=b'Z' => 2,
        b'0'..=b'9' => 3,
        _ => 0,
    };
    let (mut changes, mut letters, mut digits, mut capitals) = (0, 0, 0, 0);
    let mut before = 0;
    for byte in word {
        let now = class(*byte);
        letters += usize::from(now != 0);
        digits += usize::from(now == 3);
        capitals += usize::from(now == 2);
        changes += usize::from(now != before && now != 0 && before != 0);
        before = now;
    }
    let joints = word.len() - letters;
    if joints * 6 > word.len() {
        return false;
    }
    let share = changes * 100 / letters.max(1);
    match (capitals, digits) {
        // Letters and digits alone alternate less often.
        (0, _) => digits >= 3 && share >= 25,
        // Names in camel case have few digits, and words of several letters.
        (_, 0 | 1) => share >= 45,
        _ => share >= 40,
    }
}

fn is_hex(word: &[u8]) -> bool {
    word.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-')
}

/// Returns the end of the private key that `text` starts with.
pub(super) fn private_key(text: &str) -> Option<usize> {
    let head = text.get(..text.len().min(64)).unwrap_or(text);
    head.contains("PRIVATE KEY").then(|| {
        let end = text.find("-----END").map_or(text.len(), |at| at + 8);
        let rest = &text[end..];
        end + rest.find("KEY-----").map_or(0, |at| at + 8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_is_found_by_its_first_letters() {
        let of_provider = PROVIDERS.iter().map(|(prefix, _, more)| (*prefix, *more));
        for (prefix, more) in PREFIXES.iter().copied().chain(of_provider) {
            assert_eq!(prefix, prefix.to_ascii_lowercase());
            let token = format!("{prefix}{}", "a1B2".repeat(more / 4 + 8));
            assert!(prefix_of(token.as_bytes()).is_some(), "{token}");
        }
        assert_eq!(prefix_of(b"s"), None);
    }
}
