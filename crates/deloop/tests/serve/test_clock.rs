//! The time that the servers of a test go by.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use deloop_types::Millis;

use crate::binary::deloop;

/// Noon of a day, so that no test spans two.
const START: Millis = Millis(1_768_478_400_000);

/// A clock that stands still until the test advances it.
pub(crate) struct TestClock {
    file: PathBuf,
    now: Cell<Millis>,
}

impl TestClock {
    /// Sets the clock of the servers in this home.
    pub(crate) fn new(home: &Path) -> Self {
        if !cfg!(debug_assertions) {
            panic!("a release build doesn't let a test set its clock");
        }
        let clock = Self { file: home.join("test-clock"), now: Cell::new(START) };
        clock.write();
        clock
    }

    /// The command, which goes by this clock if it is a server.
    pub(crate) fn deloop(&self, home: &Path) -> Command {
        let mut command = deloop(home);
        command.env("DELOOP_TEST_CLOCK", &self.file);
        command
    }

    pub(crate) fn now(&self) -> Millis {
        self.now.get()
    }

    /// Lets this much time pass. What the server does after that, it does later.
    pub(crate) fn advance(&self, time: Duration) {
        let passed = i64::try_from(time.as_millis()).expect("a short time");
        self.now.set(Millis(self.now.get().0 + passed));
        self.write();
    }

    /// Replaces the file at once, so that a server never reads half of it.
    fn write(&self) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, self.now.get().0.to_string()).expect("a file");
        std::fs::rename(&new, &self.file).expect("a file");
    }
}
