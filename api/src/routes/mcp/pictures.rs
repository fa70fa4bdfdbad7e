//! Reads the picture and the area that the arguments of a call name.

use axum::http::Uri;
use bytes::Bytes;
use retouch_core::selection::Clicks;

use super::arguments::{AreaArgument, PictureArgument};
use crate::error::ApiError;
use crate::http::base64_file::{Base64Error, Base64File};
use crate::http::signature::Signature;
use crate::signing::File;
use crate::state::App;
use crate::usecases::mcp::{Area, PictureSource};

/// Maximum size of a picture in a message, in bytes. The arguments' comments state it.
pub const MAX_PICTURE_BYTES: usize = 5 << 20;
/// Maximum size of a mask in a message, in bytes. The arguments' comments state it.
pub const MAX_MASK_BYTES: usize = 2 << 20;

/// Returns the picture that an argument names or contains.
pub fn picture(app: &App, argument: PictureArgument) -> Result<PictureSource, ApiError> {
    let PictureArgument { id, url, base64 } = argument;
    match (id, url, base64) {
        (Some(id), None, None) => {
            let id = id.trim().parse().map_err(|_| ApiError::NotFound("Image"))?;
            Ok(PictureSource::Id(id))
        }
        (None, Some(url), None) => file_at(app, url.trim()).map(PictureSource::File),
        (None, None, Some(text)) => {
            let max_bytes = MAX_PICTURE_BYTES.min(app.limits.max_upload_bytes);
            decode(&text, max_bytes, "image.base64").map(PictureSource::Inline)
        }
        _ => Err(invalid("Give exactly one of image.id, image.url and image.base64.")),
    }
}

/// Returns the area that an argument describes.
pub fn area(argument: AreaArgument) -> Result<Area, ApiError> {
    let AreaArgument { mask_base64, area, points, negative_points, subject } = argument;
    let is_subject = subject.unwrap_or(false);
    if negative_points.is_some() && points.is_none() {
        return Err(invalid("area.negative_points needs area.points."));
    }
    match (mask_base64, area, points, is_subject) {
        (Some(text), None, None, false) => {
            decode(&text, MAX_MASK_BYTES, "area.mask_base64").map(Area::Mask)
        }
        (None, Some(area), None, false) => Ok(Area::Box(area.into())),
        (None, None, Some(points), false) => Ok(Area::Clicks(Clicks {
            positive: points.into_iter().map(Into::into).collect(),
            negative: negative_points.into_iter().flatten().map(Into::into).collect(),
            ..Clicks::default()
        })),
        (None, None, None, true) => Ok(Area::Clicks(Clicks { subject: true, ..Clicks::default() })),
        _ => Err(invalid(
            "Give exactly one of area.mask_base64, area.box, area.points and area.subject.",
        )),
    }
}

/// Returns the file of a signed address of this installation. Fetches nothing.
fn file_at(app: &App, address: &str) -> Result<File, ApiError> {
    let foreign = || {
        let detail = "image.url must be an address of this server from an earlier answer. Send other pictures as \
                      image.base64, or upload them.";
        invalid(detail)
    };
    let url = app.public_url.join(address).map_err(|_| foreign())?;
    if url.origin() != app.public_url.origin() {
        return Err(foreign());
    }
    let path = url.path().strip_prefix("/api/files/").and_then(|path| path.split_once('/'));
    let file = path.and_then(|(kind, id)| File::parse(kind, id)).ok_or_else(foreign)?;
    let uri: Uri = url.as_str().parse().map_err(|_| foreign())?;
    let is_valid = axum::extract::Query::<Signature>::try_from_uri(&uri)
        .is_ok_and(|signature| signature.verify(app, file).is_some());
    if is_valid {
        return Ok(file);
    }
    Err(invalid("This address has expired or is incomplete. Use image.id, or a new address."))
}

/// Decodes the file in an argument, of at most `max_bytes`.
fn decode(text: &str, max_bytes: usize, name: &str) -> Result<Bytes, ApiError> {
    let mut file = Base64File::default();
    let bytes = file.push(text.as_bytes(), max_bytes).and_then(|()| file.finish(max_bytes));
    match bytes {
        Ok(bytes) if bytes.is_empty() => Err(invalid(&format!("{name} is empty."))),
        Ok(bytes) => Ok(bytes.into()),
        Err(Base64Error::NotBase64) => Err(invalid(&format!("{name} is not base64."))),
        Err(Base64Error::TooLarge) => Err(ApiError::FileTooLarge { max_bytes }),
    }
}

fn invalid(detail: &str) -> ApiError {
    ApiError::BadRequest(detail.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Result<Bytes, String> {
        decode(text, 6, "it").map_err(|error| error.to_string())
    }

    #[test]
    fn base64_has_padding_or_not_and_may_have_lines_or_be_a_data_url() {
        for text in ["aGVsbG8=", "aGVsbG8", " aGVs\r\nbG8=\n", "data:image/png;base64,aGVsbG8="] {
            assert_eq!(decoded(text).as_deref(), Ok(&b"hello"[..]), "{text}");
        }
        for text in ["", "\n", "data:image/png;base64,"] {
            assert_eq!(decoded(text), Err("it is empty.".into()), "{text}");
        }
        for text in ["not base64!", "data:image/png,hello", "data:"] {
            assert_eq!(decoded(text), Err("it is not base64.".into()), "{text}");
        }
        assert_eq!(decoded("aGVsbG8h").as_deref(), Ok(&b"hello!"[..]));
        assert!(decoded("aGVsbG8hIQ==").unwrap_err().starts_with("The file is too large"));
    }

    #[test]
    fn an_area_is_exactly_one_thing() {
        let parse = |text: &str| area(serde_json::from_str(text).unwrap());
        assert!(
            matches!(parse(r#"{"subject": true}"#), Ok(Area::Clicks(clicks)) if clicks.subject)
        );
        assert!(
            matches!(parse(r#"{"box": {"x": 1, "y": 2, "width": 3, "height": 4}}"#), Ok(Area::Box(area)) if area.height == 4)
        );
        let clicked =
            parse(r#"{"points": [{"x": 1, "y": 2}], "negative_points": [{"x": 3, "y": 4}]}"#);
        assert!(matches!(clicked, Ok(Area::Clicks(clicks)) if clicks.negative[0].x == 3));
        for wrong in [
            "{}",
            r#"{"subject": false}"#,
            r#"{"subject": true, "points": []}"#,
            r#"{"negative_points": [], "subject": true}"#,
            r#"{"mask_base64": "AA", "box": {"x": 1, "y": 2, "width": 3, "height": 4}}"#,
        ] {
            assert!(matches!(parse(wrong), Err(ApiError::BadRequest(_))), "{wrong}");
        }
    }
}
