//! Removes the background of one image for a program: upload, run and download in one call.
//!
//! The image is stored like any other and costs the same, but expires after an hour and appears in no gallery.
//!
//! Clients give up after a while and try again, often without an idempotency key. So the key of such a request is made
//! of its content, and a run whose client has gone is canceled.

use bytes::Bytes;
use retouch_catalog::{Tier, Tool};
use retouch_core::db;
use retouch_core::images::{self, Uploader};
use retouch_core::jobs::{self, Job};
use retouch_core::results::ResultImage;
use retouch_core::users::User;
use retouch_core::{ImageId, UserId, credits};
use retouch_pixels::cutout::{self, CutoutFile, CutoutOptions};
use retouch_pixels::exif::Exif;
use sha2::{Digest, Sha256};

use super::render_result::{Marks, take_turn};
use super::run_tool::{RunOutcome, RunRequest, Waiting, announce_canceled, outcome_of, run_tool};
use super::upload_image::{Metadata, NewUpload, sha256_of, upload_image};
use crate::error::ApiError;
use crate::limits::decode_budget::UserOrVisitor;
use crate::state::App;

/// A request to remove a background.
#[derive(Clone, Debug)]
pub struct RemovalRequest {
    pub file: Bytes,
    /// How to render the cutout.
    pub options: CutoutOptions,
    /// Which of the file's metadata the cutout keeps; the stored image has none.
    pub metadata: Metadata,
    /// A repeat with the same key and image returns the first cutout. Without a key, a repeat of the same image and
    /// options does so for [`crate::config::LimitsConfig::repeat_window_secs`].
    pub idempotency_key: Option<String>,
}

/// A finished removal.
#[derive(Debug)]
pub struct Removal {
    pub cutout: CutoutFile,
    pub charged: i32,
}

/// A failed removal.
#[derive(Debug)]
pub struct RemovalError {
    pub error: ApiError,
    /// Credits charged: 0 unless the run succeeded but its result could not be read.
    pub charged: i32,
}

impl<E: Into<ApiError>> From<E> for RemovalError {
    fn from(error: E) -> Self {
        Self { error: error.into(), charged: 0 }
    }
}

/// Removes the background of one image and waits for the cutout.
pub async fn removebg(
    app: &App,
    user: &User,
    request: RemovalRequest,
) -> Result<Removal, RemovalError> {
    let RemovalRequest { file, options, metadata, idempotency_key } = request;
    let content = sha256_of(&file).await?;
    let exif = metadata.of(&file);
    let can_pay = user.credits - user.reserved >= credits::price(Tool::RemoveBackground);
    let image = match db::within(images::for_program(&app.pool, user.id, &content)).await? {
        // The first image with this content, so that a repeat, which may be paid for, refers to the same one.
        Some(image) => image,
        None if idempotency_key.is_none() && !can_pay => {
            return Err(ApiError::NotEnoughCredits.into());
        }
        None => new_image(app, user.id, file).await?,
    };
    let (idempotency_key, repeat_window) = match idempotency_key {
        Some(key) => (key, None),
        None => (key_of_content(&content, &options), Some(app.limits.repeat_window())),
    };
    let run = RunRequest {
        image,
        tool: Tool::RemoveBackground,
        tier: Tier::Paid,
        idempotency_key: Some(idempotency_key),
        // A client that gives up calls off only its own request.
        waiting: Waiting { repeat_window, resubmits: true, ..Waiting::up_to(app.limits.wait()) },
    };
    let mut results = match run_tool(app, user.id, run).await? {
        RunOutcome::Done(results) => results,
        RunOutcome::Pending(job) => cancel(app, job).await?,
    };
    let Some(result) = results.pop() else {
        let expired =
            "The result for this Idempotency-Key has been deleted: results expire after an hour.";
        return Err(ApiError::Unprocessable(expired.into()).into());
    };
    let charged = result.credits;
    match render(app, user.id, result, options, exif).await {
        Ok(cutout) => Ok(Removal { cutout, charged }),
        Err(error) => Err(RemovalError { error, charged }),
    }
}

/// Returns the idempotency key of a request without one. No client can send it: their keys are ASCII.
fn key_of_content(content: &[u8], options: &CutoutOptions) -> String {
    let request = Sha256::new().chain_update(content).chain_update(format!("{options:?}"));
    format!("≡{}", hex::encode(request.finalize()))
}

async fn new_image(app: &App, owner: UserId, file: Bytes) -> Result<ImageId, ApiError> {
    let max = app.limits.max_dimension_of(Tool::RemoveBackground.name());
    Ok(upload_image(app, NewUpload::new(Uploader::Program(owner), file, max)).await?.id)
}

/// Cancels a job that takes too long or outlives this process, at no cost to its owner. If it has just ended, returns its results.
async fn cancel(app: &App, job: Job) -> Result<Vec<ResultImage>, ApiError> {
    if db::within(jobs::cancel(&app.pool, job.id)).await? {
        announce_canceled(app, &[job.id]).await;
        let (why, retry_after_secs) = if app.stopping.is_cancelled() {
            ("The service is restarting, so the run was canceled.", 5)
        } else {
            ("The run took too long and was canceled.", 30)
        };
        let detail = format!("{why} You have not been charged.");
        return Err(ApiError::Unavailable { detail, retry_after_secs });
    }
    let ended = db::within(jobs::get(&app.pool, job.id)).await?.ok_or(ApiError::NotFound("Job"))?;
    match outcome_of(app, ended).await? {
        RunOutcome::Done(results) => Ok(results),
        RunOutcome::Pending(job) => Err(ApiError::Internal(anyhow::anyhow!(
            "job {} has not ended but cannot be canceled",
            job.id
        ))),
    }
}

async fn render(
    app: &App,
    owner: UserId,
    result: ResultImage,
    options: CutoutOptions,
    exif: Option<Exif>,
) -> Result<CutoutFile, ApiError> {
    let (width, height) = (result.width.unsigned_abs(), result.height.unsigned_abs());
    let memory = cutout::memory_bytes(width, height, &options) + result.size_bytes.unsigned_abs();
    // The run is paid for, so this waits as long as for the run.
    let wait = app.limits.wait();
    let turn = take_turn(app, UserOrVisitor::User(owner), wait).await?;
    let memory = app.decoders.reserve(memory, wait).await?;
    let png = app.storage.get(&result.object_key).await?;
    let marks = Marks::new(app);
    let render = move || {
        let mut cutout = cutout::render(&png, &options)?;
        if let Some(exif) = exif {
            cutout.bytes = exif.put_on(&cutout.bytes)?;
        }
        cutout.bytes = marks.carry_over(cutout.bytes, &png, true)?;
        Ok::<_, ApiError>(cutout.pack()?)
    };
    let (cutout, memory) = app.decoders.run_in(memory, render).await?;
    let mut cutout = cutout?;
    cutout.bytes = memory.keep_for(cutout.bytes, turn);
    Ok(cutout)
}
