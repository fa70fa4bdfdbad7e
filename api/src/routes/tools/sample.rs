//! `/api/upscale/sample`: what a paid upscale makes of a small part of a picture, for comparison.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use retouch_catalog::Factor;

use crate::error::ApiError;
use crate::http::caller::{ClientAddress, OptionalUser};
use crate::http::multipart::{FileUpload, UploadBody, multipart, uploaded_file};
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::state::App;
use crate::usecases::sample::sample;

/// More than any file of 128 × 128 pixels needs.
const MAX_BYTES: usize = 256 << 10;

/// The parameters of a sample.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SampleQuery {
    /// How much wider and higher the part becomes.
    #[param(inline)]
    factor: Factor,
    /// The width of the whole picture in pixels, which decides between models.
    #[param(minimum = 1)]
    width: u32,
    /// The height of the whole picture in pixels.
    #[param(minimum = 1)]
    height: u32,
}

/// Upscales a part of a picture, at most 128 pixels wide and high, with the model for paid runs. Free of charge, without
/// an account, and nothing is stored. Returns the PNG.
#[utoipa::path(post, path = "/api/upscale/sample", tag = "upscale", params(SampleQuery),
    request_body(content = FileUpload, content_type = "multipart/form-data"),
    responses((status = 200, content_type = "image/png", body = Vec<u8>), (status = 400, body = Problem),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 408, body = Problem),
        (status = 413, body = Problem), (status = 415, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn sample_upscale(
    State(app): State<App>,
    OptionalUser(user): OptionalUser,
    ClientAddress(address): ClientAddress,
    Query(query): Query<SampleQuery>,
    body: UploadBody,
) -> Result<Response, ApiError> {
    let file = uploaded_file(multipart(body)?, MAX_BYTES).await?;
    let caller = (user.map(|user| user.id), address);
    let png = sample(&app, caller, file, query.factor, (query.width, query.height)).await?;
    Ok(([(header::CONTENT_TYPE, "image/png")], png).into_response())
}
