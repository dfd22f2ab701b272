//! A compact text for a swarm's calls: fixed-width numbers in base 64, 14 bytes per call instead of 42 in decimal JSON.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Digits of a fingerprint (64 bits) and of a worker's slot (18 bits).
const WIDTHS: (usize, usize) = (11, 3);

/// Writes pairs of a fingerprint and a worker's slot.
pub(super) fn pack(calls: impl ExactSizeIterator<Item = (u64, u32)>) -> String {
    let mut text = String::with_capacity(calls.len() * (WIDTHS.0 + WIDTHS.1));
    for (about, slot) in calls {
        put(&mut text, about, WIDTHS.0);
        put(&mut text, slot.into(), WIDTHS.1);
    }
    text
}

/// Reads what [`pack`] wrote; `None` for any other text.
pub(super) fn unpack(text: &str) -> Option<Vec<(u64, u32)>> {
    let values = digit_values();
    let number = |digits: &[u8]| {
        let add = |sum: u64, digit: &u8| Some(sum << 6 | u64::from(values[usize::from(*digit)]?));
        digits.iter().try_fold(0, add)
    };
    let calls = text.as_bytes().chunks(WIDTHS.0 + WIDTHS.1).map(|call| {
        let (about, slot) = call.split_at_checked(WIDTHS.0).filter(|(_, slot)| slot.len() == WIDTHS.1)?;
        Some((number(about)?, u32::try_from(number(slot)?).ok()?))
    });
    calls.collect()
}

fn put(text: &mut String, number: u64, width: usize) {
    for place in (0..width).rev() {
        #[expect(clippy::cast_possible_truncation, reason = "six bits of it are wanted")]
        let digit = (number >> (6 * place)) as usize & 63;
        text.push(char::from(DIGITS[digit]));
    }
}

fn digit_values() -> [Option<u8>; 256] {
    let mut values = [None; 256];
    for (value, digit) in (0..).zip(DIGITS) {
        values[usize::from(*digit)] = Some(value);
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
