//! Why a job failed, whether to retry it, and the text that its owner sees.

use retouch_core::db::DatabaseError;
use retouch_core::jobs::{Cause, Failure};
use retouch_core::storage::StorageError;
use retouch_credentials::SignError;
use retouch_inference::registry::LoadError;
use retouch_pixels::PixelError;
use retouch_pixels::decode::Foreign;
use retouch_pixels::mask::MaskError;

use crate::tools::ToolError;

#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("object store: {0}")]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    Model(#[from] LoadError),
    #[error("database: {0}")]
    Database(#[from] DatabaseError),
    /// The database can be reached, but rejects the result.
    #[error("the database refused the result: {0}")]
    Refused(DatabaseError),
    #[error("Content Credentials: {0}")]
    Credentials(#[from] SignError),
}

pub enum Disposition {
    /// Retry it: another attempt may succeed.
    Retry(Cause),
    /// Fail it: no attempt can succeed.
    Fail,
}

const OUR_FAULT: &str =
    "Something went wrong with this image on our side. You have not been charged.";

/// Returns what to do with the job and the failure that its owner sees.
pub fn classify(error: &JobError) -> (Disposition, Failure) {
    let (disposition, code, detail) = match error {
        JobError::Storage(StorageError::Missing(_)) => (
            Disposition::Fail,
            "image_missing",
            "This image is no longer stored. Please upload it again.",
        ),
        JobError::Storage(error) if !error.is_of_database() => (
            Disposition::Retry(Cause::Outage),
            "storage_unavailable",
            "Our image storage is temporarily unavailable. You have not been charged; please try again shortly.",
        ),
        JobError::Storage(_) | JobError::Database(_) => (
            Disposition::Retry(Cause::Outage),
            "internal_error",
            "Our database is temporarily unavailable. You have not been charged; please try again shortly.",
        ),
        JobError::Model(_) => (
            Disposition::Retry(Cause::Fault),
            "model_unavailable",
            "This tool is temporarily unavailable. You have not been charged; please try again later.",
        ),
        // Not an outage: waiting may not help, and every attempt takes the model's time.
        JobError::Refused(_) => (Disposition::Retry(Cause::Fault), "internal_error", OUR_FAULT),
        // Another worker may have a valid certificate.
        JobError::Credentials(_) => (
            Disposition::Retry(Cause::Fault),
            "credentials_unavailable",
            "We can't sign results at the moment. You have not been charged; please try again later.",
        ),
        JobError::Tool(error) => {
            let disposition = if error.is_retryable() {
                Disposition::Retry(Cause::Fault)
            } else {
                Disposition::Fail
            };
            let detail = match error {
                // Uploads are stills, but older versions stored animations, too.
                ToolError::Pixels(PixelError::Foreign(Foreign::Animation(_))) => {
                    "We can't use animations. You have not been charged; please upload one frame as an image."
                }
                ToolError::Pixels(
                    PixelError::Foreign(_)
                    | PixelError::UnsupportedFormat
                    | PixelError::Unreadable(_),
                ) => {
                    "This image is damaged or incomplete. You have not been charged; please try another file."
                }
                ToolError::Pixels(PixelError::TooLarge { .. }) => {
                    "This image is too large for this tool. You have not been charged."
                }
                ToolError::Pixels(PixelError::Mask(MaskError::Transparent)) => {
                    "The selected area is transparent. You have not been charged; please select something else."
                }
                ToolError::Pixels(PixelError::Mask(MaskError::CoversEverything)) => {
                    "Your selection covers the whole image. You have not been charged; please leave a part of it out."
                }
                ToolError::Pixels(PixelError::Mask(_)) => {
                    "We can't use this selection. You have not been charged; please draw it again."
                }
                ToolError::NoSubject => {
                    "We found no subject in this image. You have not been charged; please try another image."
                }
                ToolError::Unsafe(_) => {
                    "The safety check blocked the result. You have not been charged."
                }
                ToolError::Pixels(PixelError::InvalidOutput(_) | PixelError::Internal(_))
                | ToolError::Model(_)
                | ToolError::OutOfMemory(_)
                | ToolError::Internal(_) => OUR_FAULT,
                ToolError::Canceled => "The run was canceled. You have not been charged.",
            };
            (disposition, error.code(), detail)
        }
    };
    (disposition, Failure { code: code.into(), detail: detail.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_that_nobody_could_see_says_so_and_is_not_repeated() {
        let error = JobError::Tool(MaskError::Transparent.into());
        let (disposition, failure) = classify(&error);
        assert!(matches!(disposition, Disposition::Fail));
        assert_eq!(failure.code, "mask_invalid");
        assert!(failure.detail.starts_with("The selected area is transparent."));
        let (_, failure) = classify(&JobError::Tool(MaskError::CoversEverything.into()));
        assert!(failure.detail.starts_with("Your selection covers the whole image."));
    }

    #[test]
    fn only_animations_are_called_animations() {
        let detail_of = |foreign| {
            let error = JobError::Tool(PixelError::Foreign(foreign).into());
            classify(&error).1.detail
        };
        assert!(detail_of(Foreign::Animation("GIF")).starts_with("We can't use animations."));
        assert!(detail_of(Foreign::Raw("DNG")).starts_with("This image is damaged or incomplete."));
    }
}
