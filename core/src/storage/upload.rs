//! Streaming uploads: parts of an object are sent while the rest is still being made, so a picture of any size
//! needs memory for only a few parts. Data near the start that is known last, such as a signature, goes
//! into the first part, which is then sent last.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::{Bytes, BytesMut};
use sqlx::{PgConnection, PgPool};
use tokio::task::JoinSet;

use super::error::{Operation, StorageError, failed};
use super::{Storage, settings_for};
use crate::db;

/// The size of a part. S3 requires at least 5 MiB and allows 10,000 parts, so an object can have 78 GiB.
const PART_BYTES: usize = 8 << 20;

/// Maximum concurrent part uploads; the next part fills at the same time.
const PARTS_AT_ONCE: usize = 2;

/// An object being written. Dropping it before [`Upload::finish`] leaves no object and no parts.
pub struct Upload {
    storage: Storage,
    pool: PgPool,
    key: String,
    content_type: String,
    buffer: BytesMut,
    /// The room for bytes that [`Upload::finish_inserting`] adds to the first part.
    reserved: usize,
    /// The first part, if there is something to insert into it and it is full.
    head: Option<Bytes>,
    size_bytes: u64,
    parts: Option<Parts>,
}

/// A multipart upload that has started.
struct Parts {
    upload_id: String,
    sent: i32,
    in_flight: JoinSet<Result<CompletedPart, StorageError>>,
    completed: Vec<CompletedPart>,
}

impl Storage {
    /// Starts writing the object at `key`. Sends nothing until the first part is full.
    pub fn upload(&self, pool: &PgPool, key: String, content_type: impl Into<String>) -> Upload {
        Upload {
            storage: self.clone(),
            pool: pool.clone(),
            key,
            content_type: content_type.into(),
            buffer: BytesMut::new(),
            reserved: 0,
            head: None,
            size_bytes: 0,
            parts: None,
        }
    }

    /// Aborts an unfinished upload and deletes its parts.
    pub(crate) async fn abort(&self, upload: &UnfinishedUpload) -> Result<(), StorageError> {
        abort(&self.client, &self.bucket, &upload.object_key, &upload.upload_id).await
    }
}

/// A multipart upload that was recorded as started and not as ended.
#[derive(Clone, Debug)]
pub(crate) struct UnfinishedUpload {
    upload_id: String,
    pub(crate) object_key: String,
}

pub(crate) async fn unfinished_uploads(
    conn: &mut PgConnection,
    keys: &[String],
) -> sqlx::Result<Vec<UnfinishedUpload>> {
    sqlx::query_as!(
        UnfinishedUpload,
        "select upload_id, object_key from unfinished_uploads where object_key = any($1)",
        keys,
    )
    .fetch_all(conn)
    .await
}

/// Deletes the rows of aborted uploads.
pub(crate) async fn forget_uploads(
    conn: &mut PgConnection,
    uploads: &[UnfinishedUpload],
) -> sqlx::Result<()> {
    let ids: Vec<String> = uploads.iter().map(|upload| upload.upload_id.clone()).collect();
    sqlx::query!("delete from unfinished_uploads where upload_id = any($1)", &ids)
        .execute(conn)
        .await
        .map(drop)
}

/// Aborts uploads that started more than `hours` ago and returns their number.
pub(crate) async fn abort_stale(
    storage: &Storage,
    pool: &PgPool,
    hours: i32,
) -> anyhow::Result<usize> {
    let stale = sqlx::query_as!(
        UnfinishedUpload,
        "select upload_id, object_key from unfinished_uploads
         where since < now() - make_interval(hours => $1) order by since limit 1000",
        hours,
    )
    .fetch_all(pool)
    .await?;
    for upload in &stale {
        storage.abort(upload).await?;
    }
    forget_uploads(&mut *pool.acquire().await?, &stale).await?;
    Ok(stale.len())
}

impl Upload {
    /// Holds the first part back, with room for `bytes` bytes that are known at the end; less than 8 MiB. All parts still
    /// have the same size, which some stores demand.
    #[must_use]
    pub fn reserving(mut self, bytes: usize) -> Self {
        self.reserved = bytes.min(PART_BYTES - 1);
        self
    }

    /// Appends bytes. Waits while [`PARTS_AT_ONCE`] parts are being sent.
    ///
    /// # Errors
    /// If the store fails, or the database, which records multipart uploads.
    pub async fn push(&mut self, bytes: &Bytes) -> Result<(), StorageError> {
        self.size_bytes += bytes.len() as u64;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let is_head = self.reserved > 0 && self.head.is_none();
            let full = if is_head { PART_BYTES - self.reserved } else { PART_BYTES };
            let (now, later) = rest.split_at(rest.len().min(full - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            rest = later;
            if self.buffer.len() == full {
                if is_head {
                    self.head = Some(self.buffer.split().freeze());
                } else {
                    let body = self.buffer.split().freeze();
                    self.send_part(body).await?;
                }
            }
        }
        Ok(())
    }

    /// Sends the rest and completes the object. Returns its size in bytes.
    ///
    /// # Errors
    /// Same as [`Upload::push`]; no object is written.
    pub async fn finish(self) -> Result<u64, StorageError> {
        self.finish_inserting(0, &[]).await
    }

    /// Like [`Upload::finish`], with `inserted` at the offset `at`, which lies in the first part.
    ///
    /// # Errors
    /// Same as [`Upload::push`]; no object is written.
    pub async fn finish_inserting(
        mut self,
        at: usize,
        inserted: &[u8],
    ) -> Result<u64, StorageError> {
        let rest = self.buffer.split().freeze();
        if let Some(head) = self.head.take() {
            let head = insert(&head, at, inserted)?;
            if self.parts.is_none() && rest.is_empty() {
                self.storage.put(&self.key, &self.content_type, head.clone()).await?;
                return Ok(head.len() as u64);
            }
            if !rest.is_empty() {
                self.send_part(rest).await?;
            }
            self.send(1, head).await?;
            self.size_bytes += inserted.len() as u64;
        } else if self.parts.is_none() {
            let body = insert(&rest, at, inserted)?;
            let size_bytes = body.len() as u64;
            self.storage.put(&self.key, &self.content_type, body).await?;
            return Ok(size_bytes);
        } else if !rest.is_empty() {
            self.send_part(rest).await?;
        }
        let Some(parts) = &mut self.parts else { return Ok(self.size_bytes) };
        while let Some(part) = parts.in_flight.join_next().await {
            parts.completed.push(completed(part)?);
        }
        parts.completed.sort_by_key(CompletedPart::part_number);
        let list = CompletedMultipartUpload::builder()
            .set_parts(Some(std::mem::take(&mut parts.completed)))
            .build();
        self.storage
            .client
            .complete_multipart_upload()
            .bucket(&self.storage.bucket)
            .key(&self.key)
            .upload_id(&parts.upload_id)
            .multipart_upload(list)
            .customize()
            // Some stores copy all parts into one file before they answer.
            .config_override(settings_for(self.size_bytes as usize))
            .send()
            .await
            .map_err(failed(Operation::Multipart))?;
        let upload_id = std::mem::take(&mut parts.upload_id);
        self.parts = None;
        // The object is complete. If the row stays, the janitor later aborts an upload that no longer exists, which
        // has no effect.
        if let Err(error) = forget(&self.pool, &upload_id).await {
            tracing::warn!(%error, "Could not delete the row of the finished upload of {}", self.key);
        }
        Ok(self.size_bytes)
    }

    /// Sends the next part. Skips part number 1 if the head of the file is sent last.
    async fn send_part(&mut self, body: Bytes) -> Result<(), StorageError> {
        if self.parts.is_none() {
            self.begin().await?;
        }
        let Some(parts) = &mut self.parts else { return Ok(()) };
        parts.sent += 1;
        let number = parts.sent + i32::from(self.reserved > 0);
        self.send(number, body).await
    }

    async fn send(&mut self, number: i32, body: Bytes) -> Result<(), StorageError> {
        let Some(parts) = &mut self.parts else { return Ok(()) };
        if parts.in_flight.len() >= PARTS_AT_ONCE
            && let Some(part) = parts.in_flight.join_next().await
        {
            parts.completed.push(completed(part)?);
        }
        let settings = settings_for(body.len());
        let part = self
            .storage
            .client
            .upload_part()
            .bucket(&self.storage.bucket)
            .key(&self.key)
            .upload_id(&parts.upload_id)
            .part_number(number)
            .body(ByteStream::from(body))
            .customize()
            .config_override(settings);
        parts.in_flight.spawn(async move {
            let sent = part.send().await.map_err(failed(Operation::Multipart))?;
            Ok(CompletedPart::builder()
                .part_number(number)
                .set_e_tag(sent.e_tag().map(str::to_owned))
                .build())
        });
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), StorageError> {
        let Storage { client, bucket, .. } = &self.storage;
        let begun = client
            .create_multipart_upload()
            .bucket(bucket)
            .key(&self.key)
            .content_type(&self.content_type)
            .send()
            .await
            .map_err(failed(Operation::Multipart))?;
        let upload_id = begun.upload_id().unwrap_or_default().to_owned();
        // From here on, dropping this aborts the upload.
        self.parts = Some(Parts {
            upload_id: upload_id.clone(),
            sent: 0,
            in_flight: JoinSet::new(),
            completed: Vec::new(),
        });
        let record = || async {
            sqlx::query!(
                "insert into unfinished_uploads (upload_id, object_key) values ($1, $2) on conflict do nothing",
                upload_id,
                self.key,
            )
            .execute(&self.pool)
            .await
        };
        db::retry(record).await?;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (storage, pool, key) = (self.storage.clone(), self.pool.clone(), self.key.clone());
        runtime.spawn(async move {
            // Wait for the parts in flight: a part that arrives after the abort would stay, and canceling its request
            // does not prevent that.
            while parts.in_flight.join_next().await.is_some() {}
            let aborted = abort(&storage.client, &storage.bucket, &key, &parts.upload_id).await;
            let ended = match aborted {
                Ok(()) => forget(&pool, &parts.upload_id).await,
                Err(error) => Err(error),
            };
            if let Err(error) = ended {
                tracing::warn!(%error, "Could not abort the upload of {key}; the janitor will try again");
            }
        });
    }
}

/// Returns `bytes` with `inserted` at the offset `at`.
fn insert(bytes: &Bytes, at: usize, inserted: &[u8]) -> Result<Bytes, StorageError> {
    if inserted.is_empty() {
        return Ok(bytes.clone());
    }
    let outside = || StorageError::Failed(format!("the object has fewer than {at} bytes"));
    let (before, after) = bytes.split_at_checked(at).ok_or_else(outside)?;
    Ok([before, inserted, after].concat().into())
}

fn completed(
    part: Result<Result<CompletedPart, StorageError>, tokio::task::JoinError>,
) -> Result<CompletedPart, StorageError> {
    part.unwrap_or_else(|error| Err(StorageError::Failed(format!("sending a part: {error}"))))
}

async fn abort(
    client: &Client,
    bucket: &str,
    key: &str,
    upload_id: &str,
) -> Result<(), StorageError> {
    let aborted =
        client.abort_multipart_upload().bucket(bucket).key(key).upload_id(upload_id).send().await;
    match aborted {
        // The upload is already completed or aborted. Stores report that with different errors.
        Err(SdkError::ServiceError(refused)) if refused.raw().status().is_client_error() => {
            tracing::debug!("The upload of {key} had already ended");
            Ok(())
        }
        other => other.map(drop).map_err(failed(Operation::Multipart)),
    }
}

async fn forget(pool: &PgPool, upload_id: &str) -> Result<(), StorageError> {
    let forget = sqlx::query!("delete from unfinished_uploads where upload_id = $1", upload_id);
    db::within(forget.execute(pool)).await?;
    Ok(())
}
