//! The copy of a result in an answer, for the model to look at.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use retouch_core::results::ResultImage;
use retouch_core::{UserId, with_causes};
use retouch_credentials::{PngSeal, SourceType};
use retouch_pixels::Limits;
use retouch_pixels::finish::{self, Finish, Output, Quality};
use retouch_pixels::thumbnail::THUMBNAIL_SIDE;
use rmcp::model::ContentBlock;

use crate::error::ApiError;
use crate::limits::decode_budget::UserOrVisitor;
use crate::state::App;

/// Maximum size of a copy, in bytes. Clients refuse events of more than a megabyte.
const MAX_COPY_BYTES: usize = 256 << 10;
/// The quality of a copy that is made for an answer, 1 to 100.
const COPY_QUALITY: f64 = 80.0;

/// Returns a small copy of a result of `user`. The result is paid for, so a fault only means that there is no copy.
pub async fn small_copy(app: &App, user: UserId, result: &ResultImage) -> Option<ContentBlock> {
    match small_file(app, user, result).await {
        Ok(file) => image(&file),
        Err(error) => {
            let error = with_causes(&error);
            tracing::warn!(%error, "Could not make a copy of result {}", result.id);
            None
        }
    }
}

/// Returns the first file that is small enough: the preview, the whole result, its thumbnail, or the thumbnail as WebP.
async fn small_file(app: &App, user: UserId, result: &ResultImage) -> Result<Bytes, ApiError> {
    let whole = (result.preview_key.is_none()
        && usize::try_from(result.size_bytes).is_ok_and(|size| size <= MAX_COPY_BYTES))
    .then_some(&result.object_key);
    for key in [result.preview_key.as_ref(), whole].into_iter().flatten() {
        let file = app.storage.get(key).await?;
        if file.len() <= MAX_COPY_BYTES {
            return Ok(file);
        }
    }
    let thumbnail = app.storage.get(&result.thumbnail_key).await?;
    if thumbnail.len() <= MAX_COPY_BYTES {
        return Ok(thumbnail);
    }
    // The PNG of a photo is large even at the size of a thumbnail.
    let source = result.source.as_deref().and_then(SourceType::parse);
    as_webp(app, user, thumbnail, source).await
}

/// Converts a thumbnail, and marks it like the thumbnail.
async fn as_webp(
    app: &App,
    user: UserId,
    thumbnail: Bytes,
    source: Option<SourceType>,
) -> Result<Bytes, ApiError> {
    let quality = Quality::new(COPY_QUALITY).context("a quality is 1 to 100")?;
    let finish = Finish::convert(Output::WebP(quality));
    let limits = Limits { max_dimension: THUMBNAIL_SIDE };
    let size = (THUMBNAIL_SIDE, THUMBNAIL_SIDE);
    let memory = finish::memory_bytes(size, &finish, None, None) + thumbnail.len() as u64;
    let make = move || -> Result<Bytes, ApiError> {
        let webp = finish::render(&thumbnail, None, &finish, &limits)?.bytes;
        let Some(source) = source else { return Ok(webp) };
        let mark = PngSeal::unsigned(&source).copies();
        Ok(mark.put_on(&webp).map_err(anyhow::Error::from)?.into())
    };
    app.decoders.run(UserOrVisitor::User(user), memory, make).await?.0
}

fn image(file: &Bytes) -> Option<ContentBlock> {
    let format = image::guess_format(file).ok()?;
    Some(ContentBlock::image(STANDARD.encode(file), format.to_mime_type()))
}
