//! The threads that answer requests.
//!
//! A connection stays on the thread that it was given to: what its requests use stays in that processor's cache, and threads
//! don't wake each other up. What may block runs on threads of its own, so no connection waits for long for another one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crate::step_queue::StepQueue;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// Starts the task that answers the requests of a connection, on the worker's thread.
type StartFn = Box<dyn FnOnce() + Send>;

/// One thread per processor.
pub(crate) struct Workers {
    workers: Vec<Worker>,
}

struct Worker {
    connections: UnboundedSender<StartFn>,
    open: Arc<AtomicUsize>,
    queue: Arc<StepQueue>,
    thread: JoinHandle<()>,
}

/// Counts a connection of a worker while it is open.
struct CountedConnection(Arc<AtomicUsize>);

impl CountedConnection {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no threads or files left.
    pub(crate) fn start() -> io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = (0..count).map(|_| Worker::start()).collect::<io::Result<_>>()?;
        Ok(Self { workers })
    }

    /// Gives a connection to the worker that has the fewest. `answer` answers its requests until it is closed.
    ///
    /// # Errors
    /// When the client is gone already.
    pub(crate) fn take<F: Future<Output = ()> + Send + 'static>(
        &self,
        stream: TcpStream,
        answer: impl FnOnce(TcpStream, Arc<StepQueue>) -> F + Send + 'static,
    ) -> io::Result<()> {
        let stream = stream.into_std()?;
        let Some(worker) = self.least_busy() else { return Ok(()) };
        let (open, queue) = (CountedConnection::new(&worker.open), Arc::clone(&worker.queue));
        let start = move || {
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            let answered = answer(stream, queue);
            tokio::spawn(async move {
                answered.await;
                drop(open);
            });
        };
        worker.connections.send(Box::new(start)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Runs `work` on the worker that has the fewest connections. Returns `None` if it can't.
    pub(crate) async fn run<R: Send + 'static, F: Future<Output = R> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<StepQueue>) -> F + Send + 'static,
    ) -> Option<R> {
        let worker = self.least_busy()?;
        let (done, result) = oneshot::channel();
        let queue = Arc::clone(&worker.queue);
        let start = move || {
            let work = work(queue);
            tokio::spawn(async move {
                // The client may be gone.
                let _ = done.send(work.await);
            });
        };
        worker.connections.send(Box::new(start)).ok()?;
        result.await.ok()
    }

    fn least_busy(&self) -> Option<&Worker> {
        self.workers.iter().min_by_key(|worker| worker.open.load(Ordering::Relaxed))
    }

    /// Ends the threads. Steps that are being stored are stored first; connections that are open are closed.
    pub(crate) fn stop(self) {
        for Worker { connections, thread, .. } in self.workers {
            drop(connections);
            // A panic was reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (connections, given) = unbounded_channel();
        let thread = std::thread::Builder::new().name("deloop-worker".to_owned());
        let thread = thread.spawn(move || work(&runtime, given))?;
        Ok(Self { connections, open: Arc::default(), queue: Arc::default(), thread })
    }
}

fn work(runtime: &Runtime, mut connections: UnboundedReceiver<StartFn>) {
    runtime.block_on(async {
        while let Some(start) = connections.recv().await {
            start();
        }
    });
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::mpsc;

    use tokio::net::TcpListener;

    use super::*;
    use crate::wait::wait_for;

    #[test]
    fn connections_are_spread_evenly_and_closed_ones_make_room() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let workers = Workers::start().unwrap();
        let count = workers.workers.len();
        let (told, threads) = mpsc::channel();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut clients = Vec::new();
            for _ in 0..2 * count {
                clients.push(TcpStream::connect(address).await.unwrap());
                let (stream, _) = listener.accept().await.unwrap();
                let told = told.clone();
                let answer = |stream: TcpStream, _| async move {
                    told.send(std::thread::current().id()).unwrap();
                    // Until the client closes it.
                    let _ = stream.readable().await;
                };
                workers.take(stream, answer).unwrap();
            }
            let mut on = HashMap::new();
            for _ in 0..2 * count {
                *on.entry(threads.recv().unwrap()).or_insert(0) += 1;
            }
            assert_eq!(on.len(), count);
            assert!(on.values().all(|connections| *connections == 2), "{on:?}");
            drop(clients);
            let open =
                || workers.workers.iter().map(|worker| worker.open.load(Ordering::Relaxed)).sum::<usize>();
            wait_for("the workers see that the clients are gone", || open() == 0);
        });
        workers.stop();
    }
}
