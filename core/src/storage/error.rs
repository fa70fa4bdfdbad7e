//! Failures of the object store.

use std::error::Error;

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};

use crate::with_causes;

#[derive(Debug, thiserror::Error)]
pub enum StorageError {
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
    E: Error + ProvideErrorMetadata + 'static,
{
    move |error| {
        operation.count_failure();
        StorageError::Failed(reason(&error))
    }
}

/// Says what the store answered, or why it did not answer.
pub(super) fn reason<E>(error: &SdkError<E>) -> String
where
    E: Error + ProvideErrorMetadata + 'static,
{
    let Some(answer) = error.raw_response() else { return with_causes(error) };
    let mut text = format!("the object store answered {}", answer.status().as_u16());
    match error.as_service_error() {
        // An answer without a body has neither.
        Some(refused) => {
            for (separator, part) in [(" ", refused.code()), (": ", refused.message())] {
                if let Some(part) = part {
                    text = text + separator + part;
                }
            }
        }
        None => text = text + ": " + &with_causes(error),
    }
    // The provider's support staff ask for it.
    match answer.headers().get("x-amz-request-id") {
        Some(request) => text + " (request " + request + ")",
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_s3::config::http::HttpResponse;
    use aws_sdk_s3::error::ErrorMetadata;
    use aws_sdk_s3::operation::head_object::HeadObjectError;
    use aws_sdk_s3::primitives::SdkBody;

    use super::*;

    #[test]
    fn a_refusal_is_one_line() {
        let refused = |metadata: ErrorMetadata| {
            let answer = HttpResponse::new(403.try_into().unwrap(), SdkBody::empty());
            reason(&SdkError::service_error(HeadObjectError::generic(metadata), answer))
        };
        let metadata =
            ErrorMetadata::builder().code("SignatureDoesNotMatch").message("The keys differ");
        let expected = "the object store answered 403 SignatureDoesNotMatch: The keys differ";
        assert_eq!(refused(metadata.build()), expected);
        assert_eq!(refused(ErrorMetadata::builder().build()), "the object store answered 403");
        let mut answer = HttpResponse::new(502.try_into().unwrap(), SdkBody::empty());
        answer.headers_mut().insert("x-amz-request-id", "17AC");
        let unread = SdkError::<HeadObjectError>::response_error("no XML", answer);
        let expected = "the object store answered 502: response error: no XML (request 17AC)";
        assert_eq!(reason(&unread), expected);
        let late = SdkError::<HeadObjectError>::timeout_error("nobody answered");
        assert_eq!(reason(&late), "request has timed out: nobody answered");
    }
}
