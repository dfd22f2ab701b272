use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use deloop_types::Millis;
use tokio::sync::{Semaphore, oneshot};

use crate::access::AccessGate;
use crate::admission::{LARGE_REQUESTS, REQUESTS};
use crate::broker::Broker;
use crate::http_error::HttpError;
use crate::metrics::ServerMetrics;

/// What the person who runs the server should see.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServerNotice {
    /// The server accepts connections at this address.
    Ready(SocketAddr),
    /// A signal arrived. Requests in progress are finished.
    Stopping,
    /// The server couldn't do something, for this reason.
    Failed(String),
}

/// What all requests share.
pub(crate) struct Shared {
    broker: Mutex<Broker>,
    pub(crate) access: AccessGate,
    pub(crate) metrics: ServerMetrics,
    pub(crate) requests: Semaphore,
    pub(crate) large_requests: Semaphore,
    tell: Box<dyn Fn(ServerNotice) + Send + Sync>,
}

impl Shared {
    pub(crate) fn new(
        broker: Broker,
        access: AccessGate,
        tell: Box<dyn Fn(ServerNotice) + Send + Sync>,
    ) -> Self {
        Self {
            broker: Mutex::new(broker),
            access,
            metrics: ServerMetrics::default(),
            requests: Semaphore::new(REQUESTS),
            large_requests: Semaphore::new(LARGE_REQUESTS),
            tell,
        }
    }

    pub(crate) fn tell(&self, notice: ServerNotice) {
        (self.tell)(notice);
    }

    /// Locks the broker. Steps that panicked are undone first.
    fn broker(&self) -> MutexGuard<'_, Broker> {
        self.broker.lock().unwrap_or_else(|poisoned| {
            self.broker.clear_poison();
            let broker = poisoned.into_inner();
            if let Err(error) = broker.recover() {
                self.tell(ServerNotice::Failed(error.to_string()));
            }
            broker
        })
    }
}

/// A request's way to the broker, from a thread that may block.
pub(crate) struct BrokerAccess<'a> {
    shared: &'a Shared,
    is_gone: &'a dyn Fn() -> bool,
}

impl BrokerAccess<'_> {
    /// Waits for the broker, and runs `work` unless the client is gone or its time is up by then.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&Broker, Millis) -> R) -> Result<R, HttpError> {
        let broker = self.shared.broker();
        if (self.is_gone)() { Err(HttpError::timeout()) } else { Ok(work(&broker, now())) }
    }
}

/// Runs `work`, which may block, on a thread of its own.
pub(crate) async fn blocking<R: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&BrokerAccess<'_>) -> Result<R, HttpError> + Send + 'static,
) -> Result<R, HttpError> {
    let (answer, answered) = oneshot::channel();
    let at = Arc::clone(shared);
    tokio::task::spawn_blocking(move || {
        let done = work(&BrokerAccess { shared: &at, is_gone: &|| answer.is_closed() });
        // The client may be gone.
        let _ = answer.send(done);
    });
    let done = answered.await.unwrap_or_else(|_| Err(HttpError::failed("the request made deloop panic")));
    if let Some(reason) = done.as_ref().err().and_then(HttpError::internal) {
        shared.tell(ServerNotice::Failed(reason.to_owned()));
    }
    done
}

#[expect(clippy::disallowed_methods, reason = "steps without a time get the server's")]
pub(crate) fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
