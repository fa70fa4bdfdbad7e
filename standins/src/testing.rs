//! Test fixtures: a bucket, users with credits, uploaded images.

use std::time::Duration;

use retouch_core::config::StorageConfig;
use retouch_core::credits::{self, Adjusted, Adjustment};
use retouch_core::images::{self, InsertOutcome, NewImage, Quota, Uploader};
use retouch_core::results::NewResult;
use retouch_core::storage::{self, Storage};
use retouch_core::users::{self, SignIn, User};
use retouch_core::{Attempt, ImageId, JobId, ResultId, UserId, WorkerId};
use sqlx::PgPool;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::s3::{self, Faults, Keys};

/// The issuer of the users that [`user`] creates.
pub const ISSUER: &str = "https://issuer.test";

/// A bucket in a temporary folder, deleted on drop.
pub struct Bucket {
    pub storage: Storage,
    pub config: StorageConfig,
    root: TempDir,
}

impl Bucket {
    /// Starts an S3 server on a free port, with an empty bucket.
    pub async fn start() -> Self {
        Self::start_with(Faults::default()).await
    }

    /// The same, and the server has these faults.
    pub async fn start_with(faults: Faults) -> Self {
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
        // A separate thread, because the test's runtime may be blocked or gone when a request arrives.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::from_std(listener.into_std().expect("a listener"));
                let listener = listener.expect("a listener");
                s3::serve(listener, &folder, &keys, faults).await
            })
        });
        let storage = Storage::new(&config);
        storage.create_bucket().await.expect("created the bucket");
        Self { storage, config, root }
    }

    /// Starts a server like [`Self::start`], and the database owns the bucket.
    pub async fn of(pool: &PgPool) -> Self {
        let bucket = Self::start().await;
        let id: String = sqlx::query_scalar("select id::text from installation")
            .fetch_one(pool)
            .await
            .expect("the id of the database");
        let named = bucket.storage.put(storage::OWNER_KEY, "text/plain", id.into()).await;
        named.expect("named the owner");
        bucket
    }

    /// Returns the number of parts of unfinished multipart uploads.
    pub fn unfinished_parts(&self) -> usize {
        let files = std::fs::read_dir(self.root.path()).expect("the store's folder").flatten();
        // The server stores parts next to its buckets.
        files.filter(|file| file.file_name().to_string_lossy().contains("upload_id-")).count()
    }
}

/// Makes the database look reachable forever, so that every expired lease counts as a lost worker.
pub async fn always_reachable(pool: &PgPool) {
    sqlx::query("update reachability set since = '-infinity', seen_at = 'infinity'")
        .execute(pool)
        .await
        .expect("updated");
}

pub const fn first_attempt(job: JobId, worker: WorkerId) -> Attempt {
    Attempt { job, worker, number: 1 }
}

/// Returns the keys of all objects in order, except the object that names the bucket's owner.
pub async fn object_keys(storage: &Storage) -> Vec<String> {
    let (mut keys, mut from) = (Vec::new(), None);
    loop {
        let page = storage.page("", from, 1000).await.expect("listed");
        let found = page.objects.into_iter().map(|object| object.key);
        keys.extend(found.filter(|key| key != storage::OWNER_KEY));
        from = page.next;
        if from.is_none() {
            return keys;
        }
    }
}

/// Returns a user, created on the first call.
pub async fn sign_in(pool: &PgPool, issuer: &str, subject: &str) -> User {
    let sign_in =
        SignIn { issuer, subject, identity_hash: &[], token_issued_at: None, starts_again: false };
    users::find_or_create(pool, &sign_in).await.expect("found or created").expect("not deleted")
}

/// Creates a user with the free credits plus `extra`.
pub async fn user(pool: &PgPool, name: &str, extra: i32) -> UserId {
    let user = sign_in(pool, ISSUER, name).await;
    if extra != 0 {
        adjust(pool, user.id, extra).await;
    }
    user.id
}

/// Changes a balance like `admin grant`.
pub async fn adjust(pool: &PgPool, user: UserId, amount: i32) {
    let reference = format!("test {}", ImageId::new());
    let change = Adjustment { user, amount, reference: &reference, note: None };
    assert_eq!(credits::adjust(pool, &change).await.expect("adjusted"), Adjusted::Applied);
}

/// Creates an image of 64 × 48 pixels; stores `bytes` as its object if `storage` is given.
pub async fn image(
    pool: &PgPool,
    storage: Option<&Storage>,
    owner: UserId,
    bytes: &[u8],
) -> ImageId {
    let id = ImageId::new();
    // Before the object is written, as an upload does: a worker's janitor would take it for an orphan.
    images::announce(pool, id).await.expect("announced");
    if let Some(storage) = storage {
        let key = retouch_core::storage::image_key(id);
        storage.put(&key, "image/png", bytes.to_vec().into()).await.expect("stored");
    }
    let image = NewImage {
        id,
        uploader: Uploader::User(owner),
        name: None,
        content_type: "image/png",
        content_sha256: id.uuid().as_bytes().to_vec(),
        upload_key: None,
        size_bytes: bytes.len().max(1) as i64,
        width: 64,
        height: 48,
        has_preview: false,
        provenance: None,
    };
    assert_eq!(
        images::insert(pool, &image, Quota::NONE).await.expect("inserted"),
        InsertOutcome::Inserted
    );
    id
}

/// Polls every 20 ms until `poll` returns a value; panics after `timeout`.
pub async fn eventually<T, F>(timeout: Duration, what: &str, mut poll: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let polling = async {
        loop {
            if let Some(value) = poll().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(timeout, polling)
        .await
        .unwrap_or_else(|_| panic!("not within {timeout:?}: {what}"))
}

pub async fn waits_for_a_lock(pool: &PgPool) {
    wait_for_locks(pool, 1).await;
}

/// Waits until so many queries wait for locks. A machine may stand still for seconds, so the limit is generous; a panic
/// lists what the connections do.
pub async fn wait_for_locks(pool: &PgPool, queries: i64) {
    let waits = "select count(*) from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock'";
    let reached = async {
        while sqlx::query_scalar::<_, i64>(waits).fetch_one(pool).await.expect("counted") < queries
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(30), reached).await.is_ok() {
        return;
    }
    let activity = "select format('%s %s %s: %s', state, wait_event_type, wait_event, query)
                    from pg_stat_activity where datname = current_database()";
    let activity: Vec<String> = sqlx::query_scalar(activity).fetch_all(pool).await.expect("listed");
    panic!(
        "not within 30 s: {queries} queries wait for locks. Connections:\n{}",
        activity.join("\n")
    );
}

/// Returns the result of an attempt at a job, as a worker records it. Writes no objects.
pub fn new_result(job: JobId, attempt: i32) -> NewResult {
    NewResult {
        id: ResultId::new(),
        object_key: storage::result_key(job, attempt),
        thumbnail_key: storage::result_thumbnail_key(job, attempt),
        preview_key: None,
        size_bytes: 100,
        width: 64,
        height: 48,
        model: "tiny".into(),
        model_sha256: "0".repeat(64),
        device: "cpu".into(),
        is_demo: false,
        source: None,
        duration_ms: 12,
    }
}
