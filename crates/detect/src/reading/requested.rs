//! Detects whether a person asked for something to be done several times.

/// Longer messages cover many things; a number in them is rarely an order.
const LONGEST: usize = 800;
/// The count used for "keep checking".
const MANY: u64 = 30;

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

/// Verbs that start an order.
const ORDERS: &[&str] = &[
    "run", "rerun", "repeat", "do", "execute", "call", "try", "check", "poll", "invoke", "send", "play",
    "keep",
];

/// Returns how often this message asks for one thing to be done: 0 unless a sentence starts with an order and names a
/// number of times, or asks to keep doing something.
pub(crate) fn requested_times(text: &str) -> u64 {
    if text.len() > LONGEST {
        return 0;
    }
    let lower = text.to_lowercase();
    // A full stop inside a name, as in `./run.sh`, ends no sentence.
    let sentences = lower.split(['!', '?', ';', ',', '\n']).flat_map(|part| part.split(". "));
    sentences.map(in_sentence).max().unwrap_or(0)
}

fn in_sentence(sentence: &str) -> u64 {
    let words: Vec<&str> =
        sentence.split(|c: char| !c.is_alphanumeric() && c != '×').filter(|w| !w.is_empty()).collect();
    let polite = ["please", "then", "and", "now", "can", "could", "you", "i", "want", "to", "let", "s"];
    let Some(first) = words.iter().position(|w| !polite.contains(w)) else { return 0 };
    if !ORDERS.contains(&words[first]) {
        return 0;
    }
    if words[first] == "keep" {
        return if words.get(first + 1).is_some_and(|w| w.ends_with("ing")) { MANY } else { 0 };
    }
    let number = |word: &str| {
        let named = || NUMBERS.iter().find(|(name, _)| *name == word).map(|(_, n)| *n);
        word.trim_end_matches(['x', '×']).parse().ok().or_else(named).filter(|n| (2..=10_000).contains(n))
    };
    let times = |word: &str| matches!(word, "times" | "runs" | "iterations" | "rounds" | "repetitions");
    let pairs = words.iter().zip(words.iter().skip(1).map(Some).chain([None]));
    let asked = pairs.filter_map(|(word, next)| {
        let n = number(word)?;
        let counts =
            next.is_some_and(|w| times(w) || *w == "more") || word.ends_with(['x', '×']) || *word == "twice";
        counts.then_some(n)
    });
    let every = words.windows(2).any(|w| w[0] == "every" && number(w[1]).is_some())
        || sentence.contains("every minute");
    asked.max().unwrap_or(if every { MANY } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_orders_count() {
        for (text, expected) in [
            ("Run it 12 times, one by one.", 12),
            ("Please run the benchmark alternately four times each", 4),
            ("do 20x and tell me", 20),
            ("Look at it. Run ./measure.sh 60 times.", 60),
            ("Check the queue every 5 minutes.", MANY),
            ("Keep checking until the build is through", MANY),
            ("The build failed 10 times yesterday", 0),
            ("Indent every second line", 0),
            ("I want to raise it to 10 attempts.", 0),
            ("Fix the 3 failing tests", 0),
            ("", 0),
        ] {
            assert_eq!(requested_times(text), expected, "{text}");
        }
    }
}
