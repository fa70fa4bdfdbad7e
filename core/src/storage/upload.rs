//! An object written while it is still being made: parts go out as they come, so that a picture of any size
//! takes the memory of a few parts.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::{Bytes, BytesMut};
use sqlx::{PgConnection, PgPool};
use tokio::task::JoinSet;

use super::{Operation, Storage, StorageError, failed};

/// The size of a part. S3 wants at least 5 MiB and at most 10,000 parts: this makes objects of up to 78 GiB.
const PART_BYTES: usize = 8 << 20;

/// Parts on their way at once; while they are, the next one is collected.
const PARTS_AT_ONCE: usize = 2;

/// An object that is being written. Dropping it before [`Upload::finish`] leaves no object and no parts.
pub struct Upload {
    storage: Storage,
    pool: PgPool,
    key: String,
    content_type: &'static str,
    waiting: BytesMut,
    size_bytes: u64,
    parts: Option<Parts>,
}

/// A multipart upload that S3 knows of.
struct Parts {
    upload_id: String,
    sent: i32,
    under_way: JoinSet<Result<CompletedPart, StorageError>>,
    completed: Vec<CompletedPart>,
}

impl Storage {
    /// Starts writing the object at `key`; nothing is sent before there is a part's worth of it.
    pub fn upload(&self, pool: &PgPool, key: String, content_type: &'static str) -> Upload {
        Upload {
            storage: self.clone(),
            pool: pool.clone(),
            key,
            content_type,
            waiting: BytesMut::new(),
            size_bytes: 0,
            parts: None,
        }
    }

    /// Ends an upload that nobody will complete; its parts go.
    pub(crate) async fn abort(&self, upload: &Unfinished) -> Result<(), StorageError> {
        abort(&self.client, &self.bucket, &upload.object_key, &upload.upload_id).await
    }
}

/// An upload that was begun and, as far as we know, never ended.
#[derive(Clone, Debug)]
pub(crate) struct Unfinished {
    upload_id: String,
    /// What it was to write.
    pub(crate) object_key: String,
}

/// The unfinished uploads to `keys`.
pub(crate) async fn unfinished(
    conn: &mut PgConnection,
    keys: &[String],
) -> sqlx::Result<Vec<Unfinished>> {
    sqlx::query_as!(
        Unfinished,
        "select upload_id, object_key from unfinished_uploads where object_key = any($1)",
        keys,
    )
    .fetch_all(conn)
    .await
}

/// Takes uploads that were aborted off the list.
pub(crate) async fn forget_uploads(
    conn: &mut PgConnection,
    uploads: &[Unfinished],
) -> sqlx::Result<()> {
    let ids: Vec<String> = uploads.iter().map(|upload| upload.upload_id.clone()).collect();
    sqlx::query!("delete from unfinished_uploads where upload_id = any($1)", &ids)
        .execute(conn)
        .await
        .map(drop)
}

/// Aborts uploads that nobody can still be at: those begun more than `hours` ago. Returns how many.
pub(crate) async fn abort_stale(
    storage: &Storage,
    pool: &PgPool,
    hours: i32,
) -> anyhow::Result<usize> {
    let stale = sqlx::query_as!(
        Unfinished,
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
    /// Adds bytes at the end. Waits while enough parts are on their way.
    ///
    /// # Errors
    /// When the store, or the database that keeps track of uploads, does not answer.
    pub async fn push(&mut self, bytes: &Bytes) -> Result<(), StorageError> {
        self.size_bytes += bytes.len() as u64;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(PART_BYTES - self.waiting.len()));
            self.waiting.extend_from_slice(now);
            rest = later;
            if self.waiting.len() == PART_BYTES {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    /// Writes what is left and makes the object visible; returns its size in bytes.
    ///
    /// # Errors
    /// As [`Upload::push`]; there is no object then.
    pub async fn finish(mut self) -> Result<u64, StorageError> {
        if self.parts.is_none() {
            let body = self.waiting.split().freeze();
            self.storage.put(&self.key, self.content_type, body).await?;
            return Ok(self.size_bytes);
        }
        if !self.waiting.is_empty() {
            self.send_part().await?;
        }
        let Some(parts) = &mut self.parts else { return Ok(self.size_bytes) };
        while let Some(part) = parts.under_way.join_next().await {
            parts.completed.push(arrived(part)?);
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
            .send()
            .await
            .map_err(failed(Operation::Upload))?;
        let upload_id = std::mem::take(&mut parts.upload_id);
        self.parts = None;
        // The object is there. A row that stays is aborted in vain when the object's time has come.
        if let Err(error) = forget(&self.pool, &upload_id).await {
            tracing::warn!(%error, "Could not forget the finished upload of {}", self.key);
        }
        Ok(self.size_bytes)
    }

    async fn send_part(&mut self) -> Result<(), StorageError> {
        if self.parts.is_none() {
            self.parts = Some(self.begin().await?);
        }
        let Some(parts) = &mut self.parts else { return Ok(()) };
        if parts.under_way.len() >= PARTS_AT_ONCE
            && let Some(part) = parts.under_way.join_next().await
        {
            parts.completed.push(arrived(part)?);
        }
        parts.sent += 1;
        let (number, body) = (parts.sent, self.waiting.split().freeze());
        let part = self
            .storage
            .client
            .upload_part()
            .bucket(&self.storage.bucket)
            .key(&self.key)
            .upload_id(&parts.upload_id)
            .part_number(number)
            .body(ByteStream::from(body));
        parts.under_way.spawn(async move {
            let sent = part.send().await.map_err(failed(Operation::Upload))?;
            Ok(CompletedPart::builder()
                .part_number(number)
                .set_e_tag(sent.e_tag().map(str::to_owned))
                .build())
        });
        Ok(())
    }

    async fn begin(&self) -> Result<Parts, StorageError> {
        let Storage { client, bucket, .. } = &self.storage;
        let begun = client
            .create_multipart_upload()
            .bucket(bucket)
            .key(&self.key)
            .content_type(self.content_type)
            .send()
            .await
            .map_err(failed(Operation::Upload))?;
        let upload_id = begun.upload_id().unwrap_or_default().to_owned();
        let recorded = sqlx::query!(
            "insert into unfinished_uploads (upload_id, object_key) values ($1, $2)",
            upload_id,
            self.key,
        )
        .execute(&self.pool)
        .await;
        if let Err(error) = recorded {
            abort(client, bucket, &self.key, &upload_id).await?;
            return Err(unrecorded(&error));
        }
        Ok(Parts { upload_id, sent: 0, under_way: JoinSet::new(), completed: Vec::new() })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (storage, pool, key) = (self.storage.clone(), self.pool.clone(), self.key.clone());
        runtime.spawn(async move {
            // A part that arrives after the abort would stay, and one that is called off may arrive yet.
            while parts.under_way.join_next().await.is_some() {}
            let aborted = abort(&storage.client, &storage.bucket, &key, &parts.upload_id).await;
            let forgotten = match aborted {
                Ok(()) => forget(&pool, &parts.upload_id).await,
                Err(error) => Err(error),
            };
            if let Err(error) = forgotten {
                tracing::warn!(%error, "Could not abort the upload of {key}; the janitor will");
            }
        });
    }
}

fn arrived(
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
        // Completed or aborted before: there is nothing left to abort. Stores differ in how they say so.
        Err(SdkError::ServiceError(refused)) if refused.raw().status().is_client_error() => {
            tracing::debug!("The store knows of no unfinished upload of {key}");
            Ok(())
        }
        other => other.map(drop).map_err(failed(Operation::Upload)),
    }
}

async fn forget(pool: &PgPool, upload_id: &str) -> Result<(), StorageError> {
    sqlx::query!("delete from unfinished_uploads where upload_id = $1", upload_id)
        .execute(pool)
        .await
        .map(drop)
        .map_err(|error| unrecorded(&error))
}

fn unrecorded(error: &sqlx::Error) -> StorageError {
    StorageError::Failed(format!("keeping track of uploads: {error}"))
}
