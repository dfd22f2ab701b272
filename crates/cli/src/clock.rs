//! The clock of commands that wait for others: for an agent that hangs, for one that is to exit, for words that an agent is
//! about to write.

use std::time::{Duration, Instant};

/// A clock that stands still while the machine sleeps.
pub(crate) struct WaitClock {
    #[cfg(debug_assertions)]
    set: Option<set::SetClock>,
}

impl WaitClock {
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(debug_assertions)]
            set: set::SetClock::from_environment(),
        }
    }

    /// Returns the time.
    pub(crate) fn now(&self) -> Instant {
        #[cfg(debug_assertions)]
        if let Some(set) = &self.set {
            return set.now();
        }
        monotonic()
    }

    /// Returns how long to wait before looking again: not long if a test sets the clock.
    #[cfg_attr(
        not(debug_assertions),
        expect(clippy::unused_self, reason = "a clock that is set beats faster")
    )]
    pub(crate) fn beat(&self, usual: Duration) -> Duration {
        #[cfg(debug_assertions)]
        if self.set.is_some() {
            return set::BEAT;
        }
        usual
    }
}

#[expect(clippy::disallowed_methods, reason = "some commands measure how long nothing happens")]
fn monotonic() -> Instant {
    Instant::now()
}

/// Debug builds let tests set the clock, so that no test waits or depends on the speed of the machine.
#[cfg(debug_assertions)]
mod set {
    use std::cell::Cell;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    /// Names a file with the milliseconds that have passed. No others pass.
    const VARIABLE: &str = "DELOOP_TEST_CLOCK";
    pub(super) const BEAT: Duration = Duration::from_millis(5);

    pub(super) struct SetClock {
        start: Instant,
        file: PathBuf,
        passed: Cell<u64>,
    }

    impl SetClock {
        pub(super) fn from_environment() -> Option<Self> {
            let file = std::env::var_os(VARIABLE)?.into();
            Some(Self { start: super::monotonic(), file, passed: Cell::new(0) })
        }

        /// Reads the file. If it holds what it held before, everything that this time led to is done, and a second file,
        /// which ends with `.seen`, gets the same number.
        pub(super) fn now(&self) -> Instant {
            let text = std::fs::read_to_string(&self.file).unwrap_or_default();
            let passed = text.trim_end().parse().unwrap_or(self.passed.get());
            if self.passed.replace(passed) == passed {
                let _ = std::fs::write(self.file.with_extension("seen"), passed.to_string());
            }
            self.start + Duration::from_millis(passed)
        }
    }
}
