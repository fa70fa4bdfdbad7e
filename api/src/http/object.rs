//! Objects of the object store as bodies of responses.

use axum::body::Body;
use retouch_core::storage::Object;
use tokio_util::io::ReaderStream;

/// Returns an object as the body of a response, sent while it is read: the files of many clients do not fit into memory.
pub fn body_of(object: Object) -> Body {
    Body::from_stream(ReaderStream::with_capacity(object.body, 64 * 1024))
}
