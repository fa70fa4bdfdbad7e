//! The errors that a request can end with and their user-facing texts. `http/problem.rs` maps each to a status.

use retouch_core::db::{self, DatabaseError};
use retouch_core::images::Quota;
use retouch_core::jobs::{Failure, SubmitError};
use retouch_core::orders::PlaceError;
use retouch_core::storage::StorageError;
use retouch_pixels::PixelError;
use retouch_pixels::decode::Foreign;
use retouch_pixels::finish::FinishError;
use retouch_pixels::mask::MaskError;
use retouch_prompts::PromptError;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// 401: the token or key is missing, invalid or expired.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// 401: the account was deleted, and its owner has not started a new one.
    #[error("This account was deleted. To start a new one, sign in on the website.")]
    AccountDeleted,
    /// 403: an API key was sent to a route that requires a person's token.
    #[error("API keys cannot be used here. Sign in instead.")]
    TokenRequired,
    /// 403: a page of another site made a browser send it, as a visitor.
    #[error("Pages of other sites cannot use this without a key.")]
    CrossSite,
    /// 402: the balance is below the price.
    #[error("Not enough credits")]
    NotEnoughCredits,
    /// 404: the object does not exist or belongs to another user.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// 404: the path does not exist.
    #[error("This path does not exist.")]
    NoSuchPath,
    /// 405: the path does not support the method.
    #[error("This path does not support this method.")]
    MethodNotAllowed,
    /// 416: the range starts after the end of the file.
    #[error("The requested range is outside the file.")]
    RangeNotSatisfiable {
        /// The length of the file, in bytes.
        length: i64,
    },
    /// 400: the request is malformed.
    #[error("{0}")]
    BadRequest(String),
    /// 408: the upload stalled.
    #[error("The upload took too long. Please try again.")]
    UploadTimeout,
    /// 409: the free run of this image is used up.
    #[error("Free Exists")]
    FreeExists,
    /// 409: the run was canceled before it ended.
    #[error("The run was canceled.")]
    Canceled,
    /// 413: the file exceeds the size limit.
    #[error("The file is too large (max {}).", size(*.max_bytes))]
    FileTooLarge {
        /// The limit.
        max_bytes: usize,
    },
    /// 415: the file is not in a supported image format.
    #[error("We can't read this file as an image. Use PNG, JPEG, WebP, HEIC or AVIF.")]
    UnsupportedType,
    /// 415: the file is of a kind that is known and not accepted.
    #[error("{0}")]
    Foreign(Foreign),
    /// 422: the image exceeds the size limit.
    #[error("Image dimensions too big (Max {max}x{max})")]
    DimensionsTooBig {
        /// The limit of width and height, in pixels.
        max: u32,
    },
    /// 422: the image is damaged.
    #[error("This image is damaged or incomplete.")]
    UnreadableImage,
    /// 422: the mask cannot be read or does not fit the image.
    #[error("{0}")]
    MaskInvalid(String),
    /// 422: the mask selects nothing.
    #[error("You have to draw to select area you want to fix 1")]
    MaskEmpty,
    /// 422: nothing stands out at the click.
    #[error(
        "Nothing stands out there. Click somewhere else, draw a box around what you want, or use the brush."
    )]
    NothingFound,
    /// 422: the prompt is missing or too long.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// 422: no installed model can follow the prompt. The text says what is possible.
    #[error("{0}")]
    PromptNotPossible(String),
    /// 422: the request breaks a rule that the text names.
    #[error("{0}")]
    Unprocessable(String),
    /// 503: payments are not configured, or the payment provider is unavailable.
    #[error("Failed to redirect to payment, please try again later")]
    PaymentsUnavailable,
    /// 422: the idempotency key belongs to a different request.
    #[error("This Idempotency-Key was already used for a different request.")]
    IdempotencyKeyReused,
    /// 429: a user or a visitor's network exceeds a rate limit.
    #[error("{detail}")]
    RateLimited {
        /// The user-facing text.
        detail: String,
        /// Seconds until the next try.
        retry_after_secs: u64,
    },
    /// 429 or 503: too many runs of the caller, or of everybody, are waiting.
    #[error("{reason}")]
    QueueFull {
        /// Why the run was refused.
        reason: SubmitError,
        /// Seconds until the next try.
        retry_after_secs: u64,
    },
    /// 422: the caller's storage is used up.
    #[error("Your storage is full ({}). Delete images or results to make room.", limits_of(*.0))]
    StorageFull(Quota),
    /// 503: a service that we depend on does not answer.
    #[error("{detail}")]
    Unavailable {
        /// The user-facing text.
        detail: String,
        /// Seconds until the next try.
        retry_after_secs: u64,
    },
    /// The run failed and cost nothing, as its text says. 422 if the image, the mask or the result is to blame, otherwise 500.
    #[error("{}", .0.detail)]
    RunFailed(Failure),
    /// 500: the database's answer was lost, so a run may have started, or an API key or webhook may exist. Not 503, which
    /// asks for a repeat: that could make a second one, and without an idempotency key, a second run is charged.
    #[error("{detail}")]
    OutcomeUnknown {
        /// The user-facing text.
        detail: &'static str,
        #[source]
        error: DatabaseError,
    },
    /// 500: our fault; the log has the cause. Says nothing of a charge: the run may be finished and paid.
    #[error("Something went wrong on our side. Please try again.")]
    Internal(#[source] anyhow::Error),
}

/// Writes a limit in bytes as people read it.
fn size(bytes: usize) -> String {
    match bytes >> 20 {
        0 => format!("{} KB", bytes >> 10),
        megabytes => format!("{megabytes} MB"),
    }
}

/// Returns the limits of a quota as text.
fn limits_of(quota: Quota) -> String {
    let bytes = quota.bytes.map(|bytes| match bytes >> 20 {
        mib if mib % 1024 == 0 => format!("{} GB", mib / 1024),
        mib => format!("{mib} MB"),
    });
    let pictures = quota.pictures.map(|pictures| format!("{pictures} pictures"));
    let limits: Vec<_> = bytes.into_iter().chain(pictures).collect();
    format!("max {}", limits.join(" and "))
}

impl From<PixelError> for ApiError {
    fn from(error: PixelError) -> Self {
        match error {
            PixelError::UnsupportedFormat => Self::UnsupportedType,
            PixelError::Foreign(foreign) => Self::Foreign(foreign),
            PixelError::Unreadable(_) => Self::UnreadableImage,
            PixelError::TooLarge { max_dimension, .. }
            | PixelError::Mask(MaskError::TooLarge { max_dimension }) => {
                Self::DimensionsTooBig { max: max_dimension }
            }
            PixelError::Mask(MaskError::Empty) => Self::MaskEmpty,
            PixelError::Mask(error) => Self::MaskInvalid(format!("{error}.")),
            PixelError::InvalidOutput(_) | PixelError::Internal(_) => Self::Internal(error.into()),
        }
    }
}

impl From<FinishError> for ApiError {
    fn from(error: FinishError) -> Self {
        match error {
            FinishError::Failed(error) => error.into(),
            FinishError::TouchUp(_)
            | FinishError::Background(_)
            | FinishError::NothingLeft
            | FinishError::TooManyPixels { .. }
            | FinishError::TooLong { .. } => Self::Unprocessable(format!("{error}.")),
        }
    }
}

impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> Self {
        Self::Internal(error)
    }
}

impl From<DatabaseError> for ApiError {
    fn from(error: DatabaseError) -> Self {
        if db::is_unavailable(&error) {
            tracing::warn!(%error, "The database is unavailable");
            return Self::Unavailable {
                detail:
                    "The service is starting or under maintenance. Please try again in a moment."
                        .into(),
                retry_after_secs: 5,
            };
        }
        Self::Internal(anyhow::Error::new(error).context("querying the database"))
    }
}

impl From<PlaceError> for ApiError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::NoSuchUser => Self::AccountDeleted,
            PlaceError::IdempotencyKeyReused => Self::IdempotencyKeyReused,
            PlaceError::Database(error) => error.into(),
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::NotEnoughCredits => Self::NotEnoughCredits,
            SubmitError::FreeExists => Self::FreeExists,
            SubmitError::IdempotencyKeyReused => Self::IdempotencyKeyReused,
            SubmitError::NoSuchImage => Self::NotFound("Image"),
            SubmitError::QueueFull(_) => Self::QueueFull { reason: error, retry_after_secs: 60 },
            SubmitError::OwnerQueueFull => Self::QueueFull { reason: error, retry_after_secs: 10 },
            SubmitError::Database(error) => error.into(),
            SubmitError::OutcomeUnknown(error) => {
                tracing::error!(%error, "The answer to the submission of a run was lost");
                let detail = "We don't know whether this run has started. Check your runs before you start it again.";
                Self::OutcomeUnknown { detail, error }
            }
        }
    }
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Missing(_) => Self::NotFound("File"),
            StorageError::Range => {
                Self::Internal(anyhow::anyhow!("the object store rejected a range we did not send"))
            }
            StorageError::Failed(_) | StorageError::Unrecorded(_) => {
                tracing::warn!(%error, "The object store is unavailable");
                Self::Unavailable {
                    detail: "Images are temporarily unavailable. Please try again shortly.".into(),
                    retry_after_secs: 5,
                }
            }
        }
    }
}
