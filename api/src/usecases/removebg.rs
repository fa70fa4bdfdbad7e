//! One picture in, its cut-out back, nothing kept: what programs ask for.
//!
//! The picture goes the way of all pictures, at the same price, but for an hour only and into no gallery.

use anyhow::Context;
use bytes::Bytes;
use retouch_catalog::{Tier, Tool};
use retouch_core::images::{self, Uploader};
use retouch_core::jobs::{self, Job};
use retouch_core::results::ResultImage;
use retouch_core::users::User;
use retouch_core::{ImageId, UserId, credits};
use retouch_pixels::cutout::{self, Shape, Shaped};
use sha2::{Digest, Sha256};

use super::run_tool::{Ran, Run, came_of, run_tool, tell_of_cancelled};
use super::upload_image::upload_image;
use crate::error::ApiError;
use crate::state::App;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The picture, as it was sent.
    pub file: Bytes,
    /// How its cut-out shall be delivered.
    pub shape: Shape,
    /// Makes a repeat with the same picture return the first cut-out.
    pub idempotency_key: Option<String>,
}

/// What is delivered.
#[derive(Debug)]
pub struct Delivered {
    /// The cut-out.
    pub cutout: Shaped,
    /// What it cost, in credits.
    pub charged: i32,
}

/// Why nothing is delivered.
#[derive(Debug)]
pub struct NotDelivered {
    /// The reason.
    pub error: ApiError,
    /// What it cost all the same: nothing, unless the cut-out was made and could not be fetched.
    pub charged: i32,
}

impl<E: Into<ApiError>> From<E> for NotDelivered {
    fn from(error: E) -> Self {
        Self { error: error.into(), charged: 0 }
    }
}

/// Removes the background of one picture for a program of `user`, and waits for the cut-out.
pub async fn removebg(app: &App, user: &User, wanted: Wanted) -> Result<Delivered, NotDelivered> {
    let Wanted { file, shape, idempotency_key } = wanted;
    let image = match &idempotency_key {
        // What it repeats may be paid for already.
        Some(_) => same_image_or_new(app, user.id, file).await?,
        None if user.credits - user.reserved < credits::price(Tool::RemoveBackground) => {
            return Err(ApiError::NotEnoughCredits.into());
        }
        None => new_image(app, user.id, file).await?,
    };
    let run = Run {
        image,
        tool: Tool::RemoveBackground,
        tier: Tier::Paid,
        idempotency_key,
        wait: app.limits.wait(),
    };
    let mut made = match run_tool(app, user.id, run).await? {
        Ran::Done(made) => made,
        Ran::Pending(job) => give_up(app, job).await?,
    };
    let Some(made) = made.pop() else {
        let gone = "What this Idempotency-Key made is gone: pictures live for an hour";
        return Err(ApiError::AgainstTheRules(gone.into()).into());
    };
    let charged = made.credits;
    match deliver(app, made, shape).await {
        Ok(cutout) => Ok(Delivered { cutout, charged }),
        Err(error) => Err(NotDelivered { error, charged }),
    }
}

/// With an idempotency key the same bytes are the same picture, so that a repeat is recognised.
async fn same_image_or_new(app: &App, owner: UserId, file: Bytes) -> Result<ImageId, ApiError> {
    match images::of_program(&app.pool, owner, &Sha256::digest(&file)).await? {
        Some(image) => Ok(image),
        None => new_image(app, owner, file).await,
    }
}

async fn new_image(app: &App, owner: UserId, file: Bytes) -> Result<ImageId, ApiError> {
    let max = app.limits.max_dimension_of(Tool::RemoveBackground.name());
    Ok(upload_image(app, Uploader::Program(owner), file, max).await?.id)
}

/// Calls a job off that took too long: whoever asked gets nothing, and pays nothing.
async fn give_up(app: &App, job: Job) -> Result<Vec<ResultImage>, ApiError> {
    if jobs::cancel(&app.pool, job.id).await? {
        tell_of_cancelled(app, &[job.id]).await;
        return Err(ApiError::Unavailable {
            detail: "This took too long and was called off. You have not been charged".into(),
            retry_after_secs: 30,
        });
    }
    // It ended at the last moment.
    let ended = jobs::get(&app.pool, job.id).await?.ok_or(ApiError::NotFound("Job"))?;
    match came_of(app, ended).await? {
        Ran::Done(made) => Ok(made),
        Ran::Pending(job) => {
            Err(ApiError::Internal(anyhow::anyhow!("job {} can neither end nor be ended", job.id)))
        }
    }
}

async fn deliver(app: &App, made: ResultImage, shape: Shape) -> Result<Shaped, ApiError> {
    let png = app.storage.get(&made.object_key).await?;
    let permit = app.decoders.acquire().await.context("the decoders are closed")?;
    let shaped = tokio::task::spawn_blocking(move || cutout::shape(&png, &shape))
        .await
        .context("shaping a cut-out")??;
    drop(permit);
    Ok(shaped)
}
