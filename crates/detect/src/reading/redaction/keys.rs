//! Recognizes secrets by their form: keys of known services, random words, private keys.

use super::names::ending;
use super::shapes::PREFIXES;

pub(super) fn in_key(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=' | b'%' | b':')
}

pub(super) fn in_random(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'/' | b'=')
}

/// The first letters of [`PREFIXES`]; most words start with none of them.
const BEGINNINGS: [bool; 1024] = {
    let mut beginnings = [false; 1024];
    let mut i = 0;
    while i < PREFIXES.len() {
        let prefix = PREFIXES[i].0.as_bytes();
        beginnings[ending(prefix[0], prefix[1])] = true;
        i += 1;
    }
    beginnings
};

/// Returns the length of the known key prefix that this starts with, if enough follows it.
pub(super) fn prefix_of(word: &[u8]) -> Option<usize> {
    if word.len() < 2 || !BEGINNINGS[ending(word[0], word[1])] {
        return None;
    }
    let begins = |(prefix, more): &&(&str, usize)| {
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
        length >= *more && (opaque || prefix.ends_with('/') || prefix.ends_with('_') && letters >= *more)
    };
    PREFIXES.iter().find(begins).map(|(prefix, _)| prefix.len())
}

/// Returns whether a word has capital letters inside, or nothing but capitals.
fn is_jumbled(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_uppercase)
        || word.windows(2).filter(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase()).count() >= 2
}

/// Returns whether a word looks random: long, and alternating between lower case, upper case and digits. Plain
/// hexadecimal numbers and UUIDs identify commits, images and objects more often than keys. So do words without capitals
/// whose parts are short: paths of builds, names of pods.
pub(super) fn is_random(word: &[u8]) -> bool {
    if word.iter().any(u8::is_ascii_uppercase) {
        alternates(word)
    } else {
        // Tokens have underscores: `acme_live_…`.
        word.split(|b| matches!(b, b'/' | b'-')).any(alternates)
    }
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
    if digits < 2 || joints * 6 > word.len() {
        return false;
    }
    // Letters and digits alone alternate less often.
    if capitals > 0 { changes * 100 >= letters * 40 } else { digits >= 4 && changes * 100 >= letters * 25 }
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
