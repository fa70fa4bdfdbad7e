//! Connections: taken, kept while they are used, and closed in good order.

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

/// How long a connection may stay without a whole head of a request. More than the two minutes for which proxies keep
/// idle connections: whoever closes first must be the one that knows that nothing is on its way.
const HEAD: Duration = Duration::from_secs(150);

/// Serves `router` until `stop`; then requests under way are finished.
///
/// `axum::serve` would do but for one thing: it waits forever for the head of a request.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD);
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
                tracing::debug!(error, %peer, "A connection ended early");
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

/// The next connection. One that broke off before it was taken is nobody's; without a file descriptor left, others must
/// end first.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small answers, events above all, must not wait for more.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) => {
                use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
                if ![ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
                {
                    tracing::error!(%error, "No connection can be taken");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}
