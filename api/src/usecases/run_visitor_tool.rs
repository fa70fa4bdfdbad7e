//! Runs the free tools for visitors: one run per image, limited per hour, deleted after an hour.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use retouch_catalog::{Tier, Tool};
use retouch_core::db;
use retouch_core::images::{self, Image, Uploader};
use retouch_core::jobs::{self, NewJob};

use super::run_tool::{RunOutcome, Waiting, await_job, check_size, submit_and_wait};
use super::upload_image::{NewUpload, sha256_of, upload_image};
use crate::auth::visitors::Visitor;
use crate::error::ApiError;
use crate::state::App;

/// Runs `tool` on `file` for the visitor at `address`.
///
/// A repeated upload of the same file within the hour refers to the same image. It returns the run that this image
/// already had, so that nobody loses a result to a closed tab, and does not count as a run. Any other run counts, unless
/// its picture is refused, the queue is full, or a simultaneous request with the same file has started the run. Calls `release_file` as soon as `file` is not needed.
pub async fn run_visitor_tool(
    app: &App,
    address: IpAddr,
    tool: Tool,
    file: Bytes,
    release_file: impl FnOnce(),
    wait: Duration,
) -> Result<RunOutcome, ApiError> {
    let visitor = app.visitors.visitor(address);
    let limits = &app.rate_limits.visitors;
    let queue_limit = app.limits.queue_limit(Tier::Visitor);
    let digest = sha256_of(&file).await?;
    let known = db::within(images::for_visitor(&app.pool, &visitor.pseudonym, &digest)).await?;
    if let Some(image) = known
        && let Some(earlier) = db::within(jobs::free_run(&app.pool, image, tool.name())).await?
    {
        drop(file);
        release_file();
        limits.uploads.count(&visitor).await?;
        return await_job(app, earlier, wait).await;
    }
    // Before anything is counted or decoded.
    db::within(jobs::check_visitor_queue(&app.pool, &visitor.pseudonym, queue_limit)).await?;
    limits.uploads.count(&visitor).await?;
    // Count first: beyond the limit, the picture would be decoded and stored for nothing.
    limits.runs.count(&visitor).await?;
    let mut counted = CountedRun { app, visitor: &visitor, is_kept: false };
    let image = match image_to_run_on(app, &visitor, tool, file).await {
        Ok(image) => image,
        Err(error) => {
            counted.is_kept = true;
            limits.runs.give_back(&visitor).await;
            return Err(error);
        }
    };
    counted.is_kept = true;
    release_file();
    let job = NewJob {
        owner: None,
        image: image.id,
        tool,
        tier: Tier::Visitor,
        idempotency_key: None,
        fix: None,
        queue_limit: Some(queue_limit),
    };
    let outcome = submit_and_wait(app, &job, Waiting::up_to(wait)).await;
    let is_repeat = matches!(outcome, Err(ApiError::FreeExists));
    if is_repeat || matches!(outcome, Err(ApiError::QueueFull { .. })) {
        limits.runs.give_back(&visitor).await;
    }
    // The same file came twice at once, and the other request has submitted the run.
    if is_repeat
        && let Some(other) = db::within(jobs::free_run(&app.pool, image.id, tool.name())).await?
    {
        return await_job(app, other, wait).await;
    }
    outcome
}

/// A visitor's run that has been counted. Dropping it gives the run back, as when the visitor hangs up during the upload.
struct CountedRun<'a> {
    app: &'a App,
    visitor: &'a Visitor,
    is_kept: bool,
}

impl Drop for CountedRun<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let (app, visitor) = (self.app.clone(), self.visitor.clone());
            let give_back = async move { app.rate_limits.visitors.runs.give_back(&visitor).await };
            self.app.tasks.spawn(give_back);
        }
    }
}

/// Returns the image that the visitor's file became earlier, or stores it now.
async fn image_to_run_on(
    app: &App,
    visitor: &Visitor,
    tool: Tool,
    file: Bytes,
) -> Result<Image, ApiError> {
    let max = app.limits.max_dimension_of(tool.name());
    let uploader = Uploader::Visitor(visitor.pseudonym.clone());
    let image = upload_image(app, NewUpload::new(uploader, file, max)).await?;
    // An earlier image may have been uploaded for a tool with a higher limit.
    check_size(app, tool, image.width.max(image.height))?;
    Ok(image)
}
