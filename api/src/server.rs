//! Accepts connections, as many as memory and fairness allow, and shuts them down gracefully.

mod body_limit;
mod deadline;
mod fallback;
mod in_flight;
mod openapi;
mod paced_stream;
mod page;
pub mod router;
mod security_headers;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tower::ServiceExt;

use crate::limits::fair_budget::FairBudget;
use crate::state::App;
use paced_stream::PacedStream;

/// Maximum number of unsent bytes that the kernel buffers for a connection. By default, it buffers megabytes and
/// reports room only after sending a third of them, so a slow reader would look as if it had stopped.
const MAX_UNSENT: u32 = 128 << 10;
/// Maximum time without another complete request head on a connection that had a request. Longer than the two minutes
/// that proxies keep idle connections: the proxy must close first, because only it knows that no request is on its way.
const IDLE_TIMEOUT: Duration = Duration::from_secs(150);
/// Maximum size of a request head, and of the part of a body that is read ahead, in bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Grace period for requests in flight after the process was asked to stop. Requests that wait for a run are answered
/// immediately; the rest are slow uploads and downloads, which must not delay a restart.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);

/// Serves `router` over HTTP/1.1 until `stop` resolves, then finishes the requests in flight. A proxy speaks HTTP/2 with
/// browsers; its limits on slow clients do not reach the streams of a connection behind it.
///
/// Replaces `axum::serve`, which limits neither connections, nor the time for the request head, nor slow readers.
pub async fn serve(
    app: &App,
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_buf_size(BUFFER_BYTES);
    let head_timeout = Duration::from_secs(app.limits.head_timeout_secs);
    let connections = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = &mut stop => break,
        };
        let address = app.visitors.subscriber(peer.ip());
        let mut share = FairBudget::share(Arc::clone(&app.connections), address);
        if !share.grow_to(1, app.limits.address_connections) {
            tracing::debug!(%peer, "Too many connections; closing a new one");
            continue;
        }
        let (router, begun) = (router.clone(), Arc::new(AtomicBool::new(false)));
        let has_begun = Arc::clone(&begun);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            begun.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(ConnectInfo(peer));
            let router = router.clone();
            async move { Ok::<_, Infallible>(answer(router, request).await) }
        });
        let stream = TokioIo::new(PacedStream::new(stream));
        let connection = connections.watch(builder.serve_connection(stream, service));
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            let ended = match timeout(head_timeout, &mut connection).await {
                Ok(ended) => ended,
                Err(_) if has_begun.load(Ordering::Relaxed) => connection.await,
                Err(_) => {
                    tracing::debug!(%peer, "A new connection sent no request; closing it");
                    Ok(())
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, %peer, "A connection closed early");
            }
            drop(share);
        });
    }
    drop(listener);
    if timeout(DRAIN_TIMEOUT, connections.shutdown()).await.is_err() {
        tracing::warn!(
            "Some requests have not ended in {DRAIN_TIMEOUT:?}; closing their connections"
        );
    }
}

async fn answer(router: Router, request: hyper::Request<Incoming>) -> axum::response::Response {
    match router.oneshot(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Accepts the next connection. Ignores those that the client has already closed; waits a second after any other
/// error, such as running out of file descriptors.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Nagle's algorithm would delay small responses, above all events.
                let _ = stream.set_nodelay(true);
                let _ = SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT);
                return (stream, peer);
            }
            Err(error) => {
                use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
                if ![ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
                {
                    tracing::error!(%error, "Could not accept a connection");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kernel_takes_little_for_a_client_that_does_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let _client = TcpStream::connect(address).await.expect("connected");
        let (server, _) = accept(&listener).await;
        let mut taken = 0;
        while timeout(Duration::from_millis(300), server.writable()).await.is_ok() {
            taken += server.try_write(&[0; 8 << 10]).unwrap_or(0);
        }
        // Without the limit, about three megabytes.
        assert!((128 << 10..1 << 20).contains(&taken), "{taken} bytes");
    }
}
