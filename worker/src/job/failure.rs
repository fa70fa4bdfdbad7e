//! Why a job has no result, what that means for it, and what its owner is told.

use retouch_core::db::DatabaseError;
use retouch_core::jobs::Failure;
use retouch_core::storage::StorageError;

use crate::models::registry::LoadError;
use crate::pipeline::PipelineError;

/// Why a job has no result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("the object store: {0}")]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
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
                PipelineError::Unreadable(_) => {
                    "This image is damaged or incomplete. You have not been charged; try another file."
                }
                PipelineError::TooLarge { .. } => {
                    "This image is larger than this tool can take. You have not been charged."
                }
                PipelineError::Mask(_) => {
                    "This area cannot be worked on. You have not been charged; draw it anew."
                }
                PipelineError::Unsafe(_) => {
                    "The result was judged unsafe and thrown away. You have not been charged."
                }
                PipelineError::Model(_)
                | PipelineError::OutOfMemory(_)
                | PipelineError::Defect(_) => {
                    "Something went wrong with this image on our side. You have not been charged."
                }
                PipelineError::Cancelled => "The run was cancelled. You have not been charged.",
            };
            (verdict, error.code(), detail)
        }
    };
    (verdict, Failure { code: code.into(), detail: detail.into() })
}
