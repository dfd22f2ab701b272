//! Accepts connections until a signal arrives.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::admission::{CONNECTIONS, HEADERS, REQUEST};
use crate::broker::Broker;
use crate::routes;
use crate::shared::{ServerNotice, Shared, TellFn};

/// How long the server waits before it accepts again, after it couldn't.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests at this address until SIGINT or SIGTERM. Then it accepts no more, finishes the requests in
/// progress and closes the database.
///
/// # Errors
/// When it can't listen at the address, or the system has no threads left.
pub fn serve(broker: Broker, address: SocketAddr, tell: TellFn) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let shared = Arc::new(Shared::new(broker, tell));
    let done = runtime.block_on(run(address, Arc::clone(&shared)));
    // Waits for steps that are being stored, so that the database is closed last.
    drop(runtime);
    shared.close();
    done
}

async fn run(address: SocketAddr, shared: Arc<Shared>) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let mut stop = pin!(stop_signal()?);
    shared.tell(ServerNotice::Ready(listener.local_addr()?));
    let router = routes::router(&shared);
    let (graceful, slots) = (GracefulShutdown::new(), Arc::new(Semaphore::new(CONNECTIONS)));
    loop {
        tokio::select! {
            accepted = accept(&listener, &slots) => match accepted {
                Ok((stream, slot)) => connect(stream, slot, router.clone(), &graceful),
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
    let _ = tokio::time::timeout(REQUEST, graceful.shutdown()).await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Answers are small and written at once.
    let _ = stream.set_nodelay(true);
    Ok((stream, slot))
}

fn connect(stream: TcpStream, slot: OwnedSemaphorePermit, router: Router, graceful: &GracefulShutdown) {
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        // The client broke the connection, or sent something that isn't HTTP and got its answer.
        let _ = connection.await;
        drop(slot);
    });
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
