//! JSON as text, for responses that are written in pieces.

use axum::body::Body;
use futures::{Stream, StreamExt};
use serde::Serialize;

use crate::error::ApiError;

/// Returns a value as JSON.
pub fn text(value: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(value).map_err(|error| ApiError::Internal(error.into()))
}

/// Returns the items of a list as JSON, separated by commas.
pub fn items(items: impl Iterator<Item = impl Serialize>) -> Result<String, ApiError> {
    let items: Result<Vec<String>, ApiError> = items.map(|item| text(&item)).collect();
    Ok(items?.join(","))
}

/// Returns a body that is written while it is read. An error aborts it, so that nobody takes a part for the whole.
pub fn body_of(pieces: impl Stream<Item = Result<String, ApiError>> + Send + 'static) -> Body {
    // Compression may poll the stream again after its end.
    Body::from_stream(pieces.fuse())
}
