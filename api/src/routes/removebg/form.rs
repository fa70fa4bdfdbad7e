//! The body of a call, in any of its three kinds, as a picture and a list of fields.

use axum::RequestExt;
use axum::body::to_bytes;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, Multipart, Request};
use axum::http::{StatusCode, header};
use bytes::Bytes;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::refusal::Refusal;
use crate::error::ApiError;
use crate::routes::caller::sent;

/// The longest value of a field that is no picture, in bytes.
const MOST_TEXT: usize = 4096;
/// Room for what surrounds the picture.
const ROOM: usize = 64 * 1024;

/// What was sent, in the order it came.
pub struct Form {
    /// The picture as a file of its own.
    pub files: Vec<Bytes>,
    /// All other fields that say something.
    pub fields: Vec<(String, String)>,
    /// The largest picture, in bytes.
    pub max_bytes: usize,
}

/// Reads the body.
pub async fn read(request: Request, max_bytes: usize) -> Result<Form, Refusal> {
    let kind = sent(request.headers(), header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // Base64 makes 4 bytes of 3, and the escapes of a form make yet more of them.
    let in_text = max_bytes / 3 * 4 + ROOM;
    let mut form = Form { files: Vec::new(), fields: Vec::new(), max_bytes };
    match kind.as_str() {
        "multipart/form-data" => form.read_multipart(request, in_text).await?,
        "application/x-www-form-urlencoded" => {
            let body = whole(request, in_text + in_text / 4, max_bytes).await?;
            for (name, value) in url::form_urlencoded::parse(&body) {
                form.add(&name, value.into_owned())?;
            }
        }
        "application/json" => form.read_json(&whole(request, in_text, max_bytes).await?)?,
        _ => {
            let title =
                "Send multipart/form-data, application/x-www-form-urlencoded or application/json";
            return Err(Refusal::of_parameter("invalid_content_type", title.into()));
        }
    }
    Ok(form)
}

async fn whole(request: Request, limit: usize, max_bytes: usize) -> Result<Bytes, Refusal> {
    // It ends when the limit is passed, and for no other reason that a caller could mend.
    to_bytes(request.into_body(), limit)
        .await
        .map_err(|_| ApiError::FileTooLarge { max_bytes }.into())
}

impl Form {
    fn add(&mut self, name: &str, value: String) -> Result<(), Refusal> {
        if name != "image_file_b64" && value.len() > MOST_TEXT {
            let title = format!("{} is too long", shown(name));
            return Err(Refusal::of_parameter("invalid_parameter", title));
        }
        // Clients send what was left out as an empty field.
        if !value.is_empty() {
            self.fields.push((name.to_owned(), value));
        }
        Ok(())
    }

    fn read_json(&mut self, body: &[u8]) -> Result<(), Refusal> {
        let fields: Map<String, Value> = serde_json::from_slice(body)
            .map_err(|_| not_understood("the body is no JSON object"))?;
        for (name, value) in fields {
            match value {
                Value::Null => {}
                Value::String(text) => self.add(&name, text)?,
                Value::Bool(_) | Value::Number(_) => self.add(&name, value.to_string())?,
                Value::Array(_) | Value::Object(_) => {
                    let title = format!("{} is no single value", shown(&name));
                    return Err(Refusal::of_parameter("invalid_parameter", title));
                }
            }
        }
        Ok(())
    }

    async fn read_multipart(
        &mut self,
        mut request: Request,
        in_text: usize,
    ) -> Result<(), Refusal> {
        DefaultBodyLimit::max(in_text + ROOM).apply(&mut request);
        let mut body: Multipart = request.extract().await.map_err(
            |error: axum::extract::multipart::MultipartRejection| {
                not_understood(&error.body_text())
            },
        )?;
        let max_bytes = self.max_bytes;
        while let Some(field) =
            body.next_field().await.map_err(|error| broken(&error, max_bytes))?
        {
            let name = field.name().unwrap_or_default().to_owned();
            // A background may come as a file, too; that it is not supported is said by its name.
            let is_file = name == "image_file" || field.file_name().is_some();
            let limit = match name.as_str() {
                "image_file" => max_bytes,
                "image_file_b64" => in_text,
                _ => MOST_TEXT,
            };
            if is_file && name != "image_file" {
                self.fields.push((name, "a file".into()));
                continue;
            }
            let bytes = within(field, limit, max_bytes).await?;
            if !is_file {
                let text = String::from_utf8(bytes)
                    .map_err(|_| not_understood(&format!("{} is no text", shown(&name))))?;
                self.add(&name, text)?;
            } else if !bytes.is_empty() {
                self.files.push(bytes.into());
            }
        }
        Ok(())
    }
}

/// A field of at most `limit` bytes; no more of it is ever held.
async fn within(mut field: Field<'_>, limit: usize, max_bytes: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(|error| broken(&error, max_bytes))? {
        if bytes.len() + chunk.len() > limit {
            let name = shown(field.name().unwrap_or_default());
            return Err(if name.starts_with("image_file") {
                ApiError::FileTooLarge { max_bytes }.into()
            } else {
                Refusal::of_parameter("invalid_parameter", format!("{name} is too long"))
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
        not_understood(&error.body_text())
    }
}

fn not_understood(reason: &str) -> Refusal {
    Refusal::of_parameter("bad_request", format!("The request is not understood: {reason}"))
}

/// A name that a stranger chose, fit to be repeated.
pub fn shown(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(40).collect()
}

/// The fields of a call, for the `OpenAPI` document. Any field that is not here is refused.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes a body that is read field by field")]
pub struct RemovalForm {
    /// The picture: PNG, JPEG or WebP. Only in `multipart/form-data`.
    #[schema(value_type = Option<String>, format = Binary)]
    image_file: Option<Vec<u8>>,
    /// The picture in base64, in place of `image_file`.
    image_file_b64: Option<String>,
    /// `preview`, `small`, `regular` (0.25 megapixels), `medium` (1.5), `hd` (4), `full`, `4k`, `50MP` or
    /// `auto` (as it is). The price is the same.
    #[schema(default = "preview")]
    size: Option<String>,
    /// Accepted for clients that send it; the model needs no hint.
    #[schema(default = "auto")]
    r#type: Option<String>,
    /// Accepted for clients that send it; no type is reported.
    type_level: Option<String>,
    /// `auto` (PNG where something is transparent, else JPEG), `png`, `jpg`, `webp` or `zip` (`color.jpg` and
    /// `alpha.png`).
    #[schema(default = "auto")]
    format: Option<String>,
    /// `rgba`, or `alpha` for the mask alone.
    #[schema(default = "rgba")]
    channels: Option<String>,
    /// What is put behind the subject: 3, 4, 6 or 8 hexadecimal digits, or a name of CSS.
    #[schema(example = "81d4fa")]
    bg_color: Option<String>,
    /// `true` cuts off what is empty around the subject.
    #[schema(default = "false")]
    crop: Option<String>,
    /// What stays when cropping: one, two or four of `30px` or `10%` (of the subject), up to 500 px or 50 %.
    #[schema(example = "10% 20px")]
    crop_margin: Option<String>,
    /// How much of the picture the subject shall take, `10%` to `100%`, or `original`.
    #[schema(default = "original")]
    scale: Option<String>,
    /// `original`, `center`, `x%` or `x% y%`.
    #[schema(example = "50% 100%")]
    position: Option<String>,
    /// Only the whole picture.
    #[schema(default = "0% 0% 100% 100%")]
    roi: Option<String>,
    /// Only `false`.
    #[schema(default = "false")]
    add_shadow: Option<String>,
    /// Only `true`.
    #[schema(default = "true")]
    semitransparency: Option<String>,
}
