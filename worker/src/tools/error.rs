//! The error that every tool shares.

use std::any::Any;

use retouch_inference::session::SessionError;
use retouch_pixels::PixelError;
use retouch_pixels::mask::MaskError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The picture or the mask was rejected, or the model's output was invalid.
    #[error(transparent)]
    Pixels(#[from] PixelError),
    /// The cutout would be empty.
    #[error("no subject was found in the picture")]
    NoSubject,
    /// The safety check blocked the result.
    #[error("the safety check blocked the result: {0}")]
    Unsafe(String),
    /// The model failed; the text is for the operator.
    #[error("the model failed: {0}")]
    Model(String),
    /// The model ran out of memory, even on the smallest tile.
    #[error("the model ran out of memory: {0}")]
    OutOfMemory(String),
    #[error("canceled")]
    Canceled,
    /// A bug in the worker; the text is for the operator.
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<MaskError> for ToolError {
    fn from(error: MaskError) -> Self {
        Self::Pixels(error.into())
    }
}

impl From<SessionError> for ToolError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::OutOfMemory(text) => Self::OutOfMemory(text),
            SessionError::Failed(text) | SessionError::DeviceLost(text) => Self::Model(text),
        }
    }
}

impl ToolError {
    /// Returns the error for a panic with this payload.
    pub fn of_panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::Internal(text.unwrap_or("a panic without a message").to_owned())
    }

    /// Returns a stable code for the database, the API and the page.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Pixels(error) => match error {
                PixelError::UnsupportedFormat
                | PixelError::Foreign(_)
                | PixelError::Unreadable(_) => "image_unreadable",
                PixelError::TooLarge { .. } => "image_too_large",
                PixelError::Mask(_) => "mask_invalid",
                PixelError::InvalidOutput(_) => "model_failed",
                PixelError::Internal(_) => "internal_error",
            },
            Self::NoSubject => "image_without_subject",
            Self::Unsafe(_) => "result_unsafe",
            Self::Model(_) => "model_failed",
            Self::OutOfMemory(_) => "out_of_memory",
            Self::Canceled => "cancelled",
            Self::Internal(_) => "internal_error",
        }
    }

    /// Returns whether another attempt may succeed: a model can run out of memory once, but a damaged picture stays
    /// damaged.
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Model(_) | Self::OutOfMemory(_) | Self::Pixels(PixelError::InvalidOutput(_))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_failures_are_retried() {
        let limit = PixelError::TooLarge { width: 9, height: 9, max_dimension: 8 };
        for (error, code, is_retryable) in [
            (PixelError::UnsupportedFormat.into(), "image_unreadable", false),
            (PixelError::Unreadable(String::new()).into(), "image_unreadable", false),
            (limit.into(), "image_too_large", false),
            (MaskError::Empty.into(), "mask_invalid", false),
            (PixelError::InvalidOutput(String::new()).into(), "model_failed", true),
            (SessionError::OutOfMemory(String::new()).into(), "out_of_memory", true),
            (ToolError::NoSubject, "image_without_subject", false),
            (ToolError::Canceled, "cancelled", false),
        ] {
            let error: ToolError = error;
            assert_eq!((error.code(), error.is_retryable()), (code, is_retryable), "{error}");
        }
    }
}
