//! Accepts connections until a signal arrives.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

use crate::access::{HeadDeadline, ServerAccess, TlsAccess, WriteDeadline};
use crate::admission::{HEADERS, REQUEST, admit, is_health};
use crate::broker::Broker;
use crate::connections::{ConnectionTable, OpenConnection};
use crate::http_error::HttpError;
use crate::requester::Requester;
use crate::routes;
use crate::shared::{ServerNotice, Shared, TellFn};
use crate::step_queue::StepQueue;
use crate::workers::Workers;

/// How long the server waits before it accepts again, after it couldn't.
const PAUSE: Duration = Duration::from_millis(100);

/// How often threads in the background look whether there is something to do, or the server stops.
const TICK: Duration = Duration::from_millis(100);
/// How many ticks there are per second, when something may be due.
const TICKS: u64 = 10;

/// Answers requests at this address until SIGINT or SIGTERM. Then it accepts no more, finishes the requests in
/// progress and closes the database. SIGHUP reads the keys and the certificate again.
///
/// # Errors
/// When it can't listen at the address, or the system has no threads left.
pub fn serve(
    mut broker: Broker,
    address: SocketAddr,
    access: ServerAccess,
    tell: TellFn,
) -> std::io::Result<()> {
    broker.recover(access.clock.now());
    let (limits, note) = access.connections.within_open_files();
    note.into_iter().for_each(|note| tell(ServerNotice::Failed(note)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let connections = ConnectionTable::new(limits);
    let shared = Arc::new(Shared::new(broker, access.gate, connections, access.clock, tell));
    let background = start_background(&shared)?;
    let workers = Arc::new(Workers::start()?);
    let done = runtime.block_on(run(address, access.tls, Arc::clone(&shared), &workers));
    shared.stopping.send_replace(true);
    // Connections that said nothing yet are closed.
    runtime.shutdown_background();
    for thread in background {
        // It ends within a tick.
        let _ = thread.join();
    }
    // Waits for steps that are being stored, so that the database is closed last.
    if let Some(workers) = Arc::into_inner(workers) {
        workers.stop();
    }
    shared.close();
    done
}

/// Starts the threads that do what is due from time to time. None of them waits for another.
fn start_background(shared: &Arc<Shared>) -> std::io::Result<Vec<JoinHandle<()>>> {
    let ticks = AtomicU64::new(0);
    let every_second = move |shared: &Shared| {
        if ticks.fetch_add(1, Ordering::Relaxed).is_multiple_of(TICKS) {
            shared.broker.tick(shared.clock.now());
        }
    };
    let write = |shared: &Shared| shared.broker.write_back_if_due(shared.clock.now());
    let refresh_keys = |shared: &Shared| {
        if let Err(reason) = shared.access.keep_keys_fresh() {
            shared.tell(ServerNotice::Failed(reason));
        }
    };
    Ok(vec![
        start_ticking(shared, "deloop-ticker", every_second)?,
        start_ticking(shared, "deloop-writer", write)?,
        start_ticking(shared, "deloop-keys", refresh_keys)?,
    ])
}

/// Starts a thread that calls `work` at each tick until the server stops.
fn start_ticking(
    shared: &Arc<Shared>,
    name: &str,
    work: impl Fn(&Shared) + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        while !*shared.stopping.borrow() {
            std::thread::sleep(TICK);
            work(&shared);
        }
    })
}

/// Accepts connections and gives them to workers.
async fn run(
    address: SocketAddr,
    tls: Option<Arc<TlsAccess>>,
    shared: Arc<Shared>,
    workers: &Arc<Workers>,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let mut stop = pin!(stop_signal(&shared, tls.clone())?);
    shared.tell(ServerNotice::Ready(listener.local_addr()?));
    let router = routes::router(&shared);
    let graceful = GracefulShutdown::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    // Answers are small and written at once.
                    let _ = stream.set_nodelay(true);
                    let deadline = Arc::new(HeadDeadline::new(HEADERS, shared.clock.clone()));
                    let connection = Connection {
                        peer: peer.ip(),
                        open: shared.connections.add(peer.ip(), deadline),
                        shared: Arc::clone(&shared),
                        router: router.clone(),
                        watcher: graceful.watcher(),
                    };
                    match tls.clone() {
                        None => drop(tokio::spawn(connection.begin(stream, Arc::clone(workers)))),
                        Some(tls) => connection.give_to(workers, stream, Some(tls)),
                    }
                }
                Err(error) => {
                    shared.tell(ServerNotice::Failed(format!("can't accept a connection: {error}")));
                    shared.connections.make_room();
                    tokio::time::sleep(PAUSE).await;
                }
            },
            () = &mut stop => break,
        }
    }
    drop(listener);
    shared.tell(ServerNotice::Stopping);
    shared.stopping.send_replace(true);
    // A client that doesn't read its answer must not keep the server running.
    let _ = shared.clock.within(REQUEST, graceful.shutdown()).await;
    Ok(())
}

/// A connection that was accepted, and its place among all.
struct Connection {
    peer: IpAddr,
    open: OpenConnection,
    shared: Arc<Shared>,
    router: Router,
    watcher: Watcher,
}

/// Which thread answers the requests of a connection.
enum Answers {
    /// The worker that has this queue.
    Here(Arc<StepQueue>),
    /// The one that accepts connections, as far as they ask how the server is: it never has much to do. A worker does
    /// the rest.
    Front(Arc<Workers>),
}

impl Connection {
    /// Waits until the client says what it wants, and gives the connection to a worker, unless it asks how the server is.
    async fn begin(self, stream: TcpStream, workers: Arc<Workers>) {
        let mut stopping = self.shared.stopping.subscribe();
        let mut first = [0; FIRST_BYTES];
        let deadline = Arc::clone(self.open.deadline());
        let read = tokio::select! {
            read = stream.peek(&mut first) => read,
            () = deadline.missed() => return,
            () = self.open.closed() => return,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        match read {
            Err(_) | Ok(0) => {}
            Ok(read) if is_health_request(&first[..read]) => {
                self.answer(WriteDeadline::new(stream, REQUEST), Answers::Front(workers)).await;
            }
            Ok(_) => self.give_to(&workers, stream, None),
        }
    }

    fn give_to(self, workers: &Workers, stream: TcpStream, tls: Option<Arc<TlsAccess>>) {
        // If the client is gone already, there is nobody to tell.
        let _ = workers.take(stream, |stream, queue| async {
            let stream = WriteDeadline::new(stream, REQUEST);
            match tls {
                None => self.answer(stream, Answers::Here(queue)).await,
                Some(tls) => self.secure(stream, queue, tls).await,
            }
        });
    }

    /// Answers requests once the connection is secure. A handshake takes at most as long as headers may, and ends when
    /// the server does.
    async fn secure(self, stream: WriteDeadline<TcpStream>, queue: Arc<StepQueue>, tls: Arc<TlsAccess>) {
        let shared = Arc::clone(&self.shared);
        let mut stopping = shared.stopping.subscribe();
        if tls.is_due() {
            let (tls, shared) = (Arc::clone(&tls), Arc::clone(&shared));
            let refresh = move || {
                if let Err(reason) = tls.refresh() {
                    shared.tell(ServerNotice::Failed(reason));
                }
            };
            let _ = tokio::task::spawn_blocking(refresh).await;
        }
        let secured = tokio::select! {
            secured = shared.clock.within(HEADERS, tls.accept(stream)) => secured,
            () = self.open.closed() => return,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        if let Some(Ok(stream)) = secured {
            self.open.deadline().restart();
            self.answer(stream, Answers::Here(queue)).await;
        }
    }

    async fn answer<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S, answers: Answers) {
        let Self { peer, open, shared, router, watcher } = self;
        // One for all of it, because threads that count the same references wait for each other.
        let answering = Arc::new((shared, answers, router, open));
        let of_connection = Arc::clone(&answering);
        let service = service_fn(move |request: Request<Incoming>| {
            let answering = Arc::clone(&answering);
            async move {
                let (shared, answers, router, open) = &*answering;
                let handle = |requester, request| answers.answer(shared, router, requester, request);
                Ok::<_, Infallible>(admit(shared, (peer, open), request, handle).await)
            }
        });
        let connection = http1::Builder::new().writev(false).serve_connection(TokioIo::new(stream), service);
        let open = &of_connection.3;
        tokio::select! {
            biased;
            // The client broke the connection, or sent something that isn't HTTP and got its answer.
            _ = watcher.watch(connection) => {}
            () = open.deadline().missed() => {}
            () = open.closed() => {}
        }
    }
}

impl Answers {
    async fn answer(
        &self,
        shared: &Arc<Shared>,
        router: &Router,
        requester: Option<Arc<Requester>>,
        request: Request<Incoming>,
    ) -> Response {
        match self {
            Self::Here(queue) => routes::answer(shared, queue, router, requester, request).await,
            Self::Front(_) if is_health(request.uri().path()) => {
                routes::answer(shared, &Arc::default(), router, requester, request).await
            }
            Self::Front(workers) => {
                let (shared, router) = (Arc::clone(shared), router.clone());
                let answer =
                    |queue| async move { routes::answer(&shared, &queue, &router, requester, request).await };
                workers.run(answer).await.unwrap_or_else(|| HttpError::from_panic().into_response())
            }
        }
    }
}

/// How much of a first request is looked at.
const FIRST_BYTES: usize = 32;

/// Returns whether a connection begins with a question about the server's health.
fn is_health_request(first: &[u8]) -> bool {
    let Some(target) = first.strip_prefix(b"GET ") else { return false };
    let end = target.iter().position(|byte| matches!(byte, b' ' | b'?'));
    let path = end.and_then(|end| std::str::from_utf8(&target[..end]).ok());
    path.is_some_and(is_health)
}

/// Waits for SIGINT or SIGTERM, from the moment this is called. SIGHUP reads the keys and the certificate again.
#[cfg(unix)]
fn stop_signal(
    shared: &Arc<Shared>,
    tls: Option<Arc<TlsAccess>>,
) -> std::io::Result<impl Future<Output = ()> + use<>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (mut hangup, shared) = (signal(SignalKind::hangup())?, Arc::clone(shared));
    Ok(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => return,
                _ = terminate.recv() => return,
                _ = hangup.recv() => {
                    let (shared, tls) = (Arc::clone(&shared), tls.clone());
                    tokio::task::spawn_blocking(move || reload(&shared, tls.as_deref()));
                }
            }
        }
    })
}

#[cfg(unix)]
fn reload(shared: &Shared, tls: Option<&TlsAccess>) {
    let keys = shared.access.reload_keys();
    let certificate = tls.map_or(Ok(()), TlsAccess::refresh);
    for failed in [keys, certificate] {
        if let Err(reason) = failed {
            return shared.tell(ServerNotice::Failed(reason));
        }
    }
    shared.tell(ServerNotice::Reloaded);
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
fn stop_signal(
    _: &Arc<Shared>,
    _: Option<Arc<TlsAccess>>,
) -> std::io::Result<impl Future<Output = ()> + use<>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_paths_are_questions_about_health() {
        for first in ["GET /healthz HTTP/1.1\r\n", "GET /readyz HTTP/1.1\r\n", "GET /readyz?x=1 HTTP/1.1\r\n"]
        {
            assert!(is_health_request(&first.as_bytes()[..first.len().min(FIRST_BYTES)]), "{first}");
        }
        for first in
            ["GET /healthzz HTTP/1.1", "POST /healthz HTTP/1.1", "GET /v1/steps HTTP/1.1", "GET /healthz", ""]
        {
            assert!(!is_health_request(first.as_bytes()), "{first}");
        }
    }
}
