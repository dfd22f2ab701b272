//! Accepts connections until a signal arrives.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::{HeadDeadline, ServerAccess, TlsAccess, WriteDeadline};
use crate::admission::{CONNECTIONS, HEADERS, REQUEST, admit};
use crate::broker::Broker;
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
/// progress and closes the database.
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = Arc::new(Shared::new(broker, access.gate, access.clock, tell));
    let background = start_background(&shared)?;
    let workers = Workers::start()?;
    let done = runtime.block_on(run(address, access.tls, Arc::clone(&shared), &workers));
    shared.stopping.send_replace(true);
    for thread in background {
        // It ends within a tick.
        let _ = thread.join();
    }
    // Waits for steps that are being stored, so that the database is closed last.
    workers.stop();
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
    workers: &Workers,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let mut stop = pin!(stop_signal()?);
    shared.tell(ServerNotice::Ready(listener.local_addr()?));
    let router = routes::router(&shared);
    let (graceful, slots) = (GracefulShutdown::new(), Arc::new(Semaphore::new(CONNECTIONS)));
    loop {
        tokio::select! {
            accepted = accept(&listener, &slots) => match accepted {
                Ok((stream, peer, slot)) => {
                    let connection = Connection {
                        peer,
                        shared: Arc::clone(&shared),
                        router: router.clone(),
                        watcher: graceful.watcher(),
                        _slot: slot,
                    };
                    let tls = tls.clone();
                    // If the client is gone already, there is nobody to tell.
                    let _ = workers.take(stream, |stream, queue| async {
                        let stream = WriteDeadline::new(stream, REQUEST);
                        match tls {
                            None => connection.answer(stream, queue).await,
                            Some(tls) => connection.secure(stream, queue, tls).await,
                        }
                    });
                }
                Err(error) => {
                    shared.tell(ServerNotice::Failed(format!("can't accept a connection: {error}")));
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

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    // Answers are small and written at once.
    let _ = stream.set_nodelay(true);
    Ok((stream, peer.ip(), slot))
}

/// A connection that was accepted, and its place among all.
struct Connection {
    peer: IpAddr,
    shared: Arc<Shared>,
    router: Router,
    watcher: Watcher,
    _slot: OwnedSemaphorePermit,
}

impl Connection {
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
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        if let Some(Ok(stream)) = secured {
            self.answer(stream, queue).await;
        }
    }

    async fn answer<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        stream: S,
        queue: Arc<StepQueue>,
    ) {
        let Self { peer, shared, router, watcher, _slot } = self;
        let deadline = Arc::new(HeadDeadline::new(HEADERS, shared.clock.clone()));
        // One for all of it, because threads that count the same references wait for each other.
        let answering = Arc::new((shared, queue, router, Arc::clone(&deadline)));
        let service = service_fn(move |request: Request<Incoming>| {
            let answering = Arc::clone(&answering);
            async move {
                let (shared, queue, router, deadline) = &*answering;
                let handle = |requester, request| routes::answer(shared, queue, router, requester, request);
                Ok::<_, Infallible>(admit(shared, (peer, deadline), request, handle).await)
            }
        });
        let connection = http1::Builder::new().writev(false).serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            biased;
            // The client broke the connection, or sent something that isn't HTTP and got its answer.
            _ = watcher.watch(connection) => {}
            () = deadline.missed() => {}
        }
    }
}

/// Waits for SIGINT or SIGTERM, from the moment this is called.
#[cfg(unix)]
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
