//! `/api/free`: the free tools for visitors.

use std::net::IpAddr;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use retouch_catalog::{Factor, Tool};

use super::run::{Accepted, accepted};
use crate::error::ApiError;
use crate::http::body::UploadMemory;
use crate::http::caller::ClientAddress;
use crate::http::form_data::FormData;
use crate::http::multipart::{FileUpload, UploadBody, multipart, uploaded_file};
use crate::http::object::body_of;
use crate::http::problem::Problem;
use crate::http::request::{Query, RequestPreferences};
use crate::state::App;
use crate::usecases::run_tool::RunOutcome;
use crate::usecases::run_visitor_tool::run_visitor_tool;

/// Removes the background of an image, free and without an account. Returns the PNG. With
/// `Prefer: respond-async`, or after a timeout, returns 202 with a job that can be read without a token. Image and
/// result are deleted after an hour.
#[utoipa::path(post, path = "/api/free/remove-bg-fr", tag = "free",
    request_body(content = FileUpload, content_type = "multipart/form-data"),
    params(VisitorHeaders), responses(VisitorAnswers))]
pub async fn remove_background(
    State(app): State<App>,
    ClientAddress(address): ClientAddress,
    preferences: RequestPreferences,
    memory: UploadMemory,
    body: UploadBody,
) -> Result<Response, ApiError> {
    let body = (multipart(body)?, memory);
    run_free(&app, address, Tool::RemoveBackground, &preferences, body).await
}

/// Upscales an image to twice its width and height, free and without an account. Responds like `remove-bg-fr`.
#[utoipa::path(post, path = "/api/free/upscale-fr", tag = "free",
    request_body(content = FileUpload, content_type = "multipart/form-data"),
    params(VisitorHeaders), responses(VisitorAnswers))]
pub async fn upscale(
    State(app): State<App>,
    ClientAddress(address): ClientAddress,
    preferences: RequestPreferences,
    memory: UploadMemory,
    body: UploadBody,
) -> Result<Response, ApiError> {
    let body = (multipart(body)?, memory);
    run_free(&app, address, Tool::Upscale(Factor::X2), &preferences, body).await
}

async fn run_free(
    app: &App,
    address: IpAddr,
    tool: Tool,
    preferences: &RequestPreferences,
    (body, memory): (FormData, UploadMemory),
) -> Result<Response, ApiError> {
    let file = uploaded_file(body, app.limits.max_upload_bytes).await?;
    let release_file = || memory.release();
    let outcome =
        run_visitor_tool(app, address, tool, file, release_file, preferences.wait).await?;
    match outcome {
        RunOutcome::Pending(job) => Ok(accepted(app, &job, preferences.is_async).await),
        RunOutcome::Done(results) => {
            let result = results.first().ok_or(ApiError::NotFound("Result"))?;
            let png = app.storage.open(&result.object_key, None).await?;
            let headers = [
                (header::CONTENT_TYPE, HeaderValue::from_static("image/png")),
                (header::CONTENT_LENGTH, HeaderValue::from(png.length)),
            ];
            Ok((headers, body_of(png)).into_response())
        }
    }
}

/// The header of the routes for visitors, for the OpenAPI document.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "documents a header that an extractor reads")]
pub struct VisitorHeaders {
    /// `respond-async` to get the job immediately.
    #[param(rename = "Prefer")]
    prefer: Option<String>,
}

/// The responses of the routes for visitors, for the OpenAPI document.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "documents the responses of handlers")]
pub enum VisitorAnswers {
    /// The result.
    #[response(status = 200, content_type = "image/png")]
    Done(Vec<u8>),
    #[response(status = 202)]
    Pending(#[to_response] Accepted),
    /// The request is malformed.
    #[response(status = 400)]
    BadRequest(Problem),
    /// A page of another site sent the request.
    #[response(status = 403)]
    CrossSite(Problem),
    /// The upload took too long.
    #[response(status = 408)]
    UploadTimeout(Problem),
    /// The free run of this image is used up, or the run was canceled.
    #[response(status = 409)]
    Conflict(Problem),
    /// The file is too large.
    #[response(status = 413)]
    TooLarge(Problem),
    /// The file is not a supported image.
    #[response(status = 415)]
    UnsupportedType(Problem),
    /// The image cannot be processed.
    #[response(status = 422)]
    Unprocessable(Problem),
    /// Too many uploads or free runs from this network.
    #[response(status = 429)]
    TooManyRequests(Problem),
    /// The run failed.
    #[response(status = 500)]
    Failed(Problem),
    /// The server is busy.
    #[response(status = 503)]
    Unavailable(Problem),
}

/// The page's report that someone selected an image above the size limit.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct OversizeReport {
    /// The width, in pixels.
    x: Option<String>,
    /// The height, in pixels.
    y: Option<String>,
    /// The address of the page. It is only logged, never fetched.
    url: Option<String>,
}

/// Counts selections of images above the size limit.
#[utoipa::path(get, path = "/api/free/upload", tag = "free", params(OversizeReport),
    responses((status = 204), (status = 400, body = Problem)))]
pub async fn report_oversize(Query(report): Query<OversizeReport>) -> StatusCode {
    metrics::counter!("retouch_oversize_choices_total").increment(1);
    let number = |text: Option<String>| text.and_then(|text| text.parse::<u32>().ok());
    tracing::info!(
        x = number(report.x),
        y = number(report.y),
        page = report.url.as_deref().map(loggable_path),
        "A visitor selected an image above the size limit"
    );
    StatusCode::NO_CONTENT
}

/// Returns the path of a URL from an untrusted client, safe to log: without credentials, query and special
/// characters, up to 200 characters.
fn loggable_path(url: &str) -> String {
    let url = url::Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    let path = url.as_ref().map_or("", url::Url::path);
    path.chars().filter(|c| c.is_ascii_alphanumeric() || "/-_.%".contains(*c)).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_of_a_reported_url_is_logged() {
        assert_eq!(loggable_path("https://x.test/upscale?token=secret#a"), "/upscale");
        assert_eq!(loggable_path("https://ada:pass@x.test/a b\u{1b}[31m;c"), "/a%20b%1B31mc");
        for other in ["not an address\r\nINFO forged", "mailto:ada@x.test", "data:,secret", "/a"] {
            assert_eq!(loggable_path(other), "");
        }
        assert_eq!(loggable_path(&format!("https://x.test/{}", "a".repeat(900))).len(), 200);
    }
}
