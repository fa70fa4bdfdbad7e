//! Accepts connections and shuts them down gracefully.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

/// How long a connection may go without a complete request head. Longer than the two minutes for which proxies keep
/// idle connections: the proxy must close first, because only it knows that no request is on its way.
const HEAD_TIMEOUT: Duration = Duration::from_secs(150);

/// Serves `router` until `stop` resolves, then finishes the requests in flight.
///
/// Replaces `axum::serve`, which has no timeout for the request head.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD_TIMEOUT);
    let connections = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = &mut stop => break,
        };
        let router = router.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            let router = router.clone();
            async move { Ok::<_, Infallible>(answer(router, request).await) }
        });
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let connection = connections.watch(connection.into_owned());
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error, %peer, "A connection closed early");
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
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
