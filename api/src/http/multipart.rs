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
    body: FormData,
    max_bytes: usize,
) -> Result<(Bytes, Option<ImageName>), ApiError> {
    let mut fields = UploadFields::new(body, max_bytes);
    while let Some(field) = fields.next().await? {
        if field.name() == Some("file") {
            let name = field.image_name();
            return Ok((field.file().await?, name));
        }
        field.skip().await?;
    }
    Err(field_missing("file"))
}

/// The fields of an upload as they arrive. Those beyond [`MAX_FIELDS`] are not read.
pub struct UploadFields {
    body: FormData,
    max_bytes: usize,
    /// How many may follow.
    left: usize,
}

/// A field of an upload. Read its value, or [skip](Self::skip) it.
pub struct UploadField<'a> {
    field: FormField<'a>,
    max_bytes: usize,
}

impl UploadFields {
    /// Reads `body`, whose files have at most `max_bytes`.
    pub const fn new(body: FormData, max_bytes: usize) -> Self {
        Self { body, max_bytes, left: MAX_FIELDS }
    }

    /// Waits for the next field; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<UploadField<'_>>, ApiError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let max_bytes = self.max_bytes;
        let field = self.body.next().await.map_err(|error| invalid(error, max_bytes))?;
        Ok(field.map(|field| UploadField { field, max_bytes }))
    }
}

impl UploadField<'_> {
    pub fn name(&self) -> Option<&str> {
        self.field.name()
    }

    /// Returns the name that the client gave the file.
    fn image_name(&self) -> Option<ImageName> {
        // Browsers encode these characters, and only these (HTML, multipart/form-data).
        let plain = |name: &str| name.replace("%22", "\"").replace("%0D", "").replace("%0A", "");
        self.field.file_name().and_then(|name| ImageName::of_file(&plain(name)))
    }

    /// Reads the value to its end, and drops it.
    pub async fn skip(self) -> Result<(), ApiError> {
        let max_bytes = self.max_bytes;
        self.field.skip().await.map_err(|error| invalid(error, max_bytes))
    }

    /// Returns the value as a file. It must not be empty.
    pub async fn file(mut self) -> Result<Bytes, ApiError> {
        let mut file = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            file.extend_from_slice(&chunk);
        }
        match file.len() {
            0 => Err(ApiError::BadRequest("The file is empty.".into())),
            size if size > self.max_bytes => {
                Err(ApiError::FileTooLarge { max_bytes: self.max_bytes })
            }
            _ => Ok(file.freeze()),
        }
    }

    /// Returns the beginning of a text. A longer text is refused, whatever follows.
    pub async fn text(mut self) -> Result<String, ApiError> {
        let mut text = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            let room = MAX_TEXT_BYTES - text.len();
            text.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        let max_bytes = self.max_bytes;
        self.field.chunk().await.map_err(|error| invalid(error, max_bytes))
    }
}

/// Returns the error for an upload without a field that it must have.
pub fn field_missing(name: &str) -> ApiError {
    ApiError::BadRequest(format!("The upload has no field named {name}."))
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

/// The multipart body with an image, for the OpenAPI document.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "documents a body that is read field by field")]
pub struct FileUpload {
    /// PNG, JPEG, WebP, HEIC or AVIF.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}
