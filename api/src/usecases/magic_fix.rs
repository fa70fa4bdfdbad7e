//! Runs Magic Fix. Validates mask and prompt before it holds credits or queues the job, so that invalid requests cost
//! nothing.

use bytes::Bytes;
use retouch_catalog::{Tier, Tool};
use retouch_core::jobs::{self, NewJob};
use retouch_core::{ImageId, UserId, workers};
use retouch_pixels::mask::Drawing;
use retouch_pixels::{Limits, PixelError};
use retouch_prompts::{Offer, Prompt};
use sha2::{Digest, Sha256};

use super::find_image::owned_image;
use super::run_tool::{RunOutcome, Waiting, check_size, submit_and_wait};
use crate::error::ApiError;
use crate::limits::decode_budget::UserOrVisitor;
use crate::state::App;

/// A request to run Magic Fix.
#[derive(Clone, Debug)]
pub struct FixRequest {
    pub image: ImageId,
    /// As it was uploaded.
    pub mask: Bytes,
    /// Whether no pixel outside the mask may change; `None` leaves it to the mode.
    pub is_mask_exact: Option<bool>,
    /// As it was entered.
    pub prompt: String,
    /// Makes a repeat return the first response.
    pub idempotency_key: Option<String>,
    pub waiting: Waiting,
}

/// Returns what Magic Fix can do with the installed models.
pub async fn fix_offer(app: &App) -> Result<Offer, ApiError> {
    Ok(workers::fix_offer(&app.known_models().await?))
}

/// Runs Magic Fix on a stored image.
pub async fn magic_fix(
    app: &App,
    user: UserId,
    request: FixRequest,
) -> Result<RunOutcome, ApiError> {
    let image = owned_image(app, user, request.image).await?;
    let prompt = Prompt::parse(&request.prompt)?;
    let tool = Tool::MagicFix(prompt.mode());
    check_size(app, tool, image.width.max(image.height))?;
    fix_offer(app).await?.check(&prompt).map_err(ApiError::PromptNotPossible)?;
    let limits = Limits { max_dimension: app.limits.max_dimension_of(tool.name()) };
    let (width, height) = (image.width.unsigned_abs(), image.height.unsigned_abs());
    let upload = request.mask;
    let read = move || -> Result<Vec<u8>, PixelError> {
        let drawing = Drawing::read(&upload, (width, height), &limits)?;
        drawing.to_png()
    };
    let memory = Drawing::memory_bytes(&limits);
    let mask = app.decoders.run(UserOrVisitor::User(user), memory, read).await?.0?;
    let job = NewJob {
        owner: Some(user),
        image: image.id,
        tool,
        fix: Some(jobs::FixParameters {
            prompt: prompt.text().to_owned(),
            mask_sha256: Sha256::digest(&mask).to_vec(),
            mask: mask.into(),
            is_mask_exact: request
                .is_mask_exact
                .unwrap_or(prompt.mode().is_mask_exact_by_default()),
        }),
        tier: Tier::Paid,
        idempotency_key: request.idempotency_key,
        queue_limit: Some(app.limits.queue_limit(Tier::Paid)),
    };
    submit_and_wait(app, &job, request.waiting).await
}
