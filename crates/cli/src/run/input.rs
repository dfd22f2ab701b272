//! Standard input for more than one attempt: it is passed on as it comes, kept, and given to a retry from its start.

use std::io::{Read, Write};
use std::process::ChildStdin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What was read so far.
#[derive(Default)]
struct Recorded {
    bytes: Vec<u8>,
    over: bool,
}

/// Standard input, recorded while it is read.
#[derive(Clone, Default)]
pub(super) struct RepeatableInput {
    recorded: Arc<(Mutex<Recorded>, Condvar)>,
}

impl RepeatableInput {
    /// Starts to read standard input.
    pub(super) fn read() -> Self {
        let input = Self::default();
        let writer = input.clone();
        std::thread::spawn(move || writer.record(&mut std::io::stdin().lock()));
        input
    }

    /// Gives an agent all of it, from the start, until it ends or the agent closes its end.
    pub(super) fn feed(&self, mut stdin: ChildStdin) {
        let input = self.clone();
        std::thread::spawn(move || {
            let mut given = 0;
            while let Some(bytes) = input.after(given) {
                given += bytes.len();
                if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
                    break;
                }
            }
        });
    }

    fn record(&self, from: &mut dyn Read) {
        let mut chunk = [0; 8192];
        loop {
            let count = from.read(&mut chunk).unwrap_or(0);
            let mut recorded = self.lock();
            recorded.over = count == 0;
            recorded.bytes.extend(&chunk[..count]);
            self.recorded.1.notify_all();
            if recorded.over {
                return;
            }
        }
    }

    /// Waits for more than the first `given` bytes; none at the end.
    fn after(&self, given: usize) -> Option<Vec<u8>> {
        let waiting = |recorded: &mut Recorded| recorded.bytes.len() == given && !recorded.over;
        let recorded = self.recorded.1.wait_while(self.lock(), waiting);
        let recorded = recorded.unwrap_or_else(PoisonError::into_inner);
        recorded.bytes.get(given..).filter(|bytes| !bytes.is_empty()).map(<[u8]>::to_vec)
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
