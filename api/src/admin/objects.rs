//! `admin objects`: copies objects between the bucket and a folder. `scripts/backup` and `scripts/restore` run it.

use std::fmt::Write;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::BytesMut;
use clap::{Args, Subcommand};
use futures::{StreamExt, TryStreamExt, stream};
use retouch_core::config::StorageConfig;
use retouch_core::db::{self, PgPool};
use retouch_core::storage::{
    Claim, Claimed, OwnerError, Reason, Storage, StorageError, claim_bucket,
};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::answer::Answer;

/// Objects copied at a time.
const CONCURRENCY: usize = 8;
/// The size of reads in bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// Attempts to read an object: the client repeats requests, but not a body that breaks off.
const ATTEMPTS: u32 = 4;
/// Maximum number of objects per page of a listing.
const PAGE: usize = 1000;

#[derive(Debug, Args)]
pub struct Objects {
    #[command(flatten)]
    storage: StorageConfig,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List keys. A bucket that does not exist has none.
    List {
        /// List only keys that start with this.
        #[arg(long, default_value = "")]
        prefix: String,
        /// Stop after this many keys.
        #[arg(long)]
        limit: Option<usize>,
    },
    /// Copy objects into a folder. Standard input has one key per line.
    Download {
        /// A key is the path of its object in this folder.
        folder: PathBuf,
    },
    /// Copy objects from a folder into the bucket, which is created if it does not exist. Standard input has one
    /// object per line: its key, size in bytes, SHA-256 and content type, separated by tabs.
    Upload {
        /// A key is the path of its object in this folder.
        folder: PathBuf,
    },
    /// Make this database the owner of the bucket, for example after you have set the database back. It gives up any
    /// bucket that it owned before.
    Claim {
        /// Claim the bucket even if the database knows none of its pictures. They are deleted a day later.
        #[arg(long)]
        discard_pictures: bool,
    },
}

/// An object in the folder.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    key: String,
    size: u64,
    /// In hexadecimal digits.
    sha256: String,
    content_type: String,
}

impl Objects {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        let storage = Storage::new(&self.storage);
        match &self.task {
            Task::List { prefix, limit } => {
                list(&storage, prefix, limit.unwrap_or(usize::MAX)).await
            }
            Task::Download { folder } => download(&storage, folder, lines().await?).await,
            Task::Claim { discard_pictures } => claim(&storage, pool, *discard_pictures).await,
            Task::Upload { folder } => upload(&storage, pool, folder, lines().await?).await,
        }
    }
}

async fn lines() -> anyhow::Result<Vec<String>> {
    let text = tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await?;
    let text = text.context("reading standard input")?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

async fn list(storage: &Storage, prefix: &str, limit: usize) -> anyhow::Result<Answer> {
    let mut keys = Vec::new();
    let mut from = None;
    if storage.has_bucket().await.context("looking for the bucket")? {
        while keys.len() < limit {
            let count = PAGE.min(limit - keys.len()) as i32;
            let page = storage.page(prefix, from, count).await.context("listing the bucket")?;
            keys.extend(page.objects.into_iter().map(|object| object.key));
            from = page.next;
            if from.is_none() {
                break;
            }
        }
    }
    Ok(Answer::good(keys.join("\n"), json!(keys)))
}

async fn download(storage: &Storage, folder: &Path, keys: Vec<String>) -> anyhow::Result<Answer> {
    let copies = stream::iter(keys).map(async |key| {
        let entry = download_one(storage, folder, &key).await;
        let entry = entry.with_context(|| format!("copying {key}"))?;
        anyhow::Ok((key, entry))
    });
    let mut copies = copies.buffered(CONCURRENCY);
    let (mut entries, mut missing) = (Vec::new(), Vec::new());
    while let Some((key, entry)) = copies.try_next().await? {
        match entry {
            Some(entry) => entries.push(entry),
            None => missing.push(key),
        }
    }
    let mut text = format!("Copied {} objects.", entries.len());
    for key in &missing {
        let _ = write!(text, "\nmissing: {key}");
    }
    Ok(Answer::good(text, json!({ "objects": entries, "missing": missing })))
}

/// Returns `None` if there is no such object.
async fn download_one(
    storage: &Storage,
    folder: &Path,
    key: &str,
) -> anyhow::Result<Option<Entry>> {
    let path = path_of(folder, key)?;
    let partial = path.with_added_extension("partial");
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).await?;
    }
    let mut attempt = 1;
    loop {
        match receive(storage, key, &partial).await {
            Ok(Some(entry)) => {
                fs::rename(&partial, &path).await?;
                return Ok(Some(entry));
            }
            Err(error) if attempt < ATTEMPTS => {
                tracing::warn!("Copying {key} failed; retrying: {error:#}");
                tokio::time::sleep(Duration::from_millis(200) * 4_u32.pow(attempt - 1)).await;
                attempt += 1;
            }
            failed => {
                let _ = fs::remove_file(&partial).await;
                return failed;
            }
        }
    }
}

/// Writes an object to `file`, through to the disk.
async fn receive(storage: &Storage, key: &str, file: &Path) -> anyhow::Result<Option<Entry>> {
    let mut object = match storage.open(key, None).await {
        Err(StorageError::Missing(_)) => return Ok(None),
        other => other?,
    };
    let mut options = OpenOptions::new();
    // Pictures of other people: only the user who makes the backup may read them.
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(file).await?;
    let (mut hash, mut size) = (Sha256::new(), 0);
    let mut buffer = BytesMut::with_capacity(CHUNK_BYTES);
    while object.body.read_buf(&mut buffer).await? > 0 {
        hash.update(&buffer);
        size += buffer.len() as u64;
        file.write_all(&buffer).await?;
        buffer.clear();
    }
    ensure!(
        i64::try_from(size) == Ok(object.length),
        "the connection closed after {size} of {} bytes",
        object.length
    );
    file.sync_all().await?;
    Ok(Some(Entry {
        key: key.to_owned(),
        size,
        sha256: hex::encode(hash.finalize()),
        content_type: object.content_type.unwrap_or_else(|| "application/octet-stream".into()),
    }))
}

async fn claim(storage: &Storage, pool: &PgPool, discard_pictures: bool) -> anyhow::Result<Answer> {
    let claim = if discard_pictures { Claim::Discarding } else { Claim::Any };
    let claimed = match claim_bucket(pool, storage, claim).await {
        Err(OwnerError::Foreign { reason: Reason::Unknown, .. }) => bail!(
            "this database knows none of the pictures in the bucket. Check DATABASE_URL and S3_BUCKET. To claim the bucket anyway, \
             and have its pictures deleted a day later, add --discard-pictures"
        ),
        claimed => claimed?,
    };
    let Claimed { looked_up, known } = claimed;
    tracing::info!(looked_up, known, "Claimed the bucket");
    let mut text = "The bucket belongs to this database.".to_owned();
    if looked_up > 0 {
        let _ = write!(text, " Of {looked_up} objects, the database knows {known}.");
    }
    if known < looked_up {
        text += " Those that it does not know are deleted a day after a worker finds them.";
    }
    Ok(Answer::good(text, json!({ "lookedUp": looked_up, "known": known })))
}

async fn upload(
    storage: &Storage,
    pool: &PgPool,
    folder: &Path,
    lines: Vec<String>,
) -> anyhow::Result<Answer> {
    let entries: Vec<Entry> = lines.iter().map(|line| entry(line)).collect::<Result<_, _>>()?;
    storage.create_bucket().await?;
    // `migrate` claims the bucket for a database that was restored from an older version.
    if db::missing_migrations(pool).await? == 0 {
        claim_bucket(pool, storage, Claim::ToFill).await?;
    }
    let copies = stream::iter(&entries).map(async |entry| {
        let uploaded = upload_one(storage, pool, folder, entry).await;
        uploaded.with_context(|| format!("copying {}", entry.key))
    });
    copies.buffer_unordered(CONCURRENCY).try_collect::<()>().await?;
    let count = entries.len();
    tracing::info!("Copied {count} objects into the bucket");
    Ok(Answer::good(format!("Copied {count} objects."), json!({ "objects": count })))
}

/// The object becomes visible only if its file has the expected checksum.
async fn upload_one(
    storage: &Storage,
    pool: &PgPool,
    folder: &Path,
    entry: &Entry,
) -> anyhow::Result<()> {
    let mut file = File::open(path_of(folder, &entry.key)?).await?;
    let mut upload = storage.upload(pool, entry.key.clone(), entry.content_type.as_str());
    let (mut hash, mut size) = (Sha256::new(), 0);
    let mut buffer = BytesMut::with_capacity(CHUNK_BYTES);
    while file.read_buf(&mut buffer).await? > 0 {
        hash.update(&buffer);
        size += buffer.len() as u64;
        upload.push(&buffer.split().freeze()).await?;
        buffer.reserve(CHUNK_BYTES);
    }
    ensure!(
        size == entry.size && hex::encode(hash.finalize()) == entry.sha256,
        "its file is damaged"
    );
    upload.finish().await?;
    Ok(())
}

fn entry(line: &str) -> anyhow::Result<Entry> {
    let fields: Vec<&str> = line.split('\t').collect();
    let &[key, size, sha256, content_type] = fields.as_slice() else {
        bail!("this line does not have a key, a size, a checksum and a type: {line}");
    };
    Ok(Entry {
        key: key.into(),
        size: size.parse().with_context(|| format!("the size of {key}"))?,
        sha256: sha256.into(),
        content_type: content_type.into(),
    })
}

fn path_of(folder: &Path, key: &str) -> anyhow::Result<PathBuf> {
    let is_inside = Path::new(key).components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(is_inside && !key.is_empty(), "the key {key:?} is not a path inside of the folder");
    Ok(folder.join(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_must_not_lead_out_of_the_folder() {
        let folder = Path::new("/backup/objects");
        let inside = path_of(folder, "images/1/original").unwrap();
        assert_eq!(inside, Path::new("/backup/objects/images/1/original"));
        for key in ["", "/etc/passwd", "images/../../x", "..", "./x"] {
            assert!(path_of(folder, key).is_err(), "{key}");
        }
    }

    #[test]
    fn a_line_has_four_fields() {
        let expected = Entry {
            key: "images/1/original".into(),
            size: 7,
            sha256: "00".into(),
            content_type: "image/png".into(),
        };
        assert_eq!(entry("images/1/original\t7\t00\timage/png").unwrap(), expected);
        for line in ["images/1/original", "a\tb\tc\td", "a\t1\tc\td\te"] {
            assert!(entry(line).is_err(), "{line}");
        }
    }
}
