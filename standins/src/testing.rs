//! What a test needs beside a database of its own: a bucket, a queue and people with credits.

use std::time::Duration;

use retouch_core::config::StorageConfig;
use retouch_core::credits::{self, Adjusted, Adjustment};
use retouch_core::images::{self, NewImage, Recorded, Uploader};
use retouch_core::storage::Storage;
use retouch_core::{ImageId, UserId, users};
use sqlx::PgPool;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::s3::{self, Faults, Keys};

/// The issuer of people made by [`user`].
pub const ISSUER: &str = "https://issuer.test";

/// A bucket in a folder that is gone when this is dropped.
pub struct Bucket {
    /// The client.
    pub storage: Storage,
    /// The settings that lead to it.
    pub config: StorageConfig,
    root: TempDir,
}

impl Bucket {
    /// Starts an S3 server on a free port, with an empty bucket.
    pub async fn start() -> Self {
        let root = TempDir::new().expect("a temporary folder");
        let keys = Keys { access_key: "test".into(), secret_key: "test-secret".into() };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let config = StorageConfig {
            s3_endpoint: Some(format!("http://{}", listener.local_addr().expect("bound"))),
            s3_region: "us-east-1".into(),
            s3_bucket: "test".into(),
            s3_access_key_id: keys.access_key.clone(),
            s3_secret_access_key: keys.secret_key.parse().unwrap_or_else(|never| match never {}),
            s3_public_endpoint: None,
        };
        let folder = root.path().to_owned();
        // On a thread of its own: a test's runtime may be busy or gone when a request comes.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::from_std(listener.into_std().expect("a listener"));
                let listener = listener.expect("a listener");
                s3::serve(listener, &folder, &keys, Faults::default()).await
            })
        });
        let storage = Storage::new(&config);
        storage.create_bucket().await.expect("created the bucket");
        Self { storage, config, root }
    }

    /// How many parts of unfinished uploads the store holds.
    pub fn unfinished_parts(&self) -> usize {
        let files = std::fs::read_dir(self.root.path()).expect("the store's folder").flatten();
        // The server keeps them beside its buckets, and counts on nobody to tidy up.
        files.filter(|file| file.file_name().to_string_lossy().contains("upload_id-")).count()
    }
}

/// A new person with the free credits of every new user and `extra` more.
pub async fn user(pool: &PgPool, name: &str, extra: i32) -> UserId {
    let user = users::sign_in(pool, ISSUER, name).await.expect("signed in");
    if extra != 0 {
        adjust(pool, user.id, extra).await;
    }
    user.id
}

/// Changes a balance by an operator's hand.
pub async fn adjust(pool: &PgPool, user: UserId, amount: i32) {
    let reference = format!("test {}", ImageId::new());
    let change = Adjustment { user, amount, reference: &reference, note: None };
    assert_eq!(credits::adjust(pool, &change).await.expect("adjusted"), Adjusted::Now);
}

/// The row of an uploaded picture of 64 × 48 pixels; `storage` receives `bytes` as its object.
pub async fn image(
    pool: &PgPool,
    storage: Option<&Storage>,
    owner: UserId,
    bytes: &[u8],
) -> ImageId {
    let id = ImageId::new();
    if let Some(storage) = storage {
        let key = retouch_core::storage::image_key(id);
        storage.put(&key, "image/png", bytes.to_vec().into()).await.expect("stored");
    }
    let image = NewImage {
        id,
        uploader: Uploader::User(owner),
        content_type: "image/png",
        content_sha256: id.uuid().as_bytes().to_vec(),
        size_bytes: bytes.len().max(1) as i64,
        width: 64,
        height: 48,
    };
    images::announce(pool, id).await.expect("announced");
    assert_eq!(images::insert(pool, &image).await.expect("inserted"), Recorded::Yes);
    id
}

/// Looks every 20 ms until `found` answers with something, for at most `patience`.
pub async fn eventually<T, F>(patience: Duration, what: &str, mut found: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let looking = async {
        loop {
            if let Some(value) = found().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(patience, looking)
        .await
        .unwrap_or_else(|_| panic!("not within {patience:?}: {what}"))
}
