//! Shows a picture that the caller's browser may not be able to show. Free of charge, and nothing is stored.

use std::net::IpAddr;

use bytes::Bytes;
use retouch_core::UserId;
use retouch_pixels::{Limits, upload};

use super::upload_image::{count_upload, readable};
use crate::error::ApiError;
use crate::state::App;

/// A picture for the screen.
pub struct PicturePreview {
    pub bytes: Bytes,
    pub content_type: &'static str,
    /// Width of the picture itself in pixels.
    pub width: u32,
    /// Height of the picture itself in pixels.
    pub height: u32,
}

/// Makes a preview of a file. Counts as an upload of the user, or of the address of a visitor.
pub async fn preview_picture(
    app: &App,
    caller: (Option<UserId>, IpAddr),
    file: Bytes,
) -> Result<PicturePreview, ApiError> {
    let caller = count_upload(app, caller).await?;
    let limits = Limits { max_dimension: app.limits.max_dimension };
    let (readable, memory) = readable(app, caller, &file, &limits).await?;
    let prepare = move || upload::prepare(&readable, &limits, true, None);
    let (prepared, _memory) = app.decoders.run_in(memory, prepare).await?;
    let upload::Upload { bytes, content_type, width, height, preview, .. } = prepared?;
    // A small picture is its own preview.
    let (bytes, content_type) = preview.map_or((bytes, content_type), |webp| (webp, "image/webp"));
    Ok(PicturePreview { bytes, content_type, width, height })
}
