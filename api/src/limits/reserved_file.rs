//! Files that hold their memory reservation until they are sent.

use bytes::Bytes;

/// Keeps `reserved` until the last copy of `file` is dropped: a client may take long to read it.
pub fn kept_with(file: Bytes, reserved: impl Send + 'static) -> Bytes {
    Bytes::from_owner(Kept { file, _reserved: reserved })
}

struct Kept<Reserved> {
    file: Bytes,
    _reserved: Reserved,
}

impl<Reserved> AsRef<[u8]> for Kept<Reserved> {
    fn as_ref(&self) -> &[u8] {
        &self.file
    }
}
