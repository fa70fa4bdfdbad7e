//! Reads the marks of a picture, made here or elsewhere. Free of charge; stores nothing.

use std::net::IpAddr;

use bytes::Bytes;
use retouch_core::UserId;
use retouch_credentials::{Report, reading_bytes};
use retouch_pixels::Limits;

use super::upload_image::{count_upload, size};
use crate::error::ApiError;
use crate::state::App;

/// Reads the marks of a file. Counts as an upload of the user, or of the address of a visitor.
pub async fn verify_picture(
    app: &App,
    caller: (Option<UserId>, IpAddr),
    file: Bytes,
) -> Result<Report, ApiError> {
    let caller = count_upload(app, caller).await?;
    // No pixel is decoded, so pictures of any size can be verified.
    size(&file, &Limits { max_dimension: u32::MAX })?;
    let verifier = app.verifier.clone();
    let memory = file.len() as u64 + reading_bytes(&file);
    Ok(app.decoders.run(caller, memory, move || verifier.read(&file)).await?.0)
}
