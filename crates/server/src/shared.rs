use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use deloop_types::Millis;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::access::AccessGate;
use crate::admission::{LARGE_REQUESTS, LISTENERS, Places, REQUESTS};
use crate::broker::Broker;
use crate::clock::Clock;
use crate::connections::ConnectionTable;
use crate::http_error::HttpError;
use crate::metrics::ServerMetrics;
use crate::readiness::ReadyCheck;

/// What the person who runs the server should see.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServerNotice {
    /// The server accepts connections at this address.
    Ready(SocketAddr),
    /// A signal arrived. Requests in progress are finished.
    Stopping,
    /// SIGHUP arrived. The keys and the certificate were read again.
    Reloaded,
    /// The server couldn't do something, for this reason.
    Failed(String),
}

/// Tells the person who runs the server something.
pub type TellFn = Arc<dyn Fn(ServerNotice) + Send + Sync>;

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) broker: Broker,
    pub(crate) access: AccessGate,
    pub(crate) metrics: ServerMetrics,
    pub(crate) requests: Places,
    pub(crate) large_requests: Places,
    pub(crate) listeners: Arc<Semaphore>,
    pub(crate) connections: Arc<ConnectionTable>,
    pub(crate) ready: ReadyCheck,
    /// Becomes true when the server stops, so that connections that never end do.
    pub(crate) stopping: watch::Sender<bool>,
    pub(crate) clock: Clock,
    tell: TellFn,
}

impl Shared {
    pub(crate) fn new(
        broker: Broker,
        access: AccessGate,
        connections: ConnectionTable,
        clock: Clock,
        tell: TellFn,
    ) -> Self {
        Self {
            broker,
            access,
            clock,
            metrics: ServerMetrics::default(),
            requests: Places::new(REQUESTS),
            large_requests: Places::new(LARGE_REQUESTS),
            connections: Arc::new(connections),
            ready: ReadyCheck::default(),
            listeners: Arc::new(Semaphore::new(LISTENERS)),
            stopping: watch::Sender::new(false),
            tell,
        }
    }

    /// Writes everything to the database, at the end.
    pub(crate) fn close(&self) {
        self.broker.tick(self.clock.now());
        self.broker.events().close();
        if let Err(error) = self.broker.write_back(self.clock.now()) {
            self.tell(ServerNotice::Failed(error.to_string()));
        }
    }

    pub(crate) fn tell(&self, notice: ServerNotice) {
        (self.tell)(notice);
    }
}

/// A request's way to the broker, from a thread that may block.
pub(crate) struct BrokerAccess<'a> {
    shared: &'a Shared,
    is_gone: &'a dyn Fn() -> bool,
}

impl BrokerAccess<'_> {
    /// Runs `work` unless the client is gone or its time is up.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&Broker, Millis) -> R) -> Result<R, HttpError> {
        if (self.is_gone)() {
            return Err(HttpError::timeout());
        }
        Ok(work(&self.shared.broker, self.shared.clock.now()))
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
    report(shared, answered.await.unwrap_or_else(|_| Err(panicked())))
}

/// Runs `work` on this thread, which either may block or takes less time than handing it to another would.
pub(crate) fn at_once<R>(
    shared: &Shared,
    is_gone: &dyn Fn() -> bool,
    work: impl FnOnce(&BrokerAccess<'_>) -> Result<R, HttpError>,
) -> Result<R, HttpError> {
    let access = BrokerAccess { shared, is_gone };
    report(shared, catch_unwind(AssertUnwindSafe(|| work(&access))).unwrap_or_else(|_| Err(panicked())))
}

pub(crate) fn panicked() -> HttpError {
    HttpError::failed("the request made deloop panic")
}

/// Tells the person who runs the server about an error that isn't the client's.
fn report<R>(shared: &Shared, done: Result<R, HttpError>) -> Result<R, HttpError> {
    done.map_err(|error| error.told(shared))
}
