//! An S3 server over a folder, in process. For one machine and for tests; not for production.

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

/// The key pair that the server accepts.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The access key id.
    pub access_key: String,
    /// Its secret.
    pub secret_key: String,
}

/// Serves the folder `root` at `listener` for ever; buckets are its sub-folders.
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
        // Small answers must not wait for a full packet.
        stream.set_nodelay(true).ok();
        let (service, overload) = (service.clone(), overload.clone());
        let service = service_fn(move |request| answer(service.clone(), overload.clone(), request));
        let connection = http.serve_connection(TokioIo::new(stream), service).into_owned();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error, "A connection broke off");
            }
        });
    }
}

async fn answer(
    service: S3Service,
    overload: Arc<Overload>,
    request: Request<Incoming>,
) -> Result<HttpResponse, HttpError> {
    if overload.refuses() {
        let refusal = s3s::s3_error!(SlowDown, "Please reduce your request rate.");
        return refusal.to_http_response().map_err(|error| HttpError::new(Box::new(error)));
    }
    service.call(request.map(Body::from)).await
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
        let faults = Faults { fail_share, fail_seed: 1 };
        tokio::spawn(async move { serve(listener, &folder, &keys, faults).await });
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = http.put(address).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.text().await.unwrap(), root.path().read_dir().unwrap().count())
    }

    #[tokio::test]
    async fn a_refused_request_is_told_to_slow_down_and_leaves_nothing_behind() {
        let (status, text, left) = put_to(1.0).await;
        assert_eq!((status, left), (503, 0));
        assert!(text.contains("<Code>SlowDown</Code>"), "{text}");
    }

    #[tokio::test]
    async fn nothing_is_refused_that_nobody_asked_for() {
        let (status, text, _) = put_to(0.0).await;
        assert_eq!(status, 403, "the server itself wants a signature: {text}");
    }
}
