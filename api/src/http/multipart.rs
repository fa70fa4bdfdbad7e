//! Reads multipart uploads.

use axum::extract::multipart::MultipartRejection;
use bytes::{Bytes, BytesMut};
use retouch_core::images::ImageName;

use super::form_data::{FormData, FormError, FormField};
use crate::error::ApiError;

/// A form, or why the body is not a form.
pub type UploadBody = Result<FormData, MultipartRejection>;

/// Maximum number of fields in an upload; the known fields come first.
const MAX_FIELDS: usize = 32;
/// Maximum length of a text field, in bytes; more than any valid prompt has.
const MAX_TEXT_BYTES: usize = 4096;

/// Unwraps an extracted multipart body.
pub fn multipart(body: UploadBody) -> Result<FormData, ApiError> {
    body.map_err(|_| ApiError::BadRequest("Send the file as multipart/form-data.".into()))
}

/// Returns the field `file`, of at most `max_bytes`.
pub async fn uploaded_file(body: FormData, max_bytes: usize) -> Result<Bytes, ApiError> {
    named_file(body, max_bytes).await.map(|(file, _)| file)
}

/// Returns the field `file`, of at most `max_bytes`, and the name that the client gave the file.
pub async fn named_file(
    mut body: FormData,
    max_bytes: usize,
) -> Result<(Bytes, Option<ImageName>), ApiError> {
    for _ in 0..MAX_FIELDS {
        let Some(field) = next_field(&mut body, max_bytes).await? else { break };
        if field.name() == Some("file") {
            // Browsers encode these characters, and only these (HTML, multipart/form-data).
            let plain =
                |name: &str| name.replace("%22", "\"").replace("%0D", "").replace("%0A", "");
            let name = field.file_name().and_then(|name| ImageName::of_file(&plain(name)));
            return Ok((read_file(field, max_bytes).await?, name));
        }
        skip(field, max_bytes).await?;
    }
    Err(file_missing())
}

/// A mask and what to do there.
pub struct UploadedMask {
    /// The field `file`.
    pub mask: Bytes,
    /// The field `prompt`; empty if it is missing.
    pub prompt: String,
    /// The field `exactMask`.
    pub is_exact: Option<bool>,
}

/// Returns the fields of a [`MaskUpload`], in any order. The file has at most `max_bytes`.
pub async fn uploaded_mask(mut body: FormData, max_bytes: usize) -> Result<UploadedMask, ApiError> {
    let (mut file, mut prompt, mut is_exact) = (None, String::new(), None);
    for _ in 0..MAX_FIELDS {
        let Some(field) = next_field(&mut body, max_bytes).await? else { break };
        match field.name() {
            Some("file") => file = Some(read_file(field, max_bytes).await?),
            Some("prompt") => prompt = read_text(field, max_bytes).await?,
            Some("exactMask") => {
                let text = read_text(field, max_bytes).await?;
                let parsed = text.parse().map_err(|_| {
                    ApiError::BadRequest("The field exactMask must be true or false.".into())
                })?;
                is_exact = Some(parsed);
            }
            _ => skip(field, max_bytes).await?,
        }
    }
    Ok(UploadedMask { mask: file.ok_or_else(file_missing)?, prompt, is_exact })
}

/// How to finish a result.
pub struct UploadedFinish {
    /// The field `options`.
    pub options: String,
    /// The field `touchUp`.
    pub touch_up: Option<Bytes>,
    /// The field `background`.
    pub background: Option<Bytes>,
}

/// Returns how to finish a result, from fields in any order. A file has at most `max_bytes`.
pub async fn uploaded_finish(
    mut body: FormData,
    max_bytes: usize,
) -> Result<UploadedFinish, ApiError> {
    let (mut options, mut touch_up, mut background) = (None, None, None);
    for _ in 0..MAX_FIELDS {
        let Some(field) = next_field(&mut body, max_bytes).await? else { break };
        match field.name() {
            Some("options") => options = Some(read_text(field, max_bytes).await?),
            Some("touchUp") => touch_up = Some(read_file(field, max_bytes).await?),
            Some("background") => background = Some(read_file(field, max_bytes).await?),
            _ => skip(field, max_bytes).await?,
        }
    }
    let options = options
        .ok_or_else(|| ApiError::BadRequest("The upload has no field named options.".into()))?;
    Ok(UploadedFinish { options, touch_up, background })
}

async fn next_field(
    body: &mut FormData,
    max_bytes: usize,
) -> Result<Option<FormField<'_>>, ApiError> {
    body.next().await.map_err(|error| invalid(error, max_bytes))
}

async fn skip(field: FormField<'_>, max_bytes: usize) -> Result<(), ApiError> {
    field.skip().await.map_err(|error| invalid(error, max_bytes))
}

async fn read_file(mut field: FormField<'_>, max_bytes: usize) -> Result<Bytes, ApiError> {
    let mut file = BytesMut::new();
    while let Some(chunk) = field.chunk().await.map_err(|error| invalid(error, max_bytes))? {
        file.extend_from_slice(&chunk);
    }
    match file.len() {
        0 => Err(ApiError::BadRequest("The file is empty.".into())),
        size if size > max_bytes => Err(ApiError::FileTooLarge { max_bytes }),
        _ => Ok(file.freeze()),
    }
}

/// Reads the beginning of a text. A longer text is refused, whatever follows.
async fn read_text(mut field: FormField<'_>, max_bytes: usize) -> Result<String, ApiError> {
    let mut text = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(|error| invalid(error, max_bytes))? {
        let room = MAX_TEXT_BYTES - text.len();
        text.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn file_missing() -> ApiError {
    ApiError::BadRequest("The upload has no field named file.".into())
}

fn invalid(error: FormError, max_bytes: usize) -> ApiError {
    match error {
        FormError::TooLarge => ApiError::FileTooLarge { max_bytes },
        FormError::Malformed(reason) => {
            tracing::debug!(reason, "Could not parse an upload");
            ApiError::BadRequest("The upload is incomplete or malformed.".into())
        }
    }
}

/// The multipart body with a mask and a prompt, for the OpenAPI document.
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "documents a body that is read field by field")]
pub struct MaskUpload {
    /// A PNG that marks the area to repaint: by opacity, or in white if the PNG is fully opaque. It has the size or
    /// the aspect ratio of the image.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// What the area should show, in 1 to 500 characters.
    #[schema(example = "remove the object")]
    prompt: String,
    /// Whether no pixel outside the mask may change. Otherwise the result may differ a little around it, as the
    /// configuration's `magicFix.reach` says. By default true for prompts that edit, add, or restore.
    exact_mask: Option<bool>,
}

/// The multipart body with an image, for the OpenAPI document.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "documents a body that is read field by field")]
pub struct FileUpload {
    /// PNG, JPEG, WebP, HEIC or AVIF.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}
