//! An S3 server over a folder, in process. For one machine and for tests; not for production.

use std::path::Path;

use anyhow::Context;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;

/// The key pair that the server accepts.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The access key id.
    pub access_key: String,
    /// Its secret.
    pub secret_key: String,
}

/// Serves the folder `root` at `listener` for ever; buckets are its sub-folders.
pub async fn serve(listener: TcpListener, root: &Path, keys: &Keys) -> anyhow::Result<()> {
    std::fs::create_dir_all(root).with_context(|| format!("creating {}", root.display()))?;
    let files = s3s_fs::FileSystem::new(root)
        .map_err(|error| anyhow::anyhow!("opening {}: {error:?}", root.display()))?;
    let mut builder = S3ServiceBuilder::new(files);
    builder.set_auth(SimpleAuth::from_single(keys.access_key.clone(), keys.secret_key.clone()));
    let service = builder.build();
    let http = Builder::new(TokioExecutor::new());
    loop {
        let (stream, _) = listener.accept().await.context("accepting a connection")?;
        // Small answers must not wait for a full packet.
        stream.set_nodelay(true).ok();
        let connection = http.serve_connection(TokioIo::new(stream), service.clone()).into_owned();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error, "A connection broke off");
            }
        });
    }
}
