//! Pictures in S3: the only code that names a key or speaks to the bucket.
//!
//! Keys are made of ids alone. A result's key also holds the attempt, so that two attempts never write
//! the same object and the loser's can be thrown away.

use std::time::Duration;

use anyhow::Context;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_s3::error::{DisplayErrorContext, SdkError};
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_smithy_http_client::tls;
use bytes::Bytes;
use sqlx::{PgConnection, PgPool};
use tokio::io::AsyncRead;

use crate::config::StorageConfig;
use crate::{ImageId, JobId};

mod listing;
mod upload;

pub(crate) use listing::{FOLDERS, named, orphans, unknown};
pub use listing::{Listed, Page};
pub use upload::Upload;
pub(crate) use upload::{Unfinished, abort_stale, forget_uploads, unfinished};

/// The key of an uploaded picture.
pub fn image_key(image: ImageId) -> String {
    format!("images/{image}/original")
}

/// The key of an uploaded picture's small copy.
pub fn image_thumbnail_key(image: ImageId) -> String {
    format!("images/{image}/thumbnail")
}

/// The key of what one attempt of a job made.
pub fn result_key(job: JobId, attempt: i32) -> String {
    format!("results/{job}/{attempt}.png")
}

/// The key of the small copy of what one attempt of a job made.
pub fn result_thumbnail_key(job: JobId, attempt: i32) -> String {
    format!("results/{job}/{attempt}-thumbnail.png")
}

/// Why an object could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// There is no such object.
    #[error("no object at {0}")]
    Missing(String),
    /// The range asked for lies outside of the object.
    #[error("the range lies outside of the object")]
    Range,
    /// The store did not answer or refused.
    #[error("{0}")]
    Failed(String),
}

/// An object as it is streamed to a reader.
pub struct Object {
    /// Its bytes, or the range of them that was asked for.
    pub body: Box<dyn AsyncRead + Send + Unpin>,
    /// How many bytes `body` yields.
    pub length: i64,
    /// As it was stored.
    pub content_type: Option<String>,
    /// `bytes 0-99/1000` when a range was asked for.
    pub content_range: Option<String>,
    /// Changes with the content.
    pub etag: Option<String>,
}

/// The bucket.
#[derive(Clone, Debug)]
pub struct Storage {
    client: Client,
    /// Signs addresses that browsers can reach; `None` when they cannot reach the bucket.
    public: Option<Client>,
    public_endpoint: Option<String>,
    bucket: String,
}

impl Storage {
    /// Prepares the client; nothing is sent yet.
    pub fn new(config: &StorageConfig) -> Self {
        let client = |endpoint: Option<&str>| {
            let http = aws_smithy_http_client::Builder::new()
                .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
                .build_https();
            let mut builder = aws_sdk_s3::Config::builder()
                .behavior_version(BehaviorVersion::latest())
                .http_client(http)
                .region(Region::new(config.s3_region.clone()))
                .credentials_provider(Credentials::new(
                    &config.s3_access_key_id,
                    config.s3_secret_access_key.reveal(),
                    None,
                    None,
                    "settings",
                ))
                .retry_config(RetryConfig::standard().with_max_attempts(4))
                .timeout_config(
                    TimeoutConfig::builder()
                        .connect_timeout(Duration::from_secs(3))
                        .read_timeout(Duration::from_secs(30))
                        .operation_timeout(Duration::from_mins(2))
                        .build(),
                );
            if let Some(endpoint) = endpoint {
                builder = builder.endpoint_url(endpoint).force_path_style(true);
            }
            Client::from_conf(builder.build())
        };
        Self {
            client: client(config.s3_endpoint.as_deref()),
            public: config.s3_public_endpoint.as_deref().map(|endpoint| client(Some(endpoint))),
            public_endpoint: config.s3_public_endpoint.clone(),
            bucket: config.s3_bucket.clone(),
        }
    }

    /// Where browsers reach the bucket, if they do.
    pub fn public_endpoint(&self) -> Option<&str> {
        self.public_endpoint.as_deref()
    }

    /// Creates the bucket when it is missing.
    pub async fn create_bucket(&self) -> anyhow::Result<()> {
        if self.ping().await.is_ok() {
            return Ok(());
        }
        let created = self.client.create_bucket().bucket(&self.bucket).send().await;
        match created {
            Err(SdkError::ServiceError(refused))
                if refused.err().is_bucket_already_owned_by_you()
                    || refused.err().is_bucket_already_exists() =>
            {
                Ok(())
            }
            other => other
                .map(drop)
                .map_err(|error| anyhow::anyhow!("{}", DisplayErrorContext(&error)))
                .with_context(|| format!("creating the bucket {:?}", self.bucket)),
        }
    }

    /// Asks the store for the bucket.
    pub async fn ping(&self) -> Result<(), StorageError> {
        let answer = self.client.head_bucket().bucket(&self.bucket).send().await;
        answer.map(drop).map_err(failed(Operation::Head))
    }

    /// Stores an object, or replaces it.
    pub async fn put(
        &self,
        key: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<(), StorageError> {
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .content_type(content_type)
            .body(ByteStream::from(body))
            .send()
            .await
            .map(drop)
            .map_err(failed(Operation::Put))
    }

    /// Reads a whole object.
    pub async fn get(&self, key: &str) -> Result<Bytes, StorageError> {
        let found = self.open(key, None).await?;
        let mut body = found.body;
        let mut bytes = Vec::with_capacity(usize::try_from(found.length).unwrap_or(0));
        tokio::io::AsyncReadExt::read_to_end(&mut body, &mut bytes)
            .await
            .map_err(|error| {
                metrics::counter!("retouch_storage_errors_total", "operation" => Operation::Get.as_str())
                    .increment(1);
                StorageError::Failed(format!("reading {key} broke off: {error}"))
            })?;
        Ok(bytes.into())
    }

    /// Opens an object for streaming; `range` is the value of an HTTP `Range` header.
    pub async fn open(&self, key: &str, range: Option<&str>) -> Result<Object, StorageError> {
        let found = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key)
            .set_range(range.map(str::to_owned))
            .send()
            .await
            .map_err(|error| match &error {
                SdkError::ServiceError(refused) if refused.err().is_no_such_key() => {
                    StorageError::Missing(key.to_owned())
                }
                SdkError::ServiceError(refused) if refused.raw().status().as_u16() == 416 => {
                    StorageError::Range
                }
                _ => failed(Operation::Get)(error),
            })?;
        Ok(Object {
            length: found.content_length().unwrap_or(0),
            content_type: found.content_type().map(str::to_owned),
            content_range: found.content_range().map(str::to_owned),
            etag: found.e_tag().map(str::to_owned),
            body: Box::new(found.body.into_async_read()),
        })
    }

    /// Deletes an object; one that is not there counts as deleted.
    pub async fn delete(&self, key: &str) -> Result<(), StorageError> {
        let deleted = self.client.delete_object().bucket(&self.bucket).key(key).send().await;
        deleted.map(drop).map_err(failed(Operation::Delete))
    }

    /// An address at which a browser can read the object for `valid`; `None` without a public endpoint.
    pub async fn public_url(
        &self,
        key: &str,
        valid: Duration,
    ) -> Result<Option<String>, StorageError> {
        let Some(public) = &self.public else { return Ok(None) };
        let valid = PresigningConfig::expires_in(valid)
            .map_err(|error| StorageError::Failed(error.to_string()))?;
        let signed = public.get_object().bucket(&self.bucket).key(key).presigned(valid).await;
        signed
            .map(|request| Some(request.uri().to_owned()))
            .map_err(|error| StorageError::Failed(DisplayErrorContext(&error).to_string()))
    }

    /// All keys in the bucket, for checks and tests.
    pub async fn keys(&self) -> Result<Vec<String>, StorageError> {
        let mut pages = self.client.list_objects_v2().bucket(&self.bucket).into_paginator().send();
        let mut keys = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(failed(Operation::List))?;
            keys.extend(
                page.contents().iter().filter_map(|object| object.key()).map(str::to_owned),
            );
        }
        Ok(keys)
    }
}

/// What was asked of the store, as the metric of its failures names it.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Head,
    Get,
    Put,
    Delete,
    List,
    /// Any call of a multipart upload.
    Upload,
}

impl Operation {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Get => "get",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Upload => "upload",
        }
    }
}

/// Counts a failure of the store and says what it was.
fn failed<E>(operation: Operation) -> impl FnOnce(SdkError<E>) -> StorageError
where
    E: std::error::Error + 'static,
{
    move |error| {
        metrics::counter!("retouch_storage_errors_total", "operation" => operation.as_str())
            .increment(1);
        StorageError::Failed(DisplayErrorContext(&error).to_string())
    }
}

/// Leaves objects to the janitor.
pub(crate) async fn doom(conn: &mut PgConnection, keys: &[String]) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into doomed_objects (object_key) select unnest($1::text[]) on conflict do nothing",
        keys,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Leaves the objects of an attempt that will not be finished to the janitor.
pub async fn doom_attempt(pool: &PgPool, job: JobId, attempt: i32) -> sqlx::Result<()> {
    let mut conn = pool.acquire().await?;
    doom(&mut conn, &[result_key(job, attempt), result_thumbnail_key(job, attempt)]).await
}

/// Announces objects that are about to be written: unless they are [`kept`](keep) within the hour, the
/// janitor deletes them. So a process that dies between the objects and their row leaves nothing behind.
pub(crate) async fn announce(pool: &PgPool, keys: &[String]) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into doomed_objects (object_key, since, is_announced)
         select unnest($1::text[]), now() + interval '1 hour', true
         on conflict do nothing",
        keys,
    )
    .execute(pool)
    .await
    .map(drop)
}

/// Takes announced objects off the janitor's list, in the transaction that writes their row. Returns how
/// many were still announced: the others may be gone.
pub(crate) async fn keep(conn: &mut PgConnection, keys: &[String]) -> sqlx::Result<u64> {
    let kept = sqlx::query!(
        "delete from doomed_objects where object_key = any($1) and is_announced",
        keys,
    )
    .execute(conn)
    .await?;
    Ok(kept.rows_affected())
}

/// Takes deleted keys off the janitor's list.
pub(crate) async fn forget_doomed(conn: &mut PgConnection, keys: &[String]) -> sqlx::Result<()> {
    sqlx::query!("delete from doomed_objects where object_key = any($1)", keys)
        .execute(conn)
        .await
        .map(drop)
}

/// Keys that wait for the janitor, the oldest first, locked for the caller's transaction: whoever wants to
/// keep one waits until it is gone, and another janitor takes others.
pub(crate) async fn lock_doomed(conn: &mut PgConnection, most: i64) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        "select object_key from doomed_objects where since <= now()
         order by since limit $1 for update skip locked",
        most,
    )
    .fetch_all(conn)
    .await
}
