//! A compact text for a swarm's calls: fixed-width numbers in base 64, 14 bytes per call instead of 42 in decimal JSON.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Digits of a fingerprint (64 bits) and of a worker's slot (18 bits).
const WIDTHS: (usize, usize) = (11, 3);

/// Writes pairs of a fingerprint and a worker's slot.
pub(super) fn pack(calls: impl ExactSizeIterator<Item = (u64, u32)>) -> String {
    let mut text = vec![0; calls.len() * (WIDTHS.0 + WIDTHS.1)];
    for ((about, slot), call) in calls.zip(text.chunks_exact_mut(WIDTHS.0 + WIDTHS.1)) {
        let (one, other) = call.split_at_mut(WIDTHS.0);
        put(one, about);
        put(other, slot.into());
    }
    String::from_utf8(text).unwrap_or_default()
}

/// Reads what [`pack`] wrote; `None` for any other text.
pub(super) fn unpack(text: &str) -> Option<Vec<(u64, u32)>> {
    let values = digit_values();
    let number = |digits: &[u8]| {
        let digits = digits.iter().map(|digit| values[usize::from(*digit)]);
        let (number, all) =
            digits.fold((0_u64, 0), |(sum, all), digit| (sum << 6 | u64::from(digit & 63), all | digit));
        (all < 64).then_some(number)
    };
    let calls = text.as_bytes().chunks(WIDTHS.0 + WIDTHS.1).map(|call| {
        let (about, slot) = call.split_at_checked(WIDTHS.0).filter(|(_, slot)| slot.len() == WIDTHS.1)?;
        Some((number(about)?, u32::try_from(number(slot)?).ok()?))
    });
    calls.collect()
}

fn put(text: &mut [u8], mut number: u64) {
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[usize::try_from(number & 63).unwrap_or(0)];
        number >>= 6;
    }
}

/// Returns the value of each byte, 64 for one that is no digit.
fn digit_values() -> [u8; 256] {
    let mut values = [64; 256];
    for (value, digit) in (0..).zip(DIGITS) {
        values[usize::from(*digit)] = value;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_can_be_unpacked() {
        let calls = [(0, 0), (u64::MAX, 9_999), (1, 262_143), (0x0123_4567_89ab_cdef, 64)];
        let text = pack(calls.into_iter());
        assert_eq!(text.len(), 14 * calls.len());
        assert_eq!(unpack(&text).unwrap(), calls);
        assert_eq!(unpack("").unwrap(), []);
        for broken in [&text[1..], &text[..13], "AAAAAAAAAAAAA\"", "é"] {
            assert_eq!(unpack(broken), None, "{broken}");
        }
    }
}
