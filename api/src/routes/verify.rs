//! `/api/verify`: reads the marks of a picture.

use axum::Json;
use axum::extract::State;
use retouch_credentials::Report;

use crate::error::ApiError;
use crate::http::body::UploadMemory;
use crate::http::caller::{ClientAddress, OptionalUser};
use crate::http::multipart::{FileUpload, UploadBody, multipart, uploaded_file};
use crate::http::problem::Problem;
use crate::state::App;
use crate::usecases::verify_picture::verify_picture;

/// Reads the marks of a picture: its Content Credentials (C2PA) and the digital source type in its XMP. Accepts
/// pictures from anywhere. Free of charge, needs no account, and stores nothing.
#[utoipa::path(post, path = "/api/verify", tag = "verify",
    request_body(content = FileUpload, content_type = "multipart/form-data"),
    responses((status = 200, body = Report), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 408, body = Problem), (status = 413, body = Problem),
        (status = 415, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn verify(
    State(app): State<App>,
    OptionalUser(user): OptionalUser,
    ClientAddress(address): ClientAddress,
    memory: UploadMemory,
    body: UploadBody,
) -> Result<Json<Report>, ApiError> {
    let mut file = uploaded_file(multipart(body)?, app.limits.max_upload_bytes).await?;
    memory.hand_over(vec![&mut file]);
    Ok(Json(verify_picture(&app, (user.map(|user| user.id), address), file).await?))
}
