//! What can go wrong with a request, in the words of the product. `routes/problem.rs` gives each a status.

use retouch_core::db::DatabaseError;
use retouch_core::jobs::{Failure, SubmitError};
use retouch_core::magic_fix::PromptError;
use retouch_core::orders::PlaceError;
use retouch_core::storage::StorageError;
use retouch_pixels::PixelError;
use retouch_pixels::mask::MaskError;

/// What a token gets that was made before its account was deleted.
pub const ACCOUNT_DELETED: &str = "This account was deleted. Sign in again to begin a new one";

/// Why a request was not fulfilled.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// 401: no token, or one that is not valid. The text says which.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// 403: a program's key was sent where a person must sign in.
    #[error("An API key cannot do this: sign in to do it yourself")]
    InPersonOnly,
    /// 402: less than the price is left.
    #[error("Not enough credits")]
    NotEnoughCredits,
    /// 404: there is no such thing, or it belongs to somebody else.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// 404: there is nothing at this address.
    #[error("There is nothing at this address")]
    NoSuchPath,
    /// 405: this address has no such method.
    #[error("This address has no such method")]
    WrongMethod,
    /// 416: a range that begins behind the end of the file.
    #[error("The range lies outside of the file")]
    RangeOutside {
        /// How long the file is, in bytes.
        length: i64,
    },
    /// 400: the request is not understood.
    #[error("{0}")]
    BadRequest(String),
    /// 408: what is sent stopped coming.
    #[error("The upload took too long. Try again")]
    TooSlow,
    /// 409: the free run of this picture is used up.
    #[error("Free Exists")]
    FreeExists,
    /// 409: the run was called off before it ended.
    #[error("The run was cancelled")]
    Cancelled,
    /// 413: more bytes than are accepted.
    #[error("The file is too large (max {} MB)", .max_bytes / 1024 / 1024)]
    FileTooLarge {
        /// The limit.
        max_bytes: usize,
    },
    /// 415: no picture of a kind that is accepted.
    #[error("This file is not an image we can read. Use PNG, JPEG or WebP")]
    UnsupportedType,
    /// 422: wider or higher than is accepted.
    #[error("Image dimensions too big (Max {max}x{max})")]
    DimensionsTooBig {
        /// The limit for both, in pixels.
        max: u32,
    },
    /// 422: damaged.
    #[error("This image is damaged or incomplete")]
    UnreadableImage,
    /// 422: what was sent as a mask is none, or does not fit the picture.
    #[error("{0}")]
    MaskInvalid(String),
    /// 422: nothing is painted.
    #[error("You have to draw to select area you want to fix 1")]
    MaskEmpty,
    /// 422: no words, or too many.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// 422: no installed engine can follow these words. The text says what is possible.
    #[error("{0}")]
    PromptNotPossible(String),
    /// 422: understood, and against a rule of the product that the text names.
    #[error("{0}")]
    AgainstTheRules(String),
    /// 503: credits cannot be bought here, or not at the moment.
    #[error("Failed to redirect to payment, please try again later")]
    NoPayments,
    /// 422: a key that was used for something else.
    #[error("This Idempotency-Key was used for a different request")]
    IdempotencyKeyReused,
    /// 429: too many requests from one place.
    #[error("Too many free runs from your network. Try again in {} minutes, or sign up", .retry_after_secs.div_ceil(60))]
    TooManyRequests {
        /// When to try again.
        retry_after_secs: u64,
    },
    /// 429: a user asks for more than their share. The text says of what.
    #[error("{detail}")]
    TooMuchOfOne {
        /// What a person should know.
        detail: String,
        /// When to try again.
        retry_after_secs: u64,
    },
    /// 503: too much is waiting, or something we need does not answer.
    #[error("{detail}")]
    Unavailable {
        /// What a person should know.
        detail: String,
        /// When to try again.
        retry_after_secs: u64,
    },
    /// 422 when the picture, the mask or the result is to blame, else 500: the run failed and cost nothing.
    #[error("{}", .0.detail)]
    RunFailed(Failure),
    /// 500: our fault; the details are in the log.
    #[error("Something went wrong on our side. You have not been charged")]
    Internal(#[source] anyhow::Error),
}

impl From<PixelError> for ApiError {
    fn from(error: PixelError) -> Self {
        match error {
            PixelError::UnsupportedFormat => Self::UnsupportedType,
            PixelError::Unreadable(_) => Self::UnreadableImage,
            PixelError::TooLarge { max_dimension, .. }
            | PixelError::Mask(MaskError::TooLarge { max_dimension }) => {
                Self::DimensionsTooBig { max: max_dimension }
            }
            PixelError::Mask(MaskError::Empty) => Self::MaskEmpty,
            PixelError::Mask(error) => Self::MaskInvalid(error.to_string()),
            PixelError::InvalidOutput(_) | PixelError::Internal(_) => Self::Internal(error.into()),
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
        if is_away(&error) {
            tracing::warn!(%error, "The database does not answer");
            return Self::Unavailable {
                detail: "The service is starting or being maintained. Try again in a moment".into(),
                retry_after_secs: 5,
            };
        }
        Self::Internal(anyhow::Error::new(error).context("asking the database"))
    }
}

/// Whether the server cannot be asked at the moment, rather than refuses what it was asked.
fn is_away(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::Io(_)
        | DatabaseError::PoolTimedOut
        | DatabaseError::PoolClosed
        | DatabaseError::Tls(_)
        | DatabaseError::WorkerCrashed => true,
        // Stopping (57P01, 57P02), starting (57P03), or without a connection left (53300).
        DatabaseError::Database(refusal) => {
            refusal.code().is_some_and(|code| code.starts_with("57P0") || code == "53300")
        }
        _ => false,
    }
}

impl From<PlaceError> for ApiError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::NoSuchUser => Self::Unauthorized(ACCOUNT_DELETED),
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
            SubmitError::QueueFull(_) => {
                Self::Unavailable { detail: error.to_string(), retry_after_secs: 60 }
            }
            SubmitError::OwnersQueueFull => {
                Self::TooMuchOfOne { detail: error.to_string(), retry_after_secs: 10 }
            }
            SubmitError::Database(error) => error.into(),
        }
    }
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Missing(_) => Self::NotFound("File"),
            StorageError::Range => Self::Internal(anyhow::anyhow!("a range that nobody asked for")),
            StorageError::Failed(reason) => {
                tracing::warn!(reason, "The object store does not answer");
                Self::Unavailable {
                    detail: "Pictures cannot be reached at the moment. Try again shortly".into(),
                    retry_after_secs: 5,
                }
            }
        }
    }
}
