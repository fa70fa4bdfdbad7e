//! `/api/jobs`: unfinished runs, and canceling them.

pub mod views;

use axum::Json;
use axum::extract::State;
use retouch_core::jobs::{self, Job};
use retouch_core::users::User;

use self::views::{active_job_views, job_view};
use super::views::{JobListView, JobView};
use crate::error::ApiError;
use crate::http::caller::{OptionalUser, SignedIn};
use crate::http::problem::Problem;
use crate::http::request::{Path, Query, id};
use crate::state::App;
use crate::usecases::run_tool::announce_canceled;

/// Filters the list of jobs.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    /// Only jobs on this image.
    image_id: Option<String>,
}

/// The caller's unfinished jobs.
#[utoipa::path(get, path = "/api/jobs", tag = "jobs", params(JobQuery),
    responses((status = 200, body = JobListView), (status = 400, body = Problem), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn list_jobs(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Query(query): Query<JobQuery>,
) -> Result<Json<JobListView>, ApiError> {
    // A malformed id gets the same response as an image without jobs.
    let Ok(image) = query.image_id.as_deref().map(str::parse).transpose() else {
        return Ok(Json(JobListView { jobs: Vec::new() }));
    };
    let active = jobs::active(&app.pool, user.id, image).await?;
    Ok(Json(JobListView { jobs: active_job_views(&app, &active).await? }))
}

/// One job. Visitors' jobs can be read without a token by anyone who knows the id.
#[utoipa::path(get, path = "/api/jobs/{jobId}", tag = "jobs", params(("jobId" = String, Path)),
    responses((status = 200, body = JobView), (status = 401, body = Problem), (status = 404, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn get_job(
    State(app): State<App>,
    OptionalUser(caller): OptionalUser,
    Path(job): Path<String>,
) -> Result<Json<JobView>, ApiError> {
    let job = visible(&app, caller.as_ref(), &job).await?;
    Ok(Json(job_view(&app, &job).await?))
}

/// Cancels a job, which then costs nothing, and frees its idempotency key: a request with this key runs again. A job that has
/// ended stays unchanged.
#[utoipa::path(delete, path = "/api/jobs/{jobId}", tag = "jobs", params(("jobId" = String, Path)),
    responses((status = 200, body = JobView), (status = 401, body = Problem), (status = 404, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn cancel_job(
    State(app): State<App>,
    OptionalUser(caller): OptionalUser,
    Path(job): Path<String>,
) -> Result<Json<JobView>, ApiError> {
    let job = visible(&app, caller.as_ref(), &job).await?;
    let (pool, id) = (app.pool.clone(), job.id);
    let cancellation = async move { jobs::cancel(&pool, id).await };
    let is_canceled = match job.owner {
        Some(owner) => app.in_turn_of(owner, cancellation).await??,
        None => cancellation.await?,
    };
    if is_canceled {
        announce_canceled(&app, &[job.id]).await;
    }
    let job = jobs::get(&app.pool, job.id).await?.ok_or(ApiError::NotFound("Job"))?;
    Ok(Json(job_view(&app, &job).await?))
}

/// Returns a job that `caller` may see: their own, or a visitor's.
pub async fn visible(app: &App, caller: Option<&User>, job: &str) -> Result<Job, ApiError> {
    let job = jobs::get(&app.pool, id(job, "Job")?).await?.ok_or(ApiError::NotFound("Job"))?;
    match (job.owner, caller) {
        (None, _) => Ok(job),
        (Some(owner), Some(caller)) if owner == caller.id => Ok(job),
        _ => Err(ApiError::NotFound("Job")),
    }
}
