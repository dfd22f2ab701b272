use deloop_detect::Memory;

/// What a profile's detectors remember of one agent. Most remember nothing of most agents, and those take no space.
#[derive(Default)]
pub(crate) struct Memories(Vec<(usize, Memory)>);

impl Memories {
    /// Returns what a detector remembers, if anything.
    pub(crate) fn get(&self, detector: usize) -> Option<&Memory> {
        let at = self.0.binary_search_by_key(&detector, |(of, _)| *of).ok()?;
        Some(&self.0[at].1)
    }

    /// Lets a detector change what it remembers.
    pub(crate) fn with<R>(&mut self, detector: usize, change: impl FnOnce(&mut Memory) -> R) -> R {
        match self.0.binary_search_by_key(&detector, |(of, _)| *of) {
            Ok(at) => change(&mut self.0[at].1),
            Err(at) => {
                let mut memory = Memory::default();
                let result = change(&mut memory);
                if !memory.is_empty() {
                    self.0.reserve_exact(1);
                    self.0.insert(at, (detector, memory));
                }
                result
            }
        }
    }
}

/// Collects one memory per detector of the profile, in the same order.
impl FromIterator<Memory> for Memories {
    fn from_iter<I: IntoIterator<Item = Memory>>(all: I) -> Self {
        let mut kept: Vec<_> = all.into_iter().enumerate().filter(|(_, memory)| !memory.is_empty()).collect();
        kept.shrink_to_fit();
        Self(kept)
    }
}
