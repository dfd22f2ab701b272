//! Whether a person asked for the same thing to be done again and again.

/// What a person asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// So many times.
    Times(u64),
    /// For as long as it takes.
    Again,
}

/// Longer messages tell of many things; what counts in them is not an order.
const LONGEST: usize = 800;

const NUMBERS: &[(&str, u64)] = &[
    ("twice", 2),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("dozen", 12),
    ("twelve", 12),
    ("twenty", 20),
    ("fifty", 50),
    ("hundred", 100),
];

/// What this message asks for, if it asks for repetition.
pub(crate) fn asked(text: &str) -> Option<Asked> {
    if text.len() > LONGEST {
        return None;
    }
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric() && c != '×').filter(|w| !w.is_empty()).collect();
    let number = |word: &str| {
        let digits = word.trim_end_matches(['x', '×']);
        let named = || NUMBERS.iter().find(|(name, _)| *name == word).map(|(_, n)| *n);
        digits.parse().ok().or_else(named).filter(|n| (2..=10_000).contains(n))
    };
    let times =
        |word: &str| matches!(word, "times" | "runs" | "iterations" | "rounds" | "repetitions" | "laps");
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let after = words.get(at + 2).copied().unwrap_or_default();
        if let Some(n) = number(word)
            && (times(next) || next == "more" && times(after) || word.ends_with(['x', '×']) && word.len() > 1)
        {
            return Some(Asked::Times(n));
        }
        let keeps = matches!(
            next,
            "running" | "checking" | "polling" | "watching" | "monitoring" | "trying" | "retrying" | "an"
        );
        let period = |w: &str| ["second", "minute", "hour"].iter().any(|p| w.starts_with(p));
        if *word == "keep" && keeps
            || *word == "repeatedly"
            || *word == "every" && (period(next) || period(after))
        {
            return Some(Asked::Again);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_to_repeat_are_understood() {
        for (text, expected) in [
            ("Run it 12 times, one by one.", Some(Asked::Times(12))),
            ("run the benchmark alternately, four times each", Some(Asked::Times(4))),
            ("do 20x and tell me", Some(Asked::Times(20))),
            ("ten more rounds please", Some(Asked::Times(10))),
            ("Check the queue every 5 minutes.", Some(Asked::Again)),
            ("Keep checking until the build is through", Some(Asked::Again)),
            ("I want to raise it to 10 attempts.", None),
            ("Fix the 3 failing tests", None),
            ("use Python 3", None),
            ("", None),
        ] {
            assert_eq!(asked(text), expected, "{text}");
        }
    }
}
