//! Why a job has no result, what that means for it, and what its owner is told.

use retouch_core::db::DatabaseError;
use retouch_core::jobs::Failure;
use retouch_core::storage::StorageError;
use retouch_inference::registry::LoadError;
use retouch_pixels::PixelError;

use crate::tools::ToolError;

/// Why a job has no result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("the object store: {0}")]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Pipeline(#[from] ToolError),
    #[error(transparent)]
    Model(#[from] LoadError),
    #[error("the database: {0}")]
    Database(#[from] DatabaseError),
}

/// What is to become of a job without a result.
pub enum Verdict {
    /// Another attempt may succeed.
    Retry,
    /// None will.
    Fail,
}

/// What an error means for the job, and what its owner is told.
pub fn judge(error: &JobError) -> (Verdict, Failure) {
    let (verdict, code, detail) = match error {
        JobError::Storage(StorageError::Missing(_)) => {
            (Verdict::Fail, "image_missing", "This image is no longer stored. Upload it again.")
        }
        JobError::Storage(_) => (
            Verdict::Retry,
            "storage_unavailable",
            "Our picture store did not answer. You have not been charged; try again shortly.",
        ),
        JobError::Database(_) => (
            Verdict::Retry,
            "internal_error",
            "Our records did not answer. You have not been charged; try again shortly.",
        ),
        JobError::Model(_) => (
            Verdict::Retry,
            "model_unavailable",
            "This tool is out of order at the moment. You have not been charged; try again later.",
        ),
        JobError::Pipeline(error) => {
            let verdict = if error.is_retryable() { Verdict::Retry } else { Verdict::Fail };
            let detail = match error {
                ToolError::Pixels(PixelError::UnsupportedFormat | PixelError::Unreadable(_)) => {
                    "This image is damaged or incomplete. You have not been charged; try another file."
                }
                ToolError::Pixels(PixelError::TooLarge { .. }) => {
                    "This image is too large for this tool. You have not been charged."
                }
                ToolError::Pixels(PixelError::Mask(_)) => {
                    "We can't use this selection. You have not been charged; please draw it again."
                }
                ToolError::Unsafe(_) => {
                    "The safety check blocked the result. You have not been charged."
                }
                ToolError::Pixels(PixelError::InvalidOutput(_) | PixelError::Internal(_))
                | ToolError::Model(_)
                | ToolError::OutOfMemory(_)
                | ToolError::Internal(_) => {
                    "Something went wrong with this image on our side. You have not been charged."
                }
                ToolError::Canceled => "The run was canceled. You have not been charged.",
            };
            (verdict, error.code(), detail)
        }
    };
    (verdict, Failure { code: code.into(), detail: detail.into() })
}
