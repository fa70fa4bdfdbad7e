//! Failures of the object store.

use aws_sdk_s3::error::{DisplayErrorContext, SdkError};

/// Why an object could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The object does not exist.
    #[error("no object at {0}")]
    Missing(String),
    /// The requested range is outside the object.
    #[error("the range is outside the object")]
    Range,
    /// The store is unreachable or refused the request.
    #[error("{0}")]
    Failed(String),
    /// The database, which records multipart uploads, is unavailable.
    #[error("recording the upload: {0}")]
    Unrecorded(#[from] sqlx::Error),
}

impl StorageError {
    /// Returns whether the database failed, and not the store.
    pub const fn is_of_database(&self) -> bool {
        matches!(self, Self::Unrecorded(_))
    }
}

/// A call to the store, as the metric of its failures names it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Head,
    Get,
    Put,
    Delete,
    List,
    /// Any call of a multipart upload.
    Multipart,
}

impl Operation {
    /// Counts a failure of this call.
    pub(super) fn count_failure(self) {
        let operation = match self {
            Self::Head => "head",
            Self::Get => "get",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Multipart => "upload",
        };
        metrics::counter!("retouch_storage_errors_total", "operation" => operation).increment(1);
    }
}

/// Counts a failure and returns it with its causes.
pub(super) fn failed<E>(operation: Operation) -> impl FnOnce(SdkError<E>) -> StorageError
where
    E: std::error::Error + 'static,
{
    move |error| {
        operation.count_failure();
        StorageError::Failed(DisplayErrorContext(&error).to_string())
    }
}
