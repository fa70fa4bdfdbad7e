//! What the routes of all tools share: running one, listing what it made, deleting that.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use retouch_catalog::{Tier, Tool, ToolName};
use retouch_core::jobs::{self, Job};
use retouch_core::results::{self, Filter};
use retouch_core::{UserId, images};

use super::caller::{ImageQuery, Wishes, id};
use super::problem::Problem;
use super::views::{JobView, ResultView};
use crate::error::ApiError;
use crate::state::App;
pub use crate::usecases::run_tool::tell_of_cancelled;
use crate::usecases::run_tool::{Ran, Run, results_of, run_tool};

/// The headers that every run route heeds, for the `OpenAPI` document; [`super::caller::Wishes`] reads them.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes headers that an extractor reads")]
pub struct RunHeaders {
    /// Makes a repeat return the first answer.
    #[param(rename = "Idempotency-Key")]
    idempotency_key: Option<String>,
    /// `respond-async` to get the job at once.
    #[param(rename = "Prefer")]
    prefer: Option<String>,
}

/// How every run route answers, for the `OpenAPI` document.
#[derive(utoipa::IntoResponses)]
pub enum RunAnswers {
    /// The new results.
    #[response(status = 200)]
    Done(Vec<ResultView>),
    /// The job, still under way.
    #[response(status = 202)]
    Pending(JobView),
    /// The request is not understood.
    #[response(status = 400)]
    BadRequest(Problem),
    /// No valid token.
    #[response(status = 401)]
    Unauthorized(Problem),
    /// Not enough credits.
    #[response(status = 402)]
    NotEnoughCredits(Problem),
    /// No such picture.
    #[response(status = 404)]
    NotFound(Problem),
    /// The free run is used up, or the run was cancelled.
    #[response(status = 409)]
    Conflict(Problem),
    /// The picture cannot be worked on.
    #[response(status = 422)]
    Unprocessable(Problem),
    /// Too many runs a minute, or too many of the caller's are waiting.
    #[response(status = 429)]
    TooManyRequests(Problem),
    /// Too much is waiting.
    #[response(status = 503)]
    Unavailable(Problem),
}

/// Runs a tool on the picture that the query names.
pub async fn run(
    app: &App,
    user: UserId,
    (tool, tier): (Tool, Tier),
    query: &ImageQuery,
    wishes: Wishes,
) -> Result<Response, ApiError> {
    app.rates.count_run(user)?;
    let run = Run {
        image: query.id()?,
        tool,
        tier,
        idempotency_key: wishes.idempotency_key,
        wait: wishes.wait,
    };
    answer(app, run_tool(app, user, run).await?).await
}

/// What a tool made from one picture, the oldest first.
pub async fn list(
    app: &App,
    user: UserId,
    image: &str,
    tool: ToolName,
) -> Result<Json<Vec<ResultView>>, ApiError> {
    let image = images::owned(&app.pool, user, id(image, "Image")?).await?;
    let image = image.ok_or(ApiError::NotFound("Image"))?;
    let filter = Filter { image: Some(image.id), tool: Some(tool), ..Filter::default() };
    Ok(Json(ResultView::list(&results::list(&app.pool, filter).await?, &app.signer)))
}

/// Deletes one result of a tool.
pub async fn delete(
    app: &App,
    user: UserId,
    result: &str,
    tool: ToolName,
) -> Result<StatusCode, ApiError> {
    if results::delete(&app.pool, user, tool, id(result, "Result")?).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::NotFound("Result"))
    }
}

/// The new results, or 202 with the job when it is still under way.
pub async fn answer(app: &App, ran: Ran) -> Result<Response, ApiError> {
    let mut response = match ran {
        Ran::Done(results) => Json(ResultView::list(&results, &app.signer)).into_response(),
        Ran::Pending(job) => accepted(app, &job).await?,
    };
    no_store(&mut response);
    Ok(response)
}

/// 202: the job as it is, and where to look for it.
pub async fn accepted(app: &App, job: &Job) -> Result<Response, ApiError> {
    let body = Json(view(app, job).await?);
    let location = (header::LOCATION, format!("/api/jobs/{}", job.id));
    let applied = (HeaderName::from_static("preference-applied"), "respond-async".to_owned());
    Ok((StatusCode::ACCEPTED, [location, applied], body).into_response())
}

/// A run spends credits: no cache may answer in its place, and none may keep it.
pub fn no_store(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("authorization, x-api-key, prefer"));
}

/// The job with all that is known about it.
pub async fn view(app: &App, job: &Job) -> Result<JobView, ApiError> {
    let results = if job.state == jobs::JobState::Done {
        ResultView::list(&results_of(&app.pool, job.id).await?, &app.signer)
    } else {
        Vec::new()
    };
    let forecast =
        if job.state.is_final() { None } else { Some(jobs::forecast(&app.pool, job).await?) };
    Ok(JobView::new(job, forecast, app.news.progress(job.id), results))
}
