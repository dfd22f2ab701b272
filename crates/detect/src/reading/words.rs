use serde::{Deserialize, Serialize};

use crate::short_hash;

/// Maximum number of words in a set. Later words of a text are left out of the comparison.
const MOST: usize = 4096;

/// A set of words, as sorted hashes.
///
/// ```
/// use deloop_detect::Words;
/// let a = Words::of_text("check price and decide trade");
/// let b = Words::of_text("check price and decide on trade");
/// assert!((a.jaccard(&b) - 5.0 / 6.0).abs() < 1e-9);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Words(Vec<u64>);

impl Words {
    /// Returns the lower-cased words of a text, split at white space.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        // Python's str.split, which the turn-similarity profile follows, splits at these separators too.
        let space = |c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c);
        let mut lower = String::new();
        Self::collect(text.split(space).filter(|w| !w.is_empty()).map(|word| {
            if word.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
                return short_hash(word.as_bytes());
            }
            lower.clear();
            lower.extend(word.chars().flat_map(char::to_lowercase));
            short_hash(lower.as_bytes())
        }))
    }

    /// Returns the words of normalized JSON: maximal runs without white space or JSON punctuation.
    #[must_use]
    pub fn of_json(text: &str) -> Self {
        let cut = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | '[' | ']' | '"' | ',' | ':');
        Self::collect(text.split(cut).filter(|w| !w.is_empty()).map(|w| short_hash(w.as_bytes())))
    }

    fn collect(hashes: impl Iterator<Item = u64>) -> Self {
        let mut words: Vec<u64> = hashes.take(4 * MOST).collect();
        words.sort_unstable();
        words.dedup();
        words.truncate(MOST);
        words.shrink_to_fit();
        Self(words)
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the share of words that both have in common, 0 to 1. For two empty sets it is 0.
    #[must_use]
    pub fn jaccard(&self, other: &Self) -> f64 {
        let (mut i, mut j, mut both) = (0, 0, 0_usize);
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            both += usize::from(a == b);
            i += usize::from(a <= b);
            j += usize::from(b <= a);
        }
        let all = self.0.len() + other.0.len() - both;
        #[expect(clippy::cast_precision_loss, reason = "sets are small")]
        if all == 0 { 0.0 } else { both as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    proptest::proptest! {
        #[test]
        fn agrees_with_sets_of_strings(a in "[abC ]{0,30}", b in "[abC ]{0,30}") {
            let set = |t: &str| t.to_lowercase().split_whitespace().map(str::to_owned).collect::<HashSet<_>>();
            let (x, y) = (set(&a), set(&b));
            let all = x.union(&y).count();
            let expected = if all == 0 { 0.0 } else { x.intersection(&y).count() as f64 / all as f64 };
            let found = Words::of_text(&a).jaccard(&Words::of_text(&b));
            proptest::prop_assert!((expected - found).abs() < 1e-12);
        }
    }
}
