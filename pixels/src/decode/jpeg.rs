//! Decodes a JPEG, and refuses one whose scans end too early.

use memchr::memchr;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::header::Header;
use super::png_rows::Planes;
use super::unreadable;
use crate::PixelError;

/// At least as many bytes as the decoder reads ahead.
const READ_AHEAD: [u8; 8] = [0; 8];
const RESTART: [u8; 2] = [0xff, 0xd0];
/// A reserved marker with an empty segment (T.81, B.1.1.3), and the end marker.
const RESERVED_AND_END: [u8; 6] = [0xff, 0x02, 0, 2, 0xff, 0xd9];
/// The decoder's message for a reserved marker within a scan.
const ENDS_EARLY: &str = "Unknown marker in bit stream";

/// Decodes the planes of a JPEG, as stored. `has_profile` is false to ignore the color profile.
///
/// Where a scan ends too early, the decoder makes up flat colors, and the user would pay for half a picture. So it gets a
/// reserved marker before the end marker: it skips that behind a complete scan, and fails within one. Only its
/// strict mode fails. That refuses harmless faults, too, so a file that has those is decoded again without it.
pub(super) fn read(bytes: &[u8], has_profile: bool, header: &Header) -> Result<Planes, PixelError> {
    if let Some(guarded) = with_guarded_end(bytes) {
        match planes(&guarded, true, has_profile, header) {
            Ok(planes) => return Ok(planes),
            Err(DecodeErrors::Format(text)) if text == ENDS_EARLY => {
                return Err(unreadable("it is damaged"));
            }
            Err(_) => {}
        }
    }
    planes(bytes, false, has_profile, header).map_err(|_| unreadable("it is damaged"))
}

/// Returns the file up to the end of its scans, then the reserved marker. `None` if the end is not found.
fn with_guarded_end(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut at, mut has_restarts) = (2, false);
    let end = loop {
        at += memchr(0xff, bytes.get(at..)?)?;
        match *bytes.get(at + 1)? {
            0xff => at += 1,
            0 => at += 2,
            0xd0..=0xd7 => {
                has_restarts = true;
                at += 2;
            }
            0xd9 => break at,
            _ => {
                let length = bytes.get(at + 2..)?.first_chunk()?;
                at += 2 + usize::from(u16::from_be_bytes(*length));
            }
        }
    };
    // A scan may end where the decoder expects another restart.
    let restart = if has_restarts { &[&READ_AHEAD[..], &RESTART].concat()[..] } else { &[] };
    Some([&bytes[..end], restart, &READ_AHEAD, &RESERVED_AND_END].concat())
}

fn planes(
    bytes: &[u8],
    is_strict: bool,
    has_profile: bool,
    header: &Header,
) -> Result<Planes, DecodeErrors> {
    let options = DecoderOptions::default()
        .set_strict_mode(is_strict)
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers()?;
    let size = decoder.info().map(|info| (u32::from(info.width), u32::from(info.height)));
    if size != Some((header.width, header.height)) {
        return Err(DecodeErrors::FormatStatic("another size than the first frame header's"));
    }
    let gray = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let space = if gray { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options.jpeg_set_out_colorspace(space));
    let samples = decoder.decode()?;
    let rgb = if gray { samples.iter().flat_map(|sample| [*sample; 3]).collect() } else { samples };
    let icc = if has_profile { decoder.icc_profile() } else { None };
    Ok(Planes { rgb, alpha: None, gray, icc, stated: None })
}
