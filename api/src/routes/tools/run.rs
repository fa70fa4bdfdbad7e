//! The handlers that the routes of all tools share: running a tool, listing and deleting results.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use retouch_catalog::{Tier, Tool, ToolName};
use retouch_core::jobs::{Job, JobState};
use retouch_core::results;
use retouch_core::{UserId, with_causes};

use crate::error::ApiError;
use crate::http::problem::Problem;
use crate::http::request::{ImageQuery, RequestPreferences, id};
use crate::routes::jobs::views::job_view;
use crate::routes::views::{JobView, ResultView};
use crate::state::App;
use crate::usecases::find_image::owned_image;
use crate::usecases::run_tool::{RunOutcome, RunRequest, Waiting, run_tool};

/// The headers of run routes, for the OpenAPI document; [`RequestPreferences`] reads them.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "documents headers that an extractor reads")]
pub struct RunHeaders {
    /// A repeated request with the same key gets the first response.
    #[param(rename = "Idempotency-Key")]
    idempotency_key: Option<String>,
    /// `respond-async` to get the job immediately.
    #[param(rename = "Prefer")]
    prefer: Option<String>,
}

/// The responses of run routes, for the OpenAPI document.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "documents the responses of handlers")]
pub enum RunAnswers {
    /// The new results.
    #[response(status = 200)]
    Done(Vec<ResultView>),
    #[response(status = 202)]
    Pending(#[to_response] Accepted),
    /// The request is malformed.
    #[response(status = 400)]
    BadRequest(Problem),
    /// The token or key is missing or invalid.
    #[response(status = 401)]
    Unauthorized(Problem),
    /// Not enough credits.
    #[response(status = 402)]
    NotEnoughCredits(Problem),
    /// The image does not exist.
    #[response(status = 404)]
    NotFound(Problem),
    /// The free run is used up, or the run was canceled.
    #[response(status = 409)]
    Conflict(Problem),
    /// The image cannot be processed, or the Idempotency-Key was used for a different request.
    #[response(status = 422)]
    Unprocessable(Problem),
    /// The caller started too many runs per minute, or has too many in the queue.
    #[response(status = 429)]
    TooManyRequests(Problem),
    /// The run failed.
    #[response(status = 500)]
    Failed(Problem),
    /// The server is busy.
    #[response(status = 503)]
    Unavailable(Problem),
}

/// The job, which has not ended.
#[derive(utoipa::ToResponse)]
#[response(headers(
    ("Location" = String, description = "The path of the job"),
    ("Preference-Applied" = String, description = "`respond-async` if the client asked for it")))]
#[expect(dead_code, reason = "documents a response of handlers")]
pub struct Accepted(JobView);

/// Runs a tool on the image in the query.
pub async fn run(
    app: &App,
    user: UserId,
    (tool, tier): (Tool, Tier),
    query: &ImageQuery,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    app.rate_limits.users.runs.count(user).await?;
    let RequestPreferences { idempotency_key, is_async, wait } = preferences;
    let image = query.id()?;
    let waiting = Waiting::up_to(wait);
    let request = RunRequest { image, tool, tier, idempotency_key, waiting };
    Ok(respond(app, run_tool(app, user, request).await?, is_async).await)
}

/// Lists the results of a tool for one image, oldest first.
pub async fn list(
    app: &App,
    user: UserId,
    image: &str,
    tool: ToolName,
) -> Result<Json<Vec<ResultView>>, ApiError> {
    let image = owned_image(app, user, id(image, "Image")?).await?;
    let mut made = results::of_images(&app.pool, &[image.id]).await?;
    made.retain(|result| result.tool == tool);
    Ok(Json(ResultView::list(&made, &app.signer)))
}

/// Deletes a result of a tool.
pub async fn delete(
    app: &App,
    user: UserId,
    result: &str,
    tool: ToolName,
) -> Result<StatusCode, ApiError> {
    let (pool, result) = (app.pool.clone(), id(result, "Result")?);
    let deletion = async move { results::delete(&pool, user, tool, result).await };
    if app.in_turn_of(user, deletion).await?? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::NotFound("Result"))
    }
}

/// Returns 200 with the new results, or 202 with the job if it has not ended. `is_async` is the client's preference.
pub async fn respond(app: &App, outcome: RunOutcome, is_async: bool) -> Response {
    match outcome {
        RunOutcome::Done(results) => Json(ResultView::list(&results, &app.signer)).into_response(),
        RunOutcome::Pending(job) => accepted(app, &job, is_async).await,
    }
}

/// Returns 202 with the job and its location: because the client prefers that (`is_async`), or after a timeout.
pub async fn accepted(app: &App, job: &Job, is_async: bool) -> Response {
    let body = match job_view(app, job).await {
        Ok(view) => view,
        // The job is submitted, and after an error the client might submit it again.
        Err(error) => {
            let (id, error) = (job.id, with_causes(&error));
            tracing::warn!(error, job.id = %id, "Could not read the details of job {id}");
            job_view_without_details(app, job)
        }
    };
    let location = [(header::LOCATION, format!("/api/jobs/{}", job.id))];
    let applied = is_async.then_some([("preference-applied", "respond-async")]);
    (StatusCode::ACCEPTED, location, applied, Json(body)).into_response()
}

/// Returns the job without results and estimate. One that is done looks as if it still ran: clients take one without results
/// for one whose results were deleted.
fn job_view_without_details(app: &App, job: &Job) -> JobView {
    let state = if job.state == JobState::Done { JobState::Running } else { job.state };
    let finished_at = job.finished_at.filter(|_| state.is_final());
    let job = Job { state, finished_at, ..job.clone() };
    JobView::new(&job, None, app.job_events.progress(job.id), Vec::new())
}
