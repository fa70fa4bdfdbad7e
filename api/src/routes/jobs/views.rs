//! Jobs as JSON, with their results, estimates and progress.

use retouch_core::db;
use retouch_core::jobs::{self, Job, JobState};

use crate::error::ApiError;
use crate::routes::views::{JobView, ResultView};
use crate::state::App;
use crate::usecases::run_tool::results_of;

/// Returns active jobs with their estimates and progress.
pub async fn active_job_views(app: &App, active: &[Job]) -> Result<Vec<JobView>, ApiError> {
    let estimates = db::within(jobs::estimates(&app.pool, active)).await?;
    let views = active.iter().zip(estimates).map(|(job, estimate)| {
        JobView::new(job, Some(estimate), app.job_events.progress(job.id), Vec::new())
    });
    Ok(views.collect())
}

/// Returns the job with its results, estimate and progress.
pub async fn job_view(app: &App, job: &Job) -> Result<JobView, ApiError> {
    let results = if job.state == JobState::Done {
        ResultView::list(&results_of(&app.pool, job.id).await?, &app.signer)
    } else {
        Vec::new()
    };
    let estimate = if job.state.is_final() {
        None
    } else {
        Some(db::within(jobs::estimate(&app.pool, job)).await?)
    };
    Ok(JobView::new(job, estimate, app.job_events.progress(job.id), results))
}
