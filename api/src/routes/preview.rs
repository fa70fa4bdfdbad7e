//! `/api/preview`: previews of files that a browser may not be able to display, such as HEIC.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::http::body::UploadMemory;
use crate::http::caller::{ClientAddress, OptionalUser};
use crate::http::multipart::{FileUpload, UploadBody, multipart, uploaded_file};
use crate::http::problem::Problem;
use crate::state::App;
use crate::usecases::preview_picture::preview_picture;

/// Returns a preview, which every browser can display, of a picture that is not uploaded yet: at most 1,600 pixels per
/// side. Counts as an upload, works without an account, and nothing is stored. The headers `X-Width` and `X-Height`
/// contain the full size in pixels.
#[utoipa::path(post, path = "/api/preview", tag = "images",
    request_body(content = FileUpload, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The preview", content(
            (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/webp"))),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 408, body = Problem), (status = 413, body = Problem), (status = 415, body = Problem), (status = 422, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn preview(
    State(app): State<App>,
    OptionalUser(user): OptionalUser,
    ClientAddress(address): ClientAddress,
    memory: UploadMemory,
    body: UploadBody,
) -> Result<Response, ApiError> {
    let file = uploaded_file(multipart(body)?, app.limits.max_upload_bytes).await?;
    let mut preview = preview_picture(&app, (user.map(|user| user.id), address), file).await?;
    memory.hand_over(vec![&mut preview.bytes]);
    let headers = [
        (header::CONTENT_TYPE.as_str(), preview.content_type.to_owned()),
        ("x-width", preview.width.to_string()),
        ("x-height", preview.height.to_string()),
    ];
    Ok((headers, preview.bytes).into_response())
}
