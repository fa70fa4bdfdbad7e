//! `/api/free`: what visitors can do without an account.

use std::net::IpAddr;

use axum::extract::multipart::MultipartRejection;
use axum::extract::{Extension, Multipart, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use retouch_catalog::{Factor, Tool};

use super::body::Sending;
use super::caller::{Address, FileUpload, Query, Wishes, multipart, uploaded_file};
use super::problem::Problem;
use super::run::{accepted, no_store};
use super::views::JobView;
use crate::error::ApiError;
use crate::state::App;
use crate::usecases::run_tool::Ran;
use crate::usecases::run_visitor_tool::run_visitor_tool;

/// Removes the background of one picture, free and without an account. Waits for the PNG; with
/// `Prefer: respond-async`, or when it takes too long, it answers 202 with a job that can be followed
/// without a token. Nothing is kept for longer than an hour.
#[utoipa::path(post, path = "/api/free/remove-bg-fr", tag = "free",
    request_body(content = FileUpload, content_type = "multipart/form-data"),
    params(VisitorHeaders), responses(VisitorAnswers))]
pub async fn remove_background(
    State(app): State<App>,
    Address(address): Address,
    wishes: Wishes,
    sending: Option<Extension<Sending>>,
    body: Result<Multipart, MultipartRejection>,
) -> Result<Response, ApiError> {
    let body = (multipart(body)?, sending);
    run_free(&app, address, Tool::RemoveBackground, &wishes, body).await
}

/// Makes one picture twice as wide and twice as high, free and without an account; answers as
/// `remove-bg-fr` does.
#[utoipa::path(post, path = "/api/free/upscale-fr", tag = "free",
    request_body(content = FileUpload, content_type = "multipart/form-data"),
    params(VisitorHeaders), responses(VisitorAnswers))]
pub async fn upscale(
    State(app): State<App>,
    Address(address): Address,
    wishes: Wishes,
    sending: Option<Extension<Sending>>,
    body: Result<Multipart, MultipartRejection>,
) -> Result<Response, ApiError> {
    let body = (multipart(body)?, sending);
    run_free(&app, address, Tool::Upscale(Factor::X2), &wishes, body).await
}

async fn run_free(
    app: &App,
    address: IpAddr,
    tool: Tool,
    wishes: &Wishes,
    (body, sending): (Multipart, Option<Extension<Sending>>),
) -> Result<Response, ApiError> {
    let file = uploaded_file(body, app.limits.max_upload_bytes).await?;
    let worked_off = || {
        if let Some(Extension(sending)) = &sending {
            sending.worked_off();
        }
    };
    let ran = run_visitor_tool(app, address, tool, file, worked_off, wishes.wait).await?;
    let mut response = match ran {
        Ran::Pending(job) => accepted(app, &job).await?,
        Ran::Done(results) => {
            let made = results.first().ok_or(ApiError::NotFound("Result"))?;
            let png = app.storage.get(&made.object_key).await?;
            ([(header::CONTENT_TYPE, "image/png")], png).into_response()
        }
    };
    no_store(&mut response);
    Ok(response)
}

/// The header that visitors' run routes heed, for the `OpenAPI` document.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes a header that an extractor reads")]
pub struct VisitorHeaders {
    /// `respond-async` to get the job at once.
    #[param(rename = "Prefer")]
    prefer: Option<String>,
}

/// How visitors' run routes answer, for the `OpenAPI` document.
#[derive(utoipa::IntoResponses)]
pub enum VisitorAnswers {
    /// The result.
    #[response(status = 200, content_type = "image/png")]
    Done(Vec<u8>),
    /// The job, still under way.
    #[response(status = 202)]
    Pending(JobView),
    /// The request is not understood.
    #[response(status = 400)]
    BadRequest(Problem),
    /// The upload took too long.
    #[response(status = 408)]
    TooSlow(Problem),
    /// The free run of this picture is used up, or the run was cancelled.
    #[response(status = 409)]
    Conflict(Problem),
    /// The file is too large.
    #[response(status = 413)]
    TooLarge(Problem),
    /// The file is no picture that we read.
    #[response(status = 415)]
    UnsupportedType(Problem),
    /// The picture cannot be worked on.
    #[response(status = 422)]
    Unprocessable(Problem),
    /// Too many free runs from this network.
    #[response(status = 429)]
    TooManyRequests(Problem),
    /// Too much is waiting.
    #[response(status = 503)]
    Unavailable(Problem),
}

/// What the page reports when somebody chose a picture that is too big.
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

/// Counts the choice of a picture that is too big.
#[utoipa::path(get, path = "/api/free/upload", tag = "free", params(OversizeReport),
    responses((status = 204), (status = 400, body = Problem)))]
pub async fn report_oversize(Query(report): Query<OversizeReport>) -> StatusCode {
    metrics::counter!("retouch_oversize_choices_total").increment(1);
    let number = |text: Option<String>| text.and_then(|text| text.parse::<u32>().ok());
    tracing::info!(
        x = number(report.x),
        y = number(report.y),
        page = report.url.as_deref().map(page_of),
        "Somebody chose a picture that is too big"
    );
    StatusCode::NO_CONTENT
}

/// The path of a page's address that a stranger sent: no query, nobody's name, no line breaks, not too long.
fn page_of(url: &str) -> String {
    let url = url::Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    let path = url.as_ref().map_or("", url::Url::path);
    path.chars().filter(|c| c.is_ascii_alphanumeric() || "/-_.%".contains(*c)).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reported_address_leaves_nothing_but_its_path_in_the_log() {
        assert_eq!(page_of("https://x.test/upscale?token=secret#a"), "/upscale");
        assert_eq!(page_of("https://ada:pass@x.test/a b\u{1b}[31m;c"), "/a%20b%1B31mc");
        for other in ["not an address\r\nINFO forged", "mailto:ada@x.test", "data:,secret", "/a"] {
            assert_eq!(page_of(other), "");
        }
        assert_eq!(page_of(&format!("https://x.test/{}", "a".repeat(900))).len(), 200);
    }
}
