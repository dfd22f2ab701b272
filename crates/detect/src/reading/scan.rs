//! Finds the first byte of interest, sixteen bytes at a time.

/// Returns the number of bytes before the first one for which `stop` returns true.
///
/// The test of a block has no early exit, so that the compiler can turn it into a few wide instructions. `stop`
/// must be cheap and branchless for that.
#[inline]
pub(crate) fn bytes_before(bytes: &[u8], stop: impl Fn(u8) -> bool) -> usize {
    const PIECE: usize = 16;
    let none = |piece: &&[u8]| !piece.iter().fold(false, |any, b| any | stop(*b));
    let clear = bytes.chunks_exact(PIECE).take_while(none).count() * PIECE;
    clear + bytes[clear..].iter().position(|b| stop(*b)).unwrap_or(bytes.len() - clear)
}

#[cfg(test)]
mod tests {
    use super::bytes_before;

    #[test]
    fn finds_the_first_wherever_it_stands() {
        for length in 0..50 {
            let clear = vec![b'a'; length];
            assert_eq!(bytes_before(&clear, |b| b == b'x'), length);
            for at in 0..length {
                let mut bytes = clear.clone();
                bytes[at..].fill(b'x');
                assert_eq!(bytes_before(&bytes, |b| b == b'x'), at);
            }
        }
    }
}
