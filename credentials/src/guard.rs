//! Catches panics in parsers of untrusted bytes, which would end the process.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `parse` and turns a panic into an error. A stack overflow cannot be caught: [`crate::bounds`] prevents it.
pub(crate) fn guard<T>(parse: impl FnOnce() -> c2pa::Result<T>) -> c2pa::Result<T> {
    // A panic leaves no broken state behind: each picture gets new readers and builders.
    catch_unwind(AssertUnwindSafe(parse)).unwrap_or_else(|_| {
        tracing::warn!("The parser of Content Credentials panicked on a picture");
        Err(c2pa::Error::InvalidAsset("the manifest cannot be read".to_owned()))
    })
}
