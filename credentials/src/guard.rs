//! Keeps a fault in a parser of foreign bytes from ending the process.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `parse` and turns a panic into an error. The library bounds how deep boxes and values may nest, so a stack
/// overflow, which cannot be caught, does not happen.
pub(crate) fn guard<T>(parse: impl FnOnce() -> c2pa::Result<T>) -> c2pa::Result<T> {
    // What a panic leaves behind is dropped: readers and builders are made anew for each picture.
    catch_unwind(AssertUnwindSafe(parse)).unwrap_or_else(|_| {
        tracing::warn!("The parser of Content Credentials panicked on a picture");
        Err(c2pa::Error::InvalidAsset("the manifest cannot be read".to_owned()))
    })
}
