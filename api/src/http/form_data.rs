//! Reads the fields of a multipart form as they arrive.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use axum::extract::multipart::{Field, MultipartError, MultipartRejection};
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::StatusCode;
use bytes::Bytes;

use super::body::IncomingBody;

/// Maximum number of bytes that may arrive before the headers of the next field are complete. Each time bytes arrive,
/// the parser searches all of them again.
const MAX_HEADERS: usize = 128 << 10;

/// A form that is being received.
pub struct FormData {
    fields: Multipart,
    incoming: Option<IncomingBody>,
    /// The bytes of all values so far.
    consumed: usize,
}

/// A field of a form. Read its value to the end, or [skip](Self::skip) it.
pub struct FormField<'a> {
    field: Field<'a>,
    consumed: &'a mut usize,
}

/// Why a form cannot be read.
#[derive(Debug)]
pub enum FormError {
    TooLarge,
    Malformed(String),
}

impl<S: Send + Sync> FromRequest<S> for FormData {
    type Rejection = MultipartRejection;

    async fn from_request(request: Request, state: &S) -> Result<Self, MultipartRejection> {
        let incoming = request.extensions().get::<IncomingBody>().cloned();
        Ok(Self { fields: Multipart::from_request(request, state).await?, incoming, consumed: 0 })
    }
}

impl FormData {
    /// Waits for the headers of the next field; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<FormField<'_>>, FormError> {
        let Self { fields, incoming, consumed } = self;
        let received = || incoming.as_ref().map_or(0, IncomingBody::received);
        let mut next = pin!(fields.next_field());
        let field = poll_fn(|context| match next.as_mut().poll(context) {
            Poll::Pending if received().saturating_sub(*consumed) > MAX_HEADERS => {
                let reason = "a field's headers are missing or too long";
                Poll::Ready(Err(FormError::Malformed(reason.into())))
            }
            field => field.map_err(FormError::from),
        })
        .await?;
        Ok(field.map(|field| FormField { field, consumed }))
    }
}

impl FormField<'_> {
    pub fn name(&self) -> Option<&str> {
        self.field.name()
    }

    /// Returns the name that the client gave the file.
    pub fn file_name(&self) -> Option<&str> {
        self.field.file_name()
    }

    /// Returns the next part of the value; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FormError> {
        let chunk = self.field.chunk().await?;
        *self.consumed += chunk.as_ref().map_or(0, Bytes::len);
        Ok(chunk)
    }

    /// Reads the value to its end, and drops it.
    pub async fn skip(mut self) -> Result<(), FormError> {
        while self.chunk().await?.is_some() {}
        Ok(())
    }
}

impl From<MultipartError> for FormError {
    fn from(error: MultipartError) -> Self {
        if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
            Self::TooLarge
        } else {
            Self::Malformed(error.body_text())
        }
    }
}
