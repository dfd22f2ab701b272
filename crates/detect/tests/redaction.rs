//! How many tokens of known providers, and how many random ones, [`redact`] masks.

#![expect(clippy::print_stdout, reason = "prints the figures of docs/redaction.md")]

use std::collections::BTreeMap;

use deloop_detect::redact;
use regex_syntax::hir::{Class, Hir, HirKind};

const TOKENS: &str = include_str!("data/betterleaks-tokens.tsv");
/// Tokens of each rule.
const SAMPLES: u32 = 20;
/// The rules of which fewer than half of the tokens are masked: their tokens look like ordinary words and numbers.
const WEAK: [&str; 2] = ["cloudinary-api-key", "zoho-zapi-key.1"];

/// splitmix64, so that every run makes the same tokens.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u32::try_from((z ^ (z >> 31)) % u64::from(end.max(1))).unwrap()
    }

    /// Appends a text that this form matches; each character of a class is as likely as the others.
    fn write(&mut self, form: &Hir, out: &mut String) {
        match form.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).unwrap()),
            HirKind::Class(Class::Unicode(class)) => {
                let size = |range: &regex_syntax::hir::ClassUnicodeRange| {
                    u32::from(range.end()) - u32::from(range.start()) + 1
                };
                let mut at = self.below(class.iter().map(size).sum());
                let range = class.iter().find(|range| {
                    let is_in = at < size(range);
                    at -= if is_in { 0 } else { size(range) };
                    is_in
                });
                out.push(char::from_u32(u32::from(range.unwrap().start()) + at).unwrap());
            }
            HirKind::Class(Class::Bytes(_)) => unreachable!("the forms are text"),
            HirKind::Repetition(repeated) => {
                let most = repeated.max.unwrap_or(repeated.min + 24);
                for _ in 0..repeated.min + self.below(most - repeated.min + 1) {
                    self.write(&repeated.sub, out);
                }
            }
            HirKind::Capture(capture) => self.write(&capture.sub, out),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.write(part, out)),
            HirKind::Alternation(parts) => {
                let at = self.below(u32::try_from(parts.len()).unwrap());
                self.write(&parts[at as usize], out);
            }
        }
    }
}

/// Returns tokens of this form.
fn samples(random: &mut Random, form: &str, count: u32) -> Vec<String> {
    let form = regex_syntax::parse(form).unwrap_or_else(|error| panic!("{form}: {error}"));
    let sample = |_| {
        let mut token = String::new();
        random.write(&form, &mut token);
        token
    };
    (0..count).map(sample).collect()
}

/// Returns a command with a token: in a header, or behind the name that the rule asks for.
fn command(kind: &str, rule: &str, token: &str) -> String {
    if kind == "plain" {
        return format!("curl -H 'x: {token}' y");
    }
    let name = rule.trim_end_matches(".1").trim_end_matches(".2").replace('-', "_").to_uppercase();
    format!("export {name}={token}")
}

#[test]
fn tokens_of_known_providers_are_masked() {
    let mut random = Random(1);
    let (mut all, mut masked, mut rules) = (0, 0, BTreeMap::new());
    for line in TOKENS.lines().filter(|line| !line.starts_with('#')) {
        let [kind, rule, form] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let found = samples(&mut random, form, SAMPLES).into_iter().filter(|token| {
            let end = token.char_indices().nth(token.chars().count() / 2).map_or(0, |(at, _)| at);
            !redact(&command(kind, rule, token)).contains(&token[end..])
        });
        let found = u32::try_from(found.count()).unwrap();
        (all, masked) = (all + SAMPLES, masked + found);
        rules.insert(rule, found);
    }
    println!("{masked} of {all} tokens of {} rules", rules.len());
    let missed: Vec<_> = rules.iter().filter(|(_, found)| **found < SAMPLES).collect();
    println!("not all of: {missed:?}");
    assert!(rules.len() > 350 && masked * 100 >= all * 98, "{masked} of {all}");
    let weak: Vec<&str> = missed.iter().filter(|(_, n)| **n < SAMPLES / 2).map(|(rule, _)| **rule).collect();
    assert_eq!(weak, WEAK);
}

#[test]
fn random_tokens_of_20_characters_and_more_are_masked() {
    let mut random = Random(2);
    for (form, least) in [
        ("[A-Za-z0-9]{20}", 94),
        ("[A-Za-z0-9]{32}", 97),
        ("[A-Za-z0-9_-]{32}", 96),
        ("[A-Za-z0-9+/]{40}", 97),
        ("[a-z0-9]{24}", 91),
    ] {
        let is_masked = |token: &&String| !redact(&format!("use {token} now")).contains(&token[5..15]);
        let masked = samples(&mut random, form, 2000).iter().filter(is_masked).count();
        println!("{form}: {masked} of 2000");
        assert!(masked >= 20 * least, "{form}: {masked} of 2000");
    }
}
