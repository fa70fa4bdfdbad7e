//! Reads the request body, in any of its three encodings, as files and text fields.
//!
//! Fields are parsed as they arrive and limited in number and length, so that a body takes little more memory than its
//! image. Only JSON is read as a whole; its parser keeps nothing but the fields.

mod fields;
mod json;
mod url_encoded;

use axum::RequestExt;
use axum::extract::multipart::MultipartRejection;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::header;
use futures::{StreamExt, TryStreamExt};
use retouch_core::UserId;
use utoipa::ToSchema;

use super::refusal::Refusal;
use crate::error::ApiError;
use crate::http::base64_file::Base64File;
use crate::http::body::UploadMemory;
use crate::http::form_data::{FormData, FormError, FormField};
use crate::http::request::header_text;
use crate::limits::decode_budget::UserOrVisitor;
use crate::state::App;
use fields::{BASE64_FIELD, MAX_NAME_BYTES, MAX_TEXT_BYTES, malformed, too_long};
use url_encoded::{Piece, UrlEncoded};

pub use fields::{Form, printable};

/// Allowance for everything around the file, in bytes.
const OVERHEAD: usize = 64 * 1024;

/// Reads the body that `user` sent.
pub async fn read(app: &App, user: UserId, request: Request) -> Result<Form, Refusal> {
    let kind = header_text(request.headers(), header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let memory = UploadMemory::of(request.extensions());
    let max_bytes = app.limits.max_upload_bytes;
    // Base64 encodes 3 bytes as 4; form encoding additionally escapes some of them.
    let max_base64 = max_bytes / 3 * 4 + OVERHEAD;
    let mut form = Form::new(max_bytes);
    match kind.as_str() {
        "multipart/form-data" => read_multipart(&mut form, request, max_base64).await?,
        "application/x-www-form-urlencoded" => read_url_encoded(&mut form, request).await?,
        "application/json" => {
            let body = read_all(request, max_base64, max_bytes).await?;
            // The parser unescapes the text of the file, and decodes it.
            let needed = 2 * body.len() as u64;
            let parse = move || json::parse(&body, form);
            form = app.decoders.run(UserOrVisitor::User(user), needed, parse).await?.0?;
        }
        _ => {
            let title =
                "Send multipart/form-data, application/x-www-form-urlencoded or application/json.";
            return Err(Refusal::of_parameter("invalid_content_type", title.into()));
        }
    }
    memory.hand_over(form.files.iter_mut().collect());
    Ok(form)
}

async fn read_all(request: Request, limit: usize, max_bytes: usize) -> Result<Vec<u8>, Refusal> {
    let mut chunks = request.into_body().into_data_stream();
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| malformed("the body is incomplete"))?;
        if body.len() + chunk.len() > limit {
            return Err(ApiError::FileTooLarge { max_bytes }.into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn read_url_encoded(form: &mut Form, request: Request) -> Result<(), Refusal> {
    let mut parser = UrlEncoded::default();
    let mut field = PartialField::default();
    let mut chunks = request.into_body().into_data_stream();
    while let Some(chunk) =
        chunks.try_next().await.map_err(|_| malformed("the body is incomplete"))?
    {
        parser.push(&chunk, |piece| field.take(piece, form))?;
    }
    parser.finish(|piece| field.take(piece, form))
}

/// Reads a value to its end; returns whether it is empty.
async fn is_empty(mut field: FormField<'_>) -> Result<bool, FormError> {
    let mut is_empty = true;
    while let Some(chunk) = field.chunk().await? {
        is_empty &= chunk.is_empty();
    }
    Ok(is_empty)
}

async fn read_multipart(
    form: &mut Form,
    mut request: Request,
    max_base64: usize,
) -> Result<(), Refusal> {
    DefaultBodyLimit::max(max_base64 + OVERHEAD).apply(&mut request);
    let mut body: FormData = request
        .extract()
        .await
        .map_err(|error: MultipartRejection| malformed(&error.body_text()))?;
    let max_bytes = form.max_bytes;
    while let Some(mut field) = body.next().await.map_err(|error| broken(error, max_bytes))? {
        let name = field.name().unwrap_or_default().to_owned();
        form.begin(&name)?;
        let is_file = name == "image_file" || field.file_name().is_some();
        if is_file && name != "image_file" {
            // A background image, for example: not supported, so that its name is all we need. An HTML form sends an
            // empty file for an input that nobody touched.
            if !is_empty(field).await.map_err(|error| broken(error, max_bytes))? {
                form.fields.push((printable(&name), "a file".into()));
            }
        } else if is_file {
            let bytes = read_field(field, max_bytes, max_bytes).await?;
            if !bytes.is_empty() {
                form.files.push(bytes.into());
            }
        } else if name == BASE64_FIELD {
            let (mut file, mut is_empty) = (Base64File::default(), true);
            while let Some(chunk) = field.chunk().await.map_err(|error| broken(error, max_bytes))? {
                is_empty &= chunk.is_empty();
                form.decode(&mut file, &chunk)?;
            }
            form.add_decoded(file, is_empty)?;
        } else {
            let bytes = read_field(field, MAX_TEXT_BYTES, max_bytes).await?;
            let text = String::from_utf8(bytes)
                .map_err(|_| malformed(&format!("{} is not UTF-8", printable(&name))))?;
            form.add(&name, text)?;
        }
    }
    Ok(())
}

/// A field of a form that is being received.
#[derive(Default)]
struct PartialField {
    /// The name, once it is complete.
    name: Option<String>,
    /// The name or the value so far.
    text: Vec<u8>,
    /// The value so far, if it is a file.
    file: Option<Base64File>,
    is_empty: bool,
}

impl PartialField {
    fn take(&mut self, piece: Piece, form: &mut Form) -> Result<(), Refusal> {
        match piece {
            Piece::Byte(byte) => {
                self.text.push(byte);
                match (&mut self.file, &self.name) {
                    (Some(file), _) if self.text.len() == MAX_TEXT_BYTES => {
                        self.is_empty = false;
                        form.decode(file, &self.text)?;
                        self.text.clear();
                    }
                    (None, Some(name)) if self.text.len() > MAX_TEXT_BYTES => {
                        return Err(too_long(name));
                    }
                    (None, None) if self.text.len() > MAX_NAME_BYTES => {
                        return Err(malformed("a name is too long"));
                    }
                    _ => {}
                }
            }
            Piece::Equals => {
                let name = self.take_text();
                self.file = (name == BASE64_FIELD).then(Base64File::default);
                self.is_empty = true;
                self.name = Some(name);
            }
            Piece::End => {
                form.begin(self.name.as_deref().unwrap_or_default())?;
                if let Some(mut file) = self.file.take() {
                    form.decode(&mut file, &self.text)?;
                    form.add_decoded(file, self.is_empty && self.text.is_empty())?;
                    self.text.clear();
                } else if let Some(name) = &self.name {
                    let value = String::from_utf8_lossy(&self.text).into_owned();
                    form.add(name, value)?;
                }
                *self = Self::default();
            }
        }
        Ok(())
    }

    fn take_text(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.text).into_owned();
        self.text.clear();
        text
    }
}

/// Reads a field, and stops when it exceeds `limit` bytes.
async fn read_field(
    mut field: FormField<'_>,
    limit: usize,
    max_bytes: usize,
) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(|error| broken(error, max_bytes))? {
        if bytes.len() + chunk.len() > limit {
            let name = field.name().unwrap_or_default();
            return Err(if name == "image_file" {
                ApiError::FileTooLarge { max_bytes }.into()
            } else {
                too_long(name)
            });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn broken(error: FormError, max_bytes: usize) -> Refusal {
    match error {
        FormError::TooLarge => ApiError::FileTooLarge { max_bytes }.into(),
        FormError::Malformed(reason) => malformed(&reason),
    }
}

/// The parameters, for the OpenAPI document. Any other is rejected.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents a body that is read field by field")]
pub struct RemovalForm {
    /// The image: PNG, JPEG, WebP, HEIC or AVIF. Only in `multipart/form-data`.
    #[schema(value_type = Option<String>, format = Binary)]
    image_file: Option<Vec<u8>>,
    /// The base64-encoded image, instead of `image_file`.
    image_file_b64: Option<String>,
    /// The maximum size of the cutout: `preview`, `small`, `regular` (0.25 megapixels), `medium` (1.5), `hd` (4), or
    /// unlimited with `full`, `4k`, `50MP` or `auto`. Every size costs the same.
    #[schema(default = "preview")]
    size: Option<String>,
    /// Accepted for compatibility; the model needs no hint.
    #[schema(default = "auto")]
    r#type: Option<String>,
    /// Accepted for compatibility; no type is reported.
    type_level: Option<String>,
    /// `auto` (PNG if any pixel is transparent, otherwise JPEG), `png`, `jpg`, `webp` or `zip` (`color.jpg` and
    /// `alpha.png`).
    #[schema(default = "auto")]
    format: Option<String>,
    /// Retouch extension: `keep` copies the image's EXIF, including GPS, into the cutout. Not with `zip`.
    #[schema(default = "strip")]
    metadata: Option<String>,
    /// `rgba`, or `alpha` for the mask alone.
    #[schema(default = "rgba")]
    channels: Option<String>,
    /// The background color: 3, 4, 6 or 8 hexadecimal digits, or a CSS color name.
    #[schema(example = "81d4fa")]
    bg_color: Option<String>,
    /// `true` crops the image to the subject.
    #[schema(default = "false")]
    crop: Option<String>,
    /// The margin around the subject when cropping: one, two or four of `30px` or `10%` (of the subject), up to 500 px
    /// or 50 %.
    #[schema(example = "10% 20px")]
    crop_margin: Option<String>,
    /// The size of the subject relative to the image, `10%` to `100%`, or `original`.
    #[schema(default = "original")]
    scale: Option<String>,
    /// The position of the subject: `original`, `center`, `x%` or `x% y%`.
    #[schema(example = "50% 100%")]
    position: Option<String>,
    /// Only the whole image is supported.
    #[schema(default = "0% 0% 100% 100%")]
    roi: Option<String>,
    /// Only `false` is supported.
    #[schema(default = "false")]
    add_shadow: Option<String>,
    /// Only `true` is supported.
    #[schema(default = "true")]
    semitransparency: Option<String>,
}
