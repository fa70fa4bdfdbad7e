//! Running Magic Fix: what was sent is read and judged before anything is held, so that what cannot be done
//! costs nothing and waits for nobody.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use retouch_catalog::{Tier, Tool};
use retouch_core::jobs::{self, NewJob};
use retouch_core::magic_fix::Prompt;
use retouch_core::{ImageId, UserId, images, workers};
use retouch_pixels::PixelError;
use retouch_pixels::mask::Drawing;
use sha2::{Digest, Sha256};

use super::run_tool::{Ran, check_size, submit_and_wait};
use crate::error::ApiError;
use crate::state::App;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Fix {
    /// The picture.
    pub image: ImageId,
    /// The mask, as it was sent.
    pub mask: Bytes,
    /// The words, as they were sent.
    pub prompt: String,
    /// Makes a repeat return the first answer.
    pub idempotency_key: Option<String>,
    /// How long to wait for the result; zero to get the job at once.
    pub wait: Duration,
}

/// Repaints a part of a stored picture.
pub async fn magic_fix(app: &App, user: UserId, fix: Fix) -> Result<Ran, ApiError> {
    let image = images::owned(&app.pool, user, fix.image).await?;
    let image = image.ok_or(ApiError::NotFound("Image"))?;
    let prompt = Prompt::read(&fix.prompt)?;
    let tool = Tool::MagicFix(prompt.mode());
    check_size(app, tool, image.width.max(image.height))?;
    let offer = workers::fix_offer(&workers::known_models(&app.pool).await?);
    offer.check(&prompt).map_err(ApiError::PromptNotPossible)?;
    let max = app.limits.max_dimension_of(tool.name());
    let (width, height) = (image.width.unsigned_abs(), image.height.unsigned_abs());
    let read = move || {
        let drawing = Drawing::read(&fix.mask, (width, height)).map_err(PixelError::from)?;
        if drawing.longest_side() > max {
            return Err(ApiError::DimensionsTooBig { max });
        }
        Ok(drawing.to_png()?)
    };
    let mask = tokio::task::spawn_blocking(read).await.context("reading a mask")??;
    let new = NewJob {
        owner: Some(user),
        image: image.id,
        tool,
        fix: Some(jobs::Fix {
            prompt: prompt.text().to_owned(),
            mask_sha256: Sha256::digest(&mask).to_vec(),
            mask: mask.into(),
        }),
        tier: Tier::Paid,
        idempotency_key: fix.idempotency_key,
        most_waiting: Some(app.limits.most_waiting(Tier::Paid)),
    };
    submit_and_wait(app, &new, fix.wait).await
}
