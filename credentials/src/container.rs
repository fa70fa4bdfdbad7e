//! Finds the manifest and the XMP in a file of each format.

use crate::error::SignError;
use crate::{Format, heif, png, webp};

const MAX_XMP_BYTES: usize = 1 << 20;
/// The start of a JPEG segment with XMP (XMP part 3, 1.1.3).
const JPEG_XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
/// Maximum size of a JPEG segment's contents, in bytes.
const MAX_SEGMENT_BYTES: usize = u16::MAX as usize - 2;

/// Returns the approximate size of a file's manifest store in bytes; `None` if it has none. Cheap: parses nothing.
pub(crate) fn manifest_bytes(file: &[u8], format: Format) -> Option<usize> {
    match format {
        Format::Png => png::manifest_bytes(file),
        Format::WebP => webp::manifest_bytes(file),
        Format::Heic | Format::Avif => heif::manifest_bytes(file),
        Format::Jpeg => {
            // JPEG XT boxes (ISO/IEC 18477-3) in APP11; their common identifier is "JP".
            let of_boxes = segments(file)
                .filter(|(marker, contents)| *marker == 0xeb && contents.starts_with(b"JP"));
            let bytes = of_boxes.map(|(_, contents)| contents.len()).sum();
            (bytes > 0).then_some(bytes)
        }
    }
}

/// Returns the XMP packet of a file, unless it is longer than [`MAX_XMP_BYTES`].
pub(crate) fn xmp(file: &[u8], format: Format) -> Option<&[u8]> {
    let packet = match format {
        Format::Png => png::xmp(file),
        Format::WebP => webp::xmp(file),
        Format::Heic | Format::Avif => heif::xmp(file),
        Format::Jpeg => segments(file)
            .filter(|(marker, _)| *marker == 0xe1)
            .find_map(|(_, contents)| contents.strip_prefix(JPEG_XMP)),
    };
    packet.filter(|packet| packet.len() <= MAX_XMP_BYTES)
}

/// Returns a file without XMP with a packet of XMP.
///
/// # Errors
/// If it is damaged.
pub(crate) fn with_xmp(file: &[u8], format: Format, packet: &str) -> Result<Vec<u8>, SignError> {
    let (marked, name) = match format {
        Format::Png => (png::with_xmp(file, packet), "PNG"),
        Format::Jpeg => (jpeg_with_xmp(file, packet), "JPEG"),
        Format::WebP => (webp::with_xmp(file, packet), "WebP"),
        Format::Heic | Format::Avif => (None, "HEIC or AVIF"),
    };
    marked.ok_or(SignError::Damaged(name))
}

fn jpeg_with_xmp(jpeg: &[u8], packet: &str) -> Option<Vec<u8>> {
    let contents = [JPEG_XMP, packet.as_bytes()].concat();
    if contents.len() > MAX_SEGMENT_BYTES {
        return None;
    }
    // JFIF wants its APP0 first, directly after the start marker.
    let after = match segments(jpeg).next()? {
        (0xe0, first) => 2 + 4 + first.len(),
        _ => 2,
    };
    let (head, rest) = jpeg.split_at_checked(after)?;
    let mut file = Vec::with_capacity(jpeg.len() + contents.len() + 4);
    file.extend_from_slice(head);
    file.extend_from_slice(&[0xff, 0xe1]);
    file.extend_from_slice(&((contents.len() + 2) as u16).to_be_bytes());
    file.extend_from_slice(&contents);
    file.extend_from_slice(rest);
    Some(file)
}

/// Returns marker and contents of the segments before the first scan of a JPEG, up to the first damaged one.
fn segments(jpeg: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = jpeg.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        // A marker may be preceded by any number of 0xFF bytes (T.81, B.1.1.2).
        while let [0xff, 0xff, ..] = rest {
            rest = &rest[1..];
        }
        let [0xff, marker, high, low, ..] = *rest else { return None };
        // Start of scan, end of image.
        if matches!(marker, 0xda | 0xd9) {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        let contents = rest.get(4..2 + length)?;
        rest = rest.get(2 + length..)?;
        Some((marker, contents))
    })
}
