//! The free tools of people without an account: one run a picture, a few an hour, nothing kept for long.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use retouch_catalog::{Tier, Tool};
use retouch_core::images::{self, Uploader};
use retouch_core::jobs::NewJob;
use sha2::{Digest, Sha256};

use super::run_tool::{Ran, check_size, submit_and_wait};
use super::upload_image::upload_image;
use crate::error::ApiError;
use crate::state::App;

/// Runs `tool` on `file` for whoever is at `address`.
///
/// The same picture from the same visitor within the hour is the same image: its free run exists already. What is
/// refused is no run, and not counted as one. `worked_off` is told when `file` is needed no more.
pub async fn run_visitor_tool(
    app: &App,
    address: IpAddr,
    tool: Tool,
    file: Bytes,
    worked_off: impl FnOnce(),
    wait: Duration,
) -> Result<Ran, ApiError> {
    app.visitors.count_upload(address)?;
    let visitor = app.visitors.pseudonym(address);
    let known = images::of_visitor(&app.pool, &visitor, &Sha256::digest(&file)).await?;
    let image = if let Some(image) = known {
        // It may have come for a tool that takes larger pictures.
        images::get(&app.pool, image).await?.ok_or(ApiError::NotFound("Image"))?
    } else {
        let max = app.limits.max_dimension_of(tool.name());
        upload_image(app, Uploader::Visitor(visitor), file, max).await?
    };
    worked_off();
    check_size(app, tool, image.width.max(image.height))?;
    let has_had_its_run = match tool {
        Tool::Upscale(_) => image.free_upscale_used,
        _ => image.free_remove_background_used,
    };
    if has_had_its_run {
        return Err(ApiError::FreeExists);
    }
    app.visitors.count_run(address)?;
    let new = NewJob {
        owner: None,
        image: image.id,
        tool,
        tier: Tier::Visitor,
        idempotency_key: None,
        fix: None,
        most_waiting: Some(app.limits.most_waiting(Tier::Visitor)),
    };
    submit_and_wait(app, &new, wait).await
}
