//! The prefix of the block in an EXIF segment.

/// The prefix of the block in a JPEG, and by mistake in other files.
pub(crate) const PREFIX: &[u8] = b"Exif\0\0";

/// Returns a block from its byte order mark.
pub(crate) fn without_prefix(block: &[u8]) -> &[u8] {
    block.strip_prefix(PREFIX).unwrap_or(block)
}
