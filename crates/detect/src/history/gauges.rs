use serde::{Deserialize, Serialize};

use super::Ring;
use crate::fingerprint::short_hash;

/// Number of calls whose numbers are remembered: those that failed or came again.
const CALLS: usize = 6;
/// Number of numbers remembered of an outcome, the last ones.
const NUMBERS: usize = 3;
/// Maximum number of numbers examined in an outcome, from its end: summaries come last.
const EXAMINED: usize = 16;
/// A number of these isn't progress: a log grows and attempts are counted whatever comes of them.
const NOT_PROGRESS: [&str; 16] = [
    "bytes",
    "kb",
    "kib",
    "mb",
    "mib",
    "gb",
    "gib",
    "lines",
    "chars",
    "characters",
    "attempt",
    "attempts",
    "retries",
    "times",
    "tries",
    "tokens",
];

/// A field with such a word in its name isn't progress either: it changes whatever comes of a call.
const NOT_PROGRESS_FIELDS: [&str; 22] = [
    "id",
    "time",
    "ts",
    "timestamp",
    "date",
    "at",
    "elapsed",
    "duration",
    "age",
    "uptime",
    "seconds",
    "ms",
    "size",
    "length",
    "offset",
    "line",
    "column",
    "port",
    "pid",
    "version",
    "seq",
    "nonce",
];
/// A number alone from here on is a time, in seconds since 1970.
const EPOCH: u32 = 1_000_000_000;

/// The numbers that the last outcomes of some calls counted, so that one that moves shows progress where the words stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Gauges(Ring<CallGauges>);

/// The numbers of one call's last outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CallGauges {
    call: u64,
    numbers: [Gauge; NUMBERS],
}

/// A number and what it counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Gauge {
    /// Hash of the word that says what it counts; 0 if there is no number.
    of: u16,
    value: u32,
    /// The direction in which it has moved: 1, -1, or 0 if it hasn't. 2 if it has moved in both.
    direction: i8,
}

/// A direction in which nothing moves any more.
const BOTH: i8 = 2;

impl Gauges {
    /// Returns whether nothing is remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Enters an outcome of `call`, without its volatile parts. Returns whether a number in it moved for the second time or
    /// more, always in the same direction.
    pub(super) fn enter(&mut self, call: u64, masked: &[u8]) -> bool {
        let mut now = numbers(masked);
        if now[0].of == 0 {
            return false;
        }
        let mut moved = false;
        if let Some(before) = self.0.iter().find(|g| g.call == call) {
            for gauge in now.iter_mut().filter(|gauge| gauge.of != 0) {
                let Some(last) = before.numbers.iter().find(|last| last.of == gauge.of) else { continue };
                let step = i8::from(gauge.value > last.value) - i8::from(gauge.value < last.value);
                gauge.direction = match (last.direction, step) {
                    (direction, 0) => direction,
                    (0, step) => step,
                    (direction, step) if direction == step => step,
                    _ => BOTH,
                };
                moved |= step != 0 && gauge.direction == last.direction && gauge.direction != BOTH;
            }
        }
        self.0.retain(|g| g.call != call);
        self.0.push(CallGauges { call, numbers: now }, CALLS);
        moved
    }
}

/// Returns the last numbers that stand before what they count (`412 problems`, `3 failed`, `34 %`, `1 of 3`, `1/3`), or behind
/// it in a field of JSON (`"remaining": 12`), or the number that is the whole text.
fn numbers(text: &[u8]) -> [Gauge; NUMBERS] {
    let mut found = [Gauge::default(); NUMBERS];
    if let Some(value) = alone(text) {
        found[0] = Gauge { of: 1, value, direction: 0 };
        return found;
    }
    let mut count = 0;
    let (mut end, mut examined) = (text.len(), 0);
    while count < NUMBERS
        && examined < EXAMINED
        && let Some(last) = last_digit(&text[..end])
    {
        let start = text[..last].iter().rposition(|b| !b.is_ascii_digit()).map_or(0, |n| n + 1);
        if let Some(gauge) = gauge(text, start, last + 1)
            && !found.iter().any(|known| known.of == gauge.of)
        {
            found[count] = gauge;
            count += 1;
        }
        (end, examined) = (start, examined + 1);
    }
    found
}

/// Returns the index of the last digit. It looks at whole pieces first, which takes a fraction of the instructions.
fn last_digit(text: &[u8]) -> Option<usize> {
    const PIECE: usize = 64;
    let mut end = text.len();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        let piece = &text[start..end];
        let has_one = piece.iter().fold(0, |any, byte| any | u8::from(byte.is_ascii_digit()));
        if has_one != 0 {
            return piece.iter().rposition(u8::is_ascii_digit).map(|at| start + at);
        }
        end = start;
    }
    None
}

/// Returns the number that a text consists of, unless it is a time.
fn alone(text: &[u8]) -> Option<u32> {
    let digits = text.trim_ascii();
    let number = std::str::from_utf8(digits).ok().filter(|_| digits.len() <= 10)?.parse().ok()?;
    (number < EPOCH).then_some(number)
}

/// Returns the name of the JSON field whose value begins at `start`.
fn field(text: &[u8], start: usize) -> Option<&[u8]> {
    const LONGEST: usize = 40;
    let before = text[start.saturating_sub(LONGEST)..start].trim_ascii_end().strip_suffix(b":")?;
    let name = before.trim_ascii_end().strip_suffix(b"\"")?;
    name.iter().rposition(|b| *b == b'"').map(|quote| &name[quote + 1..])
}

/// Returns whether a field with this name changes whatever comes of a call.
fn is_no_progress(name: &[u8]) -> bool {
    let mut rest = name;
    while !rest.is_empty() {
        // A word ends at a sign, or before a capital letter behind a small one.
        let length = (1..rest.len())
            .find(|at| {
                !rest[*at].is_ascii_alphabetic()
                    || rest[*at].is_ascii_uppercase() && rest[at - 1].is_ascii_lowercase()
            })
            .unwrap_or(rest.len());
        let word = rest[..length].trim_ascii_start();
        let word = word.strip_prefix(b"_").or(word.strip_prefix(b"-")).unwrap_or(word);
        let mut words = NOT_PROGRESS.iter().chain(&NOT_PROGRESS_FIELDS);
        if words.any(|known| word.eq_ignore_ascii_case(known.as_bytes())) {
            return true;
        }
        rest = &rest[length..];
    }
    false
}

fn gauge(text: &[u8], start: usize, end: usize) -> Option<Gauge> {
    if let Some(name) = field(text, start) {
        let value: u32 = std::str::from_utf8(&text[start..end]).ok()?.parse().ok()?;
        let is_whole = !matches!(text.get(end), Some(b'.' | b'e' | b'E'));
        let counts = is_whole && !name.is_empty() && !is_no_progress(name);
        return counts.then(|| Gauge { of: shortened(short_hash(name)), value, direction: 0 });
    }
    // `1.25`, `a:12:5` and `v12` count nothing.
    if start > 0
        && matches!(text[start - 1], b'.' | b':' | b'-' | b'_' | b'#' | b'/' | b'a'..=b'z' | b'A'..=b'Z')
    {
        return None;
    }
    let value: u32 = std::str::from_utf8(&text[start..end]).ok()?.parse().ok()?;
    let rest = &text[end..text.len().min(end + 24)];
    let spaced = rest.first() == Some(&b' ');
    let behind = &rest[usize::from(spaced)..];
    let of = match behind.first()? {
        b'%' => short_hash(b"%"),
        b'/' if !spaced && behind.get(1).is_some_and(u8::is_ascii_digit) => short_hash(b"of"),
        byte if spaced && byte.is_ascii_alphabetic() => {
            let length = behind.iter().take_while(|b| b.is_ascii_alphabetic()).count();
            let word = behind[..length].to_ascii_lowercase();
            let next = behind[length..].split(|b| !b.is_ascii_alphabetic()).find(|w| !w.is_empty());
            let is_size = |w: &[u8]| NOT_PROGRESS.iter().any(|size| w.eq_ignore_ascii_case(size.as_bytes()));
            (!is_size(&word) && !next.is_some_and(is_size)).then(|| short_hash(&word))?
        }
        _ => return None,
    };
    Some(Gauge { of: shortened(of), value, direction: 0 })
}

#[expect(clippy::cast_possible_truncation, reason = "enough to tell a few words apart")]
fn shortened(hash: u64) -> u16 {
    (hash as u16).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deloop_testing::assert_reads_linearly;

    fn has_none(text: &str) -> bool {
        numbers(text.as_bytes())[0].of == 0
    }

    fn moves(outputs: &[&str]) -> Vec<bool> {
        let mut gauges = Gauges::default();
        outputs.iter().map(|text| gauges.enter(1, text.as_bytes())).collect()
    }

    #[test]
    fn a_number_that_moves_in_one_direction_is_progress() {
        let lint =
            ["✖ 412 problems (300 errors)", "✖ 380 problems (300 errors)", "✖ 251 problems (300 errors)"];
        assert_eq!(moves(&lint), [false, false, true]);
        assert_eq!(
            moves(&["1 of 9 ready", "2 of 9 ready", "2 of 9 ready", "4 of 9 ready"]),
            [false, false, false, true]
        );
        assert_eq!(moves(&["at 34 %", "at 57 %", "at 80 %"]), [false, false, true]);
        assert_eq!(moves(&["3 failed", "2 failed", "3 failed", "2 failed"]), [false; 4]);
    }

    #[test]
    fn a_field_and_a_number_alone_move_too() {
        let left = |n: u32| format!(r#"{{"state":"open","remaining": {n},"job_id":7}}"#);
        assert_eq!(moves(&[&left(900), &left(850), &left(600)]), [false, false, true]);
        assert_eq!(moves(&["40\n", "38\n", "12\n"]), [false, false, true]);
        assert_eq!(moves(&["1790000000", "1790000060", "1790000120"]), [false; 3]);
        for name in ["id", "job_id", "requestId", "elapsed_ms", "updatedAt", "line", "serverTime", "tokens"] {
            assert!(has_none(&format!(r#"{{"{name}":12}}"#)), "{name}");
        }
        assert!(has_none(r#"{"score":0.83}"#) && !has_none(r#"{"valid":12}"#));
    }

    #[test]
    fn places_sizes_and_attempts_are_none() {
        for pair in [
            ["src/a.rs:10:20: error", "src/a.rs:41:20: error"],
            ["read 100 bytes", "read 200 bytes"],
            ["after 3 attempts", "after 4 attempts"],
            ["1402 prompt tokens", "1880 prompt tokens"],
            ["score 0.8123 of it", "score 0.9 of it"],
        ] {
            assert!(pair.into_iter().all(has_none), "{pair:?}");
        }
    }

    #[test]
    fn hostile_input_stays_linear() {
        assert_reads_linearly(&["1", "1 a", "1 of ", "9%", "\"a\":1,", "\":1"], |text| {
            numbers(text.as_bytes());
        });
    }
}
