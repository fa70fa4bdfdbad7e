//! Drops metadata from a file: everything that does not affect how it is displayed, and profiles that are oversized.
//! The compressed pixels do not change.
//!
//! The file is copied piece by piece, because a list of its pieces could take many times its size.

use std::borrow::Cow;

use crate::decode::png_chunks::chunks;
use crate::icc::MAX_PROFILE_BYTES;

/// JPEG markers (ITU-T T.81, table B.1).
const RST0: u8 = 0xd0;
const RST7: u8 = 0xd7;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
const APP0: u8 = 0xe0;
const APP2: u8 = 0xe2;
const APP14: u8 = 0xee;
const APP15: u8 = 0xef;
const COM: u8 = 0xfe;

/// The flags of a WebP's extended header (RFC 9649, 2.7).
const HAS_PROFILE: u8 = 0x20;
const HAS_ALPHA: u8 = 0x10;

/// Copies a JPEG up to its end marker; `None` if it is damaged.
pub(super) fn strip_jpeg(jpeg: &[u8], keeps_profile: bool) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(jpeg.len());
    kept.extend_from_slice(jpeg.get(..2)?);
    let mut at = 2;
    loop {
        // A marker may be preceded by any number of 0xFF bytes (T.81, B.1.1.2).
        while *jpeg.get(at + 1)? == 0xff {
            at += 1;
        }
        match (jpeg[at], jpeg[at + 1]) {
            (0xff, marker @ (EOI | RST0..=RST7)) => {
                kept.extend_from_slice(&[0xff, marker]);
                at += 2;
                if marker == EOI {
                    return Some(kept);
                }
            }
            (0xff, marker) => {
                let length = u16::from_be_bytes([*jpeg.get(at + 2)?, *jpeg.get(at + 3)?]);
                let segment = jpeg.get(at..at + 2 + usize::from(length))?;
                if let Some(contents) = kept_of_segment(marker, segment.get(4..)?, keeps_profile) {
                    kept.extend_from_slice(&[0xff, marker]);
                    kept.extend_from_slice(&(contents.len() as u16 + 2).to_be_bytes());
                    kept.extend_from_slice(&contents);
                }
                at += segment.len();
                if marker == SOS {
                    // In compressed data, 0xFF is followed by 0 or a restart marker (T.81, B.1.1.5).
                    let rest = jpeg.get(at..)?;
                    let scan = rest.windows(2).position(|pair| {
                        pair[0] == 0xff && !matches!(pair[1], 0 | 0xff | RST0..=RST7)
                    })?;
                    kept.extend_from_slice(&rest[..scan]);
                    at += scan;
                }
            }
            _ => return None,
        }
    }
}

/// Returns the contents of a JPEG's segment, as far as they are kept.
fn kept_of_segment(marker: u8, contents: &[u8], keeps_profile: bool) -> Option<Cow<'_, [u8]>> {
    match marker {
        // The density (ITU-T T.871, 10.1), followed by the size of a thumbnail: none.
        APP0 if contents.starts_with(b"JFIF\0") => {
            Some([contents.get(..12)?, &[0, 0]].concat().into())
        }
        // A frame of Motion JPEG may lack Huffman tables. Decoders then use those of the standard.
        APP0 if contents.starts_with(b"AVI1\0") => Some((&b"AVI1\0\0\0\0\0\0\0\0\0\0"[..]).into()),
        APP2 if keeps_profile && contents.starts_with(b"ICC_PROFILE\0") => Some(contents.into()),
        // The color transform (ITU-T T.872, 6.5.3), which CMYK needs.
        APP14 if contents.starts_with(b"Adobe") => Some(contents.get(..12)?.into()),
        APP0..=APP15 | COM => None,
        _ => Some(contents.into()),
    }
}

/// Copies a PNG up to its last chunk; `None` if it is damaged.
pub(super) fn strip_png(png: &[u8], keeps_profile: bool) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(png.len());
    kept.extend_from_slice(png.get(..8)?);
    for chunk in chunks(png) {
        if match chunk.name {
            b"iCCP" => keeps_profile,
            b"IHDR" | b"PLTE" | b"IDAT" | b"IEND" | b"tRNS" | b"cHRM" | b"gAMA" | b"sBIT"
            | b"sRGB" | b"bKGD" | b"pHYs" | b"cICP" => true,
            _ => false,
        } {
            kept.extend_from_slice(chunk.whole);
        }
        if chunk.name == b"IEND" {
            return Some(kept);
        }
    }
    None
}

/// Copies a still WebP (RFC 9649); `None` if it is damaged.
pub(super) fn strip_webp(webp: &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(*webp.get(4..8)?.first_chunk()?) as usize;
    let webp = webp.get(..length.checked_add(8)?)?;
    let mut kept = Vec::with_capacity(webp.len());
    kept.extend_from_slice(webp.get(..12)?);
    let (mut at, mut has_profile) = (12, false);
    while at < webp.len() {
        let head = webp.get(at..at + 8)?;
        let length = u32::from_le_bytes(*head[4..].first_chunk()?) as usize;
        // A chunk of odd length is padded. Some writers forget the padding of the last one.
        let chunk = webp.get(at..at + 8 + length)?;
        at += chunk.len() + length % 2;
        match &head[..4] {
            b"ICCP" if length <= MAX_PROFILE_BYTES => has_profile = true,
            b"VP8X" | b"VP8 " | b"VP8L" | b"ALPH" => {}
            _ => continue,
        }
        kept.extend_from_slice(chunk);
        kept.resize(kept.len() + length % 2, 0);
    }
    if kept.get(12..16) == Some(b"VP8X") {
        let [flags, reserved @ ..] = kept.get_mut(20..24)?.first_chunk_mut::<4>()?;
        *flags &= if has_profile { HAS_ALPHA | HAS_PROFILE } else { HAS_ALPHA };
        reserved.fill(0);
    }
    let length = u32::try_from(kept.len() - 8).ok()?;
    kept[4..8].copy_from_slice(&length.to_le_bytes());
    Some(kept)
}
