//! The time that a server goes by. How long a command or Redis takes is measured where it is waited for.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use deloop_types::Millis;

/// Tells the time of day and how much time passes, both from the same source.
///
/// A build with debug assertions has a second source, for tests: if `DELOOP_TEST_CLOCK` names a file, the time is the number
/// in it, in milliseconds since 1970, and stands still until the file changes.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    #[cfg(debug_assertions)]
    file: Option<std::sync::Arc<clock_file::ClockFile>>,
}

impl Clock {
    /// Returns the clock of this machine, or the one that a test sets.
    #[must_use]
    pub fn new() -> Self {
        #[cfg(debug_assertions)]
        return Self { file: clock_file::ClockFile::given() };
        #[cfg(not(debug_assertions))]
        Self {}
    }

    /// Returns the time of day.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    pub fn now(&self) -> Millis {
        #[cfg(debug_assertions)]
        if let Some(file) = &self.file {
            return file.now();
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// Returns a moment, to compare with others.
    pub(crate) fn moment(&self) -> Instant {
        #[cfg(debug_assertions)]
        if let Some(file) = &self.file {
            return file.moment();
        }
        // It is the machine's, except in unit tests that pause the clock of their runtime.
        tokio::time::Instant::now().into_std()
    }

    /// Waits for a while.
    pub(crate) async fn sleep(&self, time: Duration) {
        let end = self.moment() + time;
        loop {
            let left = end.saturating_duration_since(self.moment());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(self.next_look(left)).await;
        }
    }

    /// Waits for `work`, but not longer than this.
    pub(crate) async fn within<R>(&self, time: Duration, work: impl Future<Output = R>) -> Option<R> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.sleep(time) => None,
        }
    }

    /// Returns how long to wait before looking at the clock again, to be there when this much time has passed.
    pub(crate) fn next_look(&self, left: Duration) -> Duration {
        #[cfg(debug_assertions)]
        if self.file.is_some() {
            return left.min(clock_file::BETWEEN_LOOKS);
        }
        left
    }
}

/// A clock that a test sets.
#[cfg(debug_assertions)]
mod clock_file {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use deloop_types::Millis;

    /// How long to wait before looking at the file again.
    pub(super) const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

    #[derive(Debug)]
    pub(super) struct ClockFile {
        path: PathBuf,
        begun: (Millis, Instant),
    }

    impl ClockFile {
        /// Returns the clock of the file that the environment names.
        pub(super) fn given() -> Option<Arc<Self>> {
            let path = PathBuf::from(std::env::var_os("DELOOP_TEST_CLOCK")?);
            let mut clock = Self { path, begun: (Millis(0), tokio::time::Instant::now().into_std()) };
            clock.begun.0 = clock.now();
            Some(Arc::new(clock))
        }

        /// Returns the time in the file. At the end of a test the file may be gone.
        pub(super) fn now(&self) -> Millis {
            let text = std::fs::read_to_string(&self.path).ok();
            text.and_then(|text| text.trim().parse().ok()).map_or(self.begun.0, Millis)
        }

        pub(super) fn moment(&self) -> Instant {
            let (first, begun) = self.begun;
            begun + Duration::from_millis(self.now().since(first))
        }
    }
}
