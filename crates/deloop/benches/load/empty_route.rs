//! An axum server that reads the body and answers with as many bytes as a decision has, to compare with.

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use axum::serve::ListenerExt;

/// The decision to do nothing.
const ANSWER: &str = r#"{"session":"c0-0","step":0,"action":"continue","level":0,"message":null,"role":null,"calls":[],"status":null,"findings":[]}"#;

/// Answers until it is killed. Prints its port.
pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let router = Router::new().route("/v1/steps", post(async |_: Bytes| ANSWER));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{}", listener.local_addr().expect("an address").port());
        // Sends answers at once, as the server does.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await.expect("it serves");
    });
}
