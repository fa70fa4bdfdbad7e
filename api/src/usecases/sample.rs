//! Makes a sample: a small part of a picture, upscaled by the model for paid runs, so that people can compare before
//! they pay. A worker makes it within seconds and without a job; nothing is stored or charged.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use retouch_catalog::Factor;
use retouch_core::UserId;
use retouch_core::queue::RequestError;
use retouch_core::sample::{MAX_SAMPLE_SIDE, SampleFailure, SampleRequest};
use retouch_pixels::Limits;
use retouch_pixels::decode::check;

use super::ask_worker::ask_worker;
use crate::error::ApiError;
use crate::limits::fair_budget::FairBudget;
use crate::state::App;

/// Maximum wait of a request for a worker, whose model may be busy with a tile of a job. A slow CPU needs more than
/// half of this; most proxies give up after a minute.
const WAIT: Duration = Duration::from_secs(55);
/// How many samples for one address may wait. Workers make them one after the other.
const PLACES_OF_ADDRESS: usize = 4;

/// Returns the upscaled part as a PNG. `picture` is the width and height of the whole picture, which decides between
/// models. Counts for the user, or for the address of a visitor.
pub async fn sample(
    app: &App,
    (user, address): (Option<UserId>, IpAddr),
    file: Bytes,
    factor: Factor,
    picture: (u32, u32),
) -> Result<Bytes, ApiError> {
    match user {
        Some(user) => {
            app.rate_limits.users.samples.count(user).await?;
        }
        None => {
            app.rate_limits.visitors.samples.count(&app.visitors.visitor(address)).await?;
        }
    }
    check(&file, &Limits { max_dimension: MAX_SAMPLE_SIDE })?;
    let max = app.limits.max_upscale_dimension;
    if [picture.0, picture.1].iter().any(|side| !(1..=max).contains(side)) {
        return Err(ApiError::DimensionsTooBig { max });
    }
    let mut place = FairBudget::share(Arc::clone(&app.samples), Some(address));
    if !place.grow_to(1, PLACES_OF_ADDRESS) {
        return Err(unavailable(&RequestError::Busy));
    }
    let picture_pixels = u64::from(picture.0) * u64::from(picture.1);
    let request = SampleRequest::new(file, factor, picture_pixels);
    let reply = ask_worker(app, request, WAIT, place).await;
    reply.map_err(|error| unavailable(&error))?.map_err(failed)
}

fn unavailable(error: &RequestError) -> ApiError {
    let (detail, retry_after_secs) = match error {
        RequestError::NoWorker => ("No worker can make a sample right now. Try again later.", 30),
        RequestError::Busy | RequestError::TimedOut => {
            ("A sample takes too long right now. Try again in a moment.", 10)
        }
        RequestError::Queue(_) => {
            ("Samples are temporarily unavailable. Try again in a moment.", 5)
        }
    };
    tracing::warn!(%error, "Could not make a sample");
    ApiError::Unavailable { detail: detail.into(), retry_after_secs }
}

fn failed(failure: SampleFailure) -> ApiError {
    match failure {
        SampleFailure::Unreadable => ApiError::UnreadableImage,
        SampleFailure::NoModel => ApiError::Unavailable {
            detail: "No worker can make a sample of this image right now. Try again later.".into(),
            retry_after_secs: 30,
        },
        SampleFailure::Failed(reason) => {
            ApiError::Internal(anyhow::anyhow!("a worker could not make a sample: {reason}"))
        }
    }
}
