//! Marks a result while it is stored.

use bytes::Bytes;
use retouch_catalog::Tool;
use retouch_core::db::{self, PgPool};
use retouch_core::images;
use retouch_core::storage::{StorageError, Upload};
use retouch_core::{Clock, jobs::Claimed};
use retouch_credentials::{
    CopyMark, Credentials, INSERT_AT, Model, Parent, PngSeal, Provenance, SignError, SourceType,
};
use tokio::sync::mpsc;

use super::failure::JobError;
use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use retouch_inference::registry::ModelIdentity;
use retouch_pixels::copies::EncodedCopies;

/// The picture that a job works on, until its result is marked.
pub(super) struct Original {
    picture: Bytes,
    provenance: Option<Provenance>,
}

/// Marks results by the operator's settings.
pub(super) struct Marker<'a> {
    pub credentials: &'a Credentials,
    pub pool: &'a PgPool,
    pub pixels: &'a PixelPool,
}

impl Marker<'_> {
    /// Returns the picture that the marks of the job's result refer to; `None` if no result is marked.
    pub(super) async fn original(
        &self,
        job: &Claimed,
        picture: &Bytes,
    ) -> Result<Option<Original>, JobError> {
        if !self.credentials.may_mark() {
            return Ok(None);
        }
        let found = db::retry(|| images::provenance(self.pool, job.image)).await?;
        let provenance = found.map(|found| Provenance {
            ingredient: found.ingredient,
            source: found.source.as_deref().and_then(SourceType::parse),
        });
        Ok(Some(Original { picture: picture.clone(), provenance }))
    }

    /// Prepares the marks of a result; `None` if it gets none.
    pub(super) async fn seal(
        &self,
        tool: Tool,
        model: &ModelIdentity,
        is_trained: bool,
        original: Option<Original>,
    ) -> Result<Option<PngSeal>, JobError> {
        let Some(Original { picture, provenance }) = original else { return Ok(None) };
        let credentials = self.credentials.clone();
        let model = Model { name: model.name.clone(), sha256: model.sha256.clone(), is_trained };
        let prepare = move || {
            let parent = Parent { picture: &picture, provenance: provenance.as_ref() };
            credentials.seal(tool, &model, &parent, Clock::system().now())
        };
        Ok(self.pixels.run(prepare).await??)
    }

    /// Uploads bytes until the sender is dropped, and then the marks.
    pub(super) async fn receive(
        &self,
        mut upload: Upload,
        mut seal: Option<PngSeal>,
        mut parts: mpsc::Receiver<Bytes>,
    ) -> Result<(Upload, Vec<u8>), JobError> {
        if let Some(seal) = &seal {
            upload = upload.reserving(seal.size_bytes());
        }
        while let Some(bytes) = parts.recv().await {
            upload.push(&bytes).await?;
            if let Some(mut unfinished) = seal.take() {
                let hash = move || {
                    unfinished.push(&bytes);
                    unfinished
                };
                seal = Some(self.pixels.run(hash).await?);
            }
        }
        let marks = match seal {
            Some(seal) => blocking(move || seal.finish()).await?,
            None => Vec::new(),
        };
        Ok((upload, marks))
    }
}

/// Returns the source type in the marks of a result; `None` if it gets no marks.
pub(super) fn source(seal: Option<&PngSeal>) -> Option<String> {
    seal.map(|seal| seal.source().uri())
}

/// Marks the thumbnail and the preview of a result, if the result is marked.
pub(super) fn mark_copies(
    mark: Option<&CopyMark>,
    copies: EncodedCopies,
) -> Result<EncodedCopies, SignError> {
    let Some(mark) = mark else { return Ok(copies) };
    let marked = |copy: Bytes| mark.put_on(&copy).map(Bytes::from);
    let EncodedCopies { thumbnail, preview } = copies;
    Ok(EncodedCopies { thumbnail: marked(thumbnail)?, preview: preview.map(marked).transpose()? })
}

pub(super) async fn mark(seal: Option<PngSeal>, png: Bytes) -> Result<Bytes, JobError> {
    let Some(seal) = seal else { return Ok(png) };
    Ok(blocking(move || seal.mark(&png)).await?.into())
}

pub(super) async fn finish(upload: Upload, marks: &[u8]) -> Result<u64, StorageError> {
    upload.finish_inserting(INSERT_AT, marks).await
}

/// Runs work that waits for a timestamp outside the pixel threads.
async fn blocking<T: Send + 'static, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, JobError>
where
    E: Send + 'static,
    JobError: From<E>,
{
    let stopped = |error: tokio::task::JoinError| ToolError::Internal(error.to_string());
    Ok(tokio::task::spawn_blocking(work).await.map_err(stopped)??)
}
