use super::SentStep;

/// Maximum number of steps in a slice.
const STEPS: usize = 64;
/// A slice is full once its steps have this many bytes.
const BYTES: usize = 64 << 10;

/// The steps of a request in slices. Other requests come in between, so that a large one makes nobody wait for all of it.
pub(super) struct Slices<'s, 'j> {
    rest: &'s mut [SentStep<'j>],
    is_whole: bool,
}

impl<'s, 'j> Slices<'s, 'j> {
    /// Returns small slices, and whether there are several.
    pub(super) fn of(steps: &'s mut [SentStep<'j>]) -> (Self, bool) {
        let is_long = slice_length(steps) < steps.len();
        (Self { rest: steps, is_whole: false }, is_long)
    }

    /// Returns all steps in one slice.
    pub(super) fn whole(steps: &'s mut [SentStep<'j>]) -> (Self, bool) {
        (Self { rest: steps, is_whole: true }, false)
    }
}

impl<'s, 'j> Iterator for Slices<'s, 'j> {
    type Item = &'s mut [SentStep<'j>];

    fn next(&mut self) -> Option<Self::Item> {
        let length = if self.is_whole { self.rest.len() } else { slice_length(self.rest) };
        let (slice, rest) = std::mem::take(&mut self.rest).split_at_mut(length);
        self.rest = rest;
        (!slice.is_empty()).then_some(slice)
    }
}

/// Returns the number of steps in the next slice.
fn slice_length(steps: &[SentStep<'_>]) -> usize {
    let mut bytes = 0;
    let fits = |sent: &&SentStep<'_>| {
        let is_full = bytes >= BYTES;
        bytes += sent.json.len();
        !is_full
    };
    steps.iter().take(STEPS).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use deloop_types::Step;

    use super::*;

    fn lengths(sizes: &[usize]) -> Vec<usize> {
        let text = vec![b' '; BYTES];
        let sent = |size: &usize| SentStep::new(Step::text("s", "a"), &text[..*size]);
        let mut steps: Vec<_> = sizes.iter().map(sent).collect();
        Slices::of(&mut steps).0.map(|slice| slice.len()).collect()
    }

    #[test]
    fn slices_are_limited_by_steps_and_by_bytes() {
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[9; 2 * STEPS + 1]), [STEPS, STEPS, 1]);
        assert_eq!(lengths(&[BYTES, BYTES, 1]), [1, 1, 1]);
        assert_eq!(lengths(&[BYTES / 2 + 1; 5]), [2, 2, 1]);
    }
}
