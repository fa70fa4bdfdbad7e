//! Selects the clicked object. A worker does this within seconds and without a job; nothing is stored or charged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use retouch_core::UserId;
use retouch_core::images::Image;
use retouch_core::queue::RequestError;
use retouch_core::selection::{Clicks, SelectionFailure, SelectionRequest};

use super::ask_worker::ask_worker;
use crate::error::ApiError;
use crate::limits::fair_budget::FairBudget;
use crate::state::App;

/// Maximum wait of a request for a worker.
const WAIT: Duration = Duration::from_secs(10);
/// How many selections of one user may wait. Workers make them one after the other.
const PLACES_OF_USER: usize = 4;

/// Returns the selection as a PNG of the image's size, white where it is selected.
pub async fn select(
    app: &App,
    user: UserId,
    image: Image,
    clicks: Clicks,
) -> Result<Bytes, ApiError> {
    let size = (image.width.unsigned_abs(), image.height.unsigned_abs());
    clicks.check(size).map_err(|error| ApiError::Unprocessable(format!("{error}.")))?;
    app.rate_limits.users.selections.count(user).await?;
    let mut place = FairBudget::share(Arc::clone(&app.selections), Some(user));
    if !place.grow_to(1, PLACES_OF_USER) {
        return Err(unavailable(&RequestError::Busy));
    }
    let request = SelectionRequest::new(image.id, image.object_key, size, clicks);
    let reply = ask_worker(app, request, WAIT, place).await;
    reply.map_err(|error| unavailable(&error))?.map_err(failed)
}

fn unavailable(error: &RequestError) -> ApiError {
    let (detail, retry_after_secs) = match error {
        RequestError::NoWorker => {
            ("No worker can select right now. Use the brush, or try again later.", 30)
        }
        RequestError::Busy | RequestError::TimedOut => {
            ("Selecting takes too long right now. Use the brush, or try again in a moment.", 5)
        }
        RequestError::Queue(_) => {
            ("Selecting is temporarily unavailable. Use the brush, or try again in a moment.", 5)
        }
    };
    tracing::warn!(%error, "Could not select");
    ApiError::Unavailable { detail: detail.into(), retry_after_secs }
}

fn failed(failure: SelectionFailure) -> ApiError {
    match failure {
        SelectionFailure::NothingFound => ApiError::NothingFound,
        SelectionFailure::ImageMissing => ApiError::NotFound("Image"),
        SelectionFailure::ImageUnreadable => ApiError::UnreadableImage,
        SelectionFailure::StorageUnavailable => ApiError::Unavailable {
            detail: "Images are temporarily unavailable. Please try again shortly.".into(),
            retry_after_secs: 5,
        },
        SelectionFailure::Failed(reason) => {
            ApiError::Internal(anyhow::anyhow!("a worker could not select: {reason}"))
        }
    }
}
