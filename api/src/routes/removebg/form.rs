//! Reads the request body, in any of its three encodings, as files and text fields.

use axum::RequestExt;
use axum::body::to_bytes;
use axum::extract::multipart::{Field, MultipartError, MultipartRejection};
use axum::extract::{DefaultBodyLimit, Multipart, Request};
use axum::http::{StatusCode, header};
use bytes::Bytes;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::refusal::Refusal;
use crate::error::ApiError;
use crate::routes::request::header_text;

/// The maximum length of a text field, in bytes.
const MAX_TEXT_BYTES: usize = 4096;
/// Allowance for everything around the file, in bytes.
const OVERHEAD: usize = 64 * 1024;

/// The fields, in the order they were sent.
pub struct Form {
    /// The files sent as `image_file`.
    pub files: Vec<Bytes>,
    /// All other fields that are not empty.
    pub fields: Vec<(String, String)>,
    /// The maximum size of the image, in bytes.
    pub max_bytes: usize,
}

/// Reads the body.
pub async fn read(request: Request, max_bytes: usize) -> Result<Form, Refusal> {
    let kind = header_text(request.headers(), header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // Base64 encodes 3 bytes as 4; form encoding additionally escapes some of them.
    let max_base64 = max_bytes / 3 * 4 + OVERHEAD;
    let mut form = Form { files: Vec::new(), fields: Vec::new(), max_bytes };
    match kind.as_str() {
        "multipart/form-data" => form.read_multipart(request, max_base64).await?,
        "application/x-www-form-urlencoded" => {
            let body = read_all(request, max_base64 + max_base64 / 4, max_bytes).await?;
            for (name, value) in url::form_urlencoded::parse(&body) {
                form.add(&name, value.into_owned())?;
            }
        }
        "application/json" => form.read_json(&read_all(request, max_base64, max_bytes).await?)?,
        _ => {
            let title =
                "Send multipart/form-data, application/x-www-form-urlencoded or application/json.";
            return Err(Refusal::of_parameter("invalid_content_type", title.into()));
        }
    }
    Ok(form)
}

async fn read_all(request: Request, limit: usize, max_bytes: usize) -> Result<Bytes, Refusal> {
    // The only error that a client can cause is exceeding the limit.
    to_bytes(request.into_body(), limit)
        .await
        .map_err(|_| ApiError::FileTooLarge { max_bytes }.into())
}

impl Form {
    fn add(&mut self, name: &str, value: String) -> Result<(), Refusal> {
        if name != "image_file_b64" && value.len() > MAX_TEXT_BYTES {
            let title = format!("{} is too long.", printable(name));
            return Err(Refusal::of_parameter("invalid_parameter", title));
        }
        // Clients send omitted parameters as empty fields.
        if !value.is_empty() {
            self.fields.push((name.to_owned(), value));
        }
        Ok(())
    }

    fn read_json(&mut self, body: &[u8]) -> Result<(), Refusal> {
        let fields: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| malformed("the body is not a JSON object"))?;
        for (name, value) in fields {
            match value {
                Value::Null => {}
                Value::String(text) => self.add(&name, text)?,
                Value::Bool(_) | Value::Number(_) => self.add(&name, value.to_string())?,
                Value::Array(_) | Value::Object(_) => {
                    let title = format!("{} must be a single value.", printable(&name));
                    return Err(Refusal::of_parameter("invalid_parameter", title));
                }
            }
        }
        Ok(())
    }

    async fn read_multipart(
        &mut self,
        mut request: Request,
        max_base64: usize,
    ) -> Result<(), Refusal> {
        DefaultBodyLimit::max(max_base64 + OVERHEAD).apply(&mut request);
        let mut body: Multipart = request
            .extract()
            .await
            .map_err(|error: MultipartRejection| malformed(&error.body_text()))?;
        let max_bytes = self.max_bytes;
        while let Some(field) =
            body.next_field().await.map_err(|error| broken(&error, max_bytes))?
        {
            let name = field.name().unwrap_or_default().to_owned();
            let is_file = name == "image_file" || field.file_name().is_some();
            let limit = match name.as_str() {
                "image_file" => max_bytes,
                "image_file_b64" => max_base64,
                _ => MAX_TEXT_BYTES,
            };
            if is_file && name != "image_file" {
                // A background image, for example: not supported, so that its name is all we need.
                self.fields.push((name, "a file".into()));
                continue;
            }
            let bytes = read_field(field, limit, max_bytes).await?;
            if !is_file {
                let text = String::from_utf8(bytes)
                    .map_err(|_| malformed(&format!("{} is not UTF-8", printable(&name))))?;
                self.add(&name, text)?;
            } else if !bytes.is_empty() {
                self.files.push(bytes.into());
            }
        }
        Ok(())
    }
}

/// Reads a field, and stops when it exceeds `limit` bytes.
async fn read_field(
    mut field: Field<'_>,
    limit: usize,
    max_bytes: usize,
) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(|error| broken(&error, max_bytes))? {
        if bytes.len() + chunk.len() > limit {
            let name = printable(field.name().unwrap_or_default());
            return Err(if name.starts_with("image_file") {
                ApiError::FileTooLarge { max_bytes }.into()
            } else {
                Refusal::of_parameter("invalid_parameter", format!("{name} is too long."))
            });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn broken(error: &MultipartError, max_bytes: usize) -> Refusal {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        ApiError::FileTooLarge { max_bytes }.into()
    } else {
        malformed(&error.body_text())
    }
}

fn malformed(reason: &str) -> Refusal {
    Refusal::of_parameter("bad_request", format!("The request is malformed: {reason}"))
}

/// Shortens a parameter name that the client chose, and drops control characters, so that a response can repeat it.
pub fn printable(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(40).collect()
}

/// The parameters, for the `OpenAPI` document. Any other is rejected.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents a body that is read field by field")]
pub struct RemovalForm {
    /// The image: PNG, JPEG or WebP. Only in `multipart/form-data`.
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
