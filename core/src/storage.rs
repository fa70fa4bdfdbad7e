//! Images and results in S3: the only code that builds keys or talks to the bucket.
//!
//! Keys consist of ids. The key of a result also contains the attempt, so two attempts never write the same
//! object and the objects of a lost attempt can be deleted.
//!
//! A *doomed* object is on the janitor's list (`doomed_objects`). An *announced* object is doomed one hour ahead,
//! before it is written, and taken off the list by the transaction that records it.

use std::time::Duration;

use anyhow::Context;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_smithy_http_client::tls;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::io::AsyncRead;
use tokio::time::timeout;

use crate::config::StorageConfig;
use crate::{ImageId, JobId, with_causes};
use error::{Operation, failed, reason};

mod doomed;
mod error;
mod listing;
mod owner;
mod upload;

pub use doomed::doom_attempt;
pub(crate) use doomed::{
    announce, confirm, doom, doom_in, forget_doomed, lock_doomed, postpone_doomed,
};
pub use error::StorageError;
pub(crate) use listing::{FOLDERS, orphans, referenced, unknown};
pub use listing::{ListedObject, Page};
pub use owner::{Claim, Claimed, OwnerError, Reason, check_owner, claim_bucket};
pub use upload::Upload;
pub(crate) use upload::{UnfinishedUpload, abort_stale, forget_uploads, unfinished_uploads};

/// How many times the client tries a request.
const TRIES: u32 = 3;
/// Maximum wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum wait for an answer, not counting the time to send a body.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The slowest rate at which a body may be sent, in bytes per second.
const SLOWEST_RATE: usize = 1_000_000;
/// Maximum time for a probe.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the timeouts of a request with a body of `bytes` bytes. A store that hangs must not occupy a worker or an
/// upload for long.
fn timeouts(bytes: usize) -> TimeoutConfig {
    let sending = Duration::from_secs((bytes / SLOWEST_RATE) as u64);
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(ANSWER_TIMEOUT + sending)
        .operation_attempt_timeout(CONNECT_TIMEOUT + ANSWER_TIMEOUT + sending)
        .build()
}

/// Returns the overriding settings of a request with a body of `bytes` bytes.
fn settings_for(bytes: usize) -> aws_sdk_s3::config::Builder {
    aws_sdk_s3::Config::builder().timeout_config(timeouts(bytes))
}

/// Returns the overriding settings of a probe.
fn probing() -> aws_sdk_s3::config::Builder {
    aws_sdk_s3::Config::builder()
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::builder().operation_timeout(PING_TIMEOUT).build())
}

/// The key of the object that names the owner of the bucket.
pub const OWNER_KEY: &str = "installation";

pub fn image_key(image: ImageId) -> String {
    format!("images/{image}/original")
}

pub fn image_thumbnail_key(image: ImageId) -> String {
    format!("images/{image}/thumbnail")
}

pub fn image_preview_key(image: ImageId) -> String {
    format!("images/{image}/preview")
}

pub fn result_key(job: JobId, attempt: i32) -> String {
    format!("results/{job}/{attempt}.png")
}

pub fn result_thumbnail_key(job: JobId, attempt: i32) -> String {
    format!("results/{job}/{attempt}-thumbnail.png")
}

pub fn result_preview_key(job: JobId, attempt: i32) -> String {
    format!("results/{job}/{attempt}-preview.webp")
}

/// An object opened for streaming.
pub struct Object {
    /// Its bytes, or the requested range.
    pub body: Box<dyn AsyncRead + Send + Unpin>,
    /// The number of bytes in `body`.
    pub length: i64,
    pub content_type: Option<String>,
    /// For a range, for example `bytes 0-99/1000`.
    pub content_range: Option<String>,
    /// A tag that changes with the content.
    pub etag: Option<String>,
}

/// The bucket.
#[derive(Clone, Debug)]
pub struct Storage {
    client: Client,
    /// Signs URLs for browsers; `None` if browsers cannot reach the bucket.
    public: Option<Client>,
    public_endpoint: Option<String>,
    bucket: String,
}

impl Storage {
    /// Creates the client; sends nothing yet.
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
                .retry_config(RetryConfig::standard().with_max_attempts(TRIES))
                .timeout_config(timeouts(0));
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

    /// Returns the endpoint at which browsers reach the bucket, if there is one.
    pub fn public_endpoint(&self) -> Option<&str> {
        self.public_endpoint.as_deref()
    }

    /// Creates the bucket if it does not exist.
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
                .map_err(|error| anyhow::anyhow!(reason(&error)))
                .with_context(|| format!("creating the bucket {:?}", self.bucket)),
        }
    }

    /// Checks that the store answers and has the bucket, within two seconds and without a retry.
    pub async fn ping(&self) -> Result<(), StorageError> {
        let request = self.client.head_bucket().bucket(&self.bucket).customize();
        let answer = request.config_override(probing()).send().await;
        answer.map(drop).map_err(failed(Operation::Head))
    }

    /// Reads the object that names the owner of the bucket, within two seconds and without a retry. `None` if there is
    /// none.
    async fn owner(&self) -> Result<Option<String>, StorageError> {
        let request = self.client.get_object().bucket(&self.bucket).key(OWNER_KEY).customize();
        let late = |_| {
            Operation::Get.count_failure();
            StorageError::Failed(format!("the object store did not answer within {PING_TIMEOUT:?}"))
        };
        let read = async {
            let found = match request.config_override(probing()).send().await {
                Err(SdkError::ServiceError(refused)) if refused.err().is_no_such_key() => {
                    return Ok(None);
                }
                answered => answered.map_err(failed(Operation::Get))?,
            };
            let text = found.body.collect().await.map_err(|error| {
                Operation::Get.count_failure();
                StorageError::Failed(format!("reading {OWNER_KEY}: {}", with_causes(&error)))
            })?;
            Ok(Some(String::from_utf8_lossy(&text.to_vec()).into_owned()))
        };
        timeout(PING_TIMEOUT, read).await.map_err(late)?
    }

    pub async fn has_bucket(&self) -> Result<bool, StorageError> {
        match self.client.head_bucket().bucket(&self.bucket).send().await {
            Err(SdkError::ServiceError(refused)) if refused.raw().status().as_u16() == 404 => {
                Ok(false)
            }
            other => other.map(|_| true).map_err(failed(Operation::Head)),
        }
    }

    /// Writes an object, replacing an existing one.
    pub async fn put(
        &self,
        key: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<(), StorageError> {
        let settings = settings_for(body.len());
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .content_type(content_type)
            .body(ByteStream::from(body))
            .customize()
            .config_override(settings)
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
        tokio::io::AsyncReadExt::read_to_end(&mut body, &mut bytes).await.map_err(|error| {
            Operation::Get.count_failure();
            StorageError::Failed(format!("reading {key}: {error}"))
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

    /// Returns the length of an object in bytes, and its tag, without reading it.
    pub async fn head(&self, key: &str) -> Result<(i64, Option<String>), StorageError> {
        match self.client.head_object().bucket(&self.bucket).key(key).send().await {
            Ok(found) => Ok((found.content_length().unwrap_or(0), found.e_tag)),
            Err(SdkError::ServiceError(refused)) if refused.err().is_not_found() => {
                Err(StorageError::Missing(key.to_owned()))
            }
            Err(error) => Err(failed(Operation::Head)(error)),
        }
    }

    /// Deletes an object. A missing object is not an error.
    pub async fn delete(&self, key: &str) -> Result<(), StorageError> {
        let deleted = self.client.delete_object().bucket(&self.bucket).key(key).send().await;
        deleted.map(drop).map_err(failed(Operation::Delete))
    }

    /// Returns a URL at which a browser can read the object from `from` until `until`; `None` without a public endpoint. The
    /// URL depends on nothing else, so that a browser finds the picture in its cache.
    pub async fn public_url(
        &self,
        key: &str,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<String>, StorageError> {
        let Some(public) = &self.public else { return Ok(None) };
        let valid = PresigningConfig::builder()
            .start_time(from.into())
            .expires_in((until - from).to_std().unwrap_or_default())
            .build()
            .map_err(|error| StorageError::Failed(error.to_string()))?;
        let signed = public.get_object().bucket(&self.bucket).key(key).presigned(valid).await;
        signed
            .map(|request| Some(request.uri().to_owned()))
            .map_err(|error| StorageError::Failed(reason(&error)))
    }
}
