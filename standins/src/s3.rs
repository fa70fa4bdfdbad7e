//! An S3 server on top of a folder, for laptops and tests.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpError, HttpResponse};
use tokio::net::TcpListener;

pub use self::faults::Faults;
use self::faults::Overload;

mod faults;

/// The credentials that the server accepts.
#[derive(Clone, Debug)]
pub struct Keys {
    pub access_key: String,
    pub secret_key: String,
}

/// Serves the folder `root`, whose subfolders are the buckets.
pub async fn serve(
    listener: TcpListener,
    root: &Path,
    keys: &Keys,
    faults: Faults,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(root).with_context(|| format!("creating {}", root.display()))?;
    let files = s3s_fs::FileSystem::new(root)
        .map_err(|error| anyhow::anyhow!("opening {}: {error:?}", root.display()))?;
    let mut builder = S3ServiceBuilder::new(files);
    builder.set_auth(SimpleAuth::from_single(keys.access_key.clone(), keys.secret_key.clone()));
    let service = builder.build();
    let overload = Arc::new(Overload::new(faults));
    let http = Builder::new(TokioExecutor::new());
    loop {
        let (stream, _) = listener.accept().await.context("accepting a connection")?;
        // Nagle's algorithm would delay small responses.
        stream.set_nodelay(true).ok();
        let (service, overload) = (service.clone(), overload.clone());
        let service = service_fn(move |request| answer(service.clone(), overload.clone(), request));
        let connection = http.serve_connection(TokioIo::new(stream), service).into_owned();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error, "A connection failed");
            }
        });
    }
}

async fn answer(
    service: S3Service,
    overload: Arc<Overload>,
    request: Request<Incoming>,
) -> Result<HttpResponse, HttpError> {
    let refusal = if overload.refuses() {
        s3s::s3_error!(SlowDown, "Please reduce your request rate.")
    } else if overload.refuses_to_store(&request) {
        s3s::s3_error!(AccessDenied, "Access denied.")
    } else {
        return service.call(request.map(Body::from)).await;
    };
    refusal.to_http_response().map_err(|error| HttpError::new(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn put_to(fail_share: f64) -> (u16, String, usize) {
        rustls::crypto::ring::default_provider().install_default().ok();
        let root = tempfile::TempDir::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/new-bucket", listener.local_addr().unwrap());
        let folder = root.path().to_owned();
        let keys = Keys { access_key: "test".into(), secret_key: "test-secret".into() };
        let faults = Faults { fail_share, fail_seed: 1, ..Faults::default() };
        tokio::spawn(async move { serve(listener, &folder, &keys, faults).await });
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let response = http.put(address).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.text().await.unwrap(), root.path().read_dir().unwrap().count())
    }

    #[tokio::test]
    async fn a_refused_request_gets_slow_down_and_has_no_effect() {
        let (status, text, left) = put_to(1.0).await;
        assert_eq!((status, left), (503, 0));
        assert!(text.contains("<Code>SlowDown</Code>"), "{text}");
    }

    #[tokio::test]
    async fn no_request_is_refused_by_default() {
        let (status, text, _) = put_to(0.0).await;
        assert_eq!(status, 403, "the server requires a signature: {text}");
    }
}
