use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use rusqlite::Connection;

/// One connection for many threads. While a thread makes several changes as one, the others wait, so that theirs don't
/// become part of them.
pub(super) struct SharedConnection {
    connection: Mutex<Connection>,
    /// The thread whose batch is open.
    batch_of: Mutex<Option<ThreadId>>,
    batch_ended: Condvar,
}

/// Ends a batch when it is dropped, and undoes what wasn't committed: after a panic, or if committing failed.
pub(super) struct OpenBatch<'a>(&'a SharedConnection);

impl SharedConnection {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection: Mutex::new(connection), batch_of: Mutex::new(None), batch_ended: Condvar::new() }
    }

    /// Waits for the batch of another thread, and for other threads' single changes.
    pub(super) fn lock(&self) -> MutexGuard<'_, Connection> {
        let _no_batch_starts = self.turn();
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes other threads wait; `None` if this thread has a batch already.
    pub(super) fn open_batch(&self) -> Option<OpenBatch<'_>> {
        let mut batch_of = self.turn();
        let is_first = batch_of.is_none();
        *batch_of = Some(std::thread::current().id());
        is_first.then(|| OpenBatch(self))
    }

    fn turn(&self) -> MutexGuard<'_, Option<ThreadId>> {
        let me = std::thread::current().id();
        let batch_of = self.batch_of.lock().unwrap_or_else(PoisonError::into_inner);
        let others = |batch: &mut Option<ThreadId>| batch.is_some_and(|thread| thread != me);
        self.batch_ended.wait_while(batch_of, others).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenBatch<'_> {
    fn drop(&mut self) {
        let connection = self.0.lock();
        if !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK");
        }
        drop(connection);
        *self.0.batch_of.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.batch_ended.notify_all();
    }
}
