//! Writes a ZIP to a stream: files are stored, not compressed, because pictures are compressed already.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use ::zip::write::{SimpleFileOptions, StreamWriter};
use ::zip::{CompressionMethod, ZipWriter};
use anyhow::Context;
use bytes::Bytes;
use chrono::{DateTime, Datelike, Timelike, Utc};
use futures::{Stream, stream};
use retouch_core::storage::{Storage, StorageError};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::Entry;
use super::names::MISSING;

/// How much of an object is read at a time, in bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// Returns the bytes of a ZIP of `entries`. Each entry is read from the store when its turn comes. An error ends the
/// stream, so that an incomplete archive is not mistaken for a complete one.
pub fn zip(
    storage: Storage,
    entries: Vec<Entry>,
    now: DateTime<Utc>,
) -> impl Stream<Item = anyhow::Result<Bytes>> + Send + 'static {
    let written = Written::default();
    let archive = Archive {
        storage,
        entries: entries.into_iter(),
        missing: Vec::new(),
        now,
        zip: Some(ZipWriter::new_stream(written.clone())),
        written,
        file: None,
        chunk: vec![0; CHUNK_BYTES],
    };
    stream::try_unfold(archive, |mut archive| async move {
        Ok(archive.next().await?.map(|bytes| (bytes, archive)))
    })
}

/// An archive that is being written.
struct Archive {
    storage: Storage,
    entries: std::vec::IntoIter<Entry>,
    /// The names of missing files.
    missing: Vec<String>,
    /// When the list of missing files was made.
    now: DateTime<Utc>,
    /// `None` after the end.
    zip: Option<ZipWriter<StreamWriter<Written>>>,
    /// The bytes that are not sent yet.
    written: Written,
    /// The object that is being read.
    file: Option<Box<dyn AsyncRead + Send + Unpin>>,
    chunk: Vec<u8>,
}

impl Archive {
    /// Returns the next bytes; `None` after the end.
    async fn next(&mut self) -> anyhow::Result<Option<Bytes>> {
        while self.zip.is_some() {
            self.advance().await?;
            let bytes = self.written.take();
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// Copies a chunk, or starts the next file, or ends the archive.
    async fn advance(&mut self) -> anyhow::Result<()> {
        let Some(zip) = &mut self.zip else { return Ok(()) };
        if let Some(file) = &mut self.file {
            match file.read(&mut self.chunk).await.context("reading an object")? {
                0 => self.file = None,
                count => zip.write_all(&self.chunk[..count])?,
            }
        } else if let Some(entry) = self.entries.next() {
            match self.storage.open(&entry.key, None).await {
                Ok(object) => {
                    zip.start_file(entry.name, options(entry.created_at, entry.size_bytes))?;
                    self.file = Some(object.body);
                }
                Err(StorageError::Missing(_)) => self.missing.push(entry.name),
                Err(error) => return Err(error).context("opening an object"),
            }
        } else if let Some(mut zip) = self.zip.take() {
            if !self.missing.is_empty() {
                zip.start_file(MISSING, options(self.now, 0))?;
                zip.write_all((self.missing.join("\n") + "\n").as_bytes())?;
            }
            zip.finish()?;
        }
        Ok(())
    }
}

fn options(time: DateTime<Utc>, size_bytes: i64) -> SimpleFileOptions {
    let year = u16::try_from(time.year()).unwrap_or_default();
    let [month, day, hour, minute, second] =
        [time.month(), time.day(), time.hour(), time.minute(), time.second()].map(|n| n as u8);
    // Times before 1980 do not exist in a ZIP.
    let modified = ::zip::DateTime::from_date_and_time(year, month, day, hour, minute, second);
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(modified.unwrap_or_default())
        .large_file(size_bytes >= i64::from(u32::MAX))
}

/// The writer's output, shared with [`Archive::next`]. The lock is never contended.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn take(&self) -> Bytes {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
