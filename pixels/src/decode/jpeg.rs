//! Decodes a JPEG, and refuses one whose scans are damaged or end too early.

use memchr::memchr;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::header::Header;
use super::jpeg_segments::JpegSegments;
use super::png_rows::Planes;

/// At least as many bytes as the decoder reads ahead.
const READ_AHEAD: [u8; 8] = [0; 8];
const RESTART: [u8; 2] = [0xff, 0xd0];
/// A reserved marker with an empty segment (T.81, B.1.1.3), and the end marker.
const RESERVED_AND_END: [u8; 6] = [0xff, 0x02, 0, 2, 0xff, 0xd9];

/// Decodes the planes of a JPEG, as stored. `has_profile` is false to ignore the color profile.
///
/// Where a scan is damaged or ends too early, the decoder makes up flat colors, and the user would pay for half a picture.
/// Only its strict mode fails there. To notice an early end, it needs a reserved marker before the end marker: it skips
/// that behind a complete scan, and fails within one. It also fails for a progressive file of a single scan, which has one
/// flat color for each block.
pub(super) fn read(
    bytes: &[u8],
    has_profile: bool,
    header: &Header,
) -> Result<Planes, DecodeErrors> {
    let guarded =
        with_guarded_end(bytes).ok_or(DecodeErrors::FormatStatic("scans without an end"))?;
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&guarded), options);
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

/// Returns the file up to the end of its scans, then the reserved marker. `None` if the end is not found. It leaves out
/// segments between scans that the decoder would fail on, and Adobe's where JFIF prevails.
///
/// If a restart is due at the end of the last scan, the decoder looks for it there, so it finds one. For that reason, it
/// does not notice if such a scan ends too early within its last interval.
fn with_guarded_end(bytes: &[u8]) -> Option<Vec<u8>> {
    let segments = JpegSegments::read(bytes).ok()?;
    let (mut file, mut copied, mut at) = (Vec::with_capacity(bytes.len()), 0, 2);
    let (mut frame, mut last_scan, mut interval) = (None, None, [0; 2]);
    let end = loop {
        at += memchr(0xff, bytes.get(at..)?)?;
        let marker = *bytes.get(at + 1)?;
        match marker {
            0xff => at += 1,
            0 | 0xd0..=0xd7 => at += 2,
            0xd9 => break at,
            _ if last_scan.is_some() && !segments.is_progressive => break at,
            _ => {
                let length = u16::from_be_bytes(*bytes.get(at + 2..)?.first_chunk()?);
                let after = at + 2 + usize::from(length);
                let segment = bytes.get(at + 4..after)?;
                match marker {
                    0xc0..=0xc2 => frame = Some(Frame::read(segment)?),
                    0xda => last_scan = Some(segment),
                    0xdd => interval = *segment.first_chunk()?,
                    _ => {}
                }
                let is_left_out = match marker {
                    0xe3..=0xec | 0xef => last_scan.is_some(),
                    0xee => segments.ignores_adobe(),
                    _ => false,
                };
                if is_left_out {
                    file.extend_from_slice(&bytes[copied..at]);
                    copied = after;
                }
                at = after;
            }
        }
    };
    file.extend_from_slice(&bytes[copied..end]);
    let interval = u64::from(u16::from_be_bytes(interval));
    if interval != 0 && frame?.units(last_scan?)?.is_multiple_of(interval) {
        file.extend(READ_AHEAD);
        file.extend(RESTART);
    }
    file.extend(READ_AHEAD);
    file.extend(RESERVED_AND_END);
    Some(file)
}

/// A frame header (T.81, B.2.2).
struct Frame<'a> {
    height: u64,
    width: u64,
    /// The identifier, the sampling factors, and the quantization table of each component.
    components: &'a [[u8; 3]],
}

impl<'a> Frame<'a> {
    fn read(segment: &'a [u8]) -> Option<Self> {
        let [_, h1, h0, w1, w0, _, components @ ..] = segment else { return None };
        Some(Self {
            height: u64::from(u16::from_be_bytes([*h1, *h0])),
            width: u64::from(u16::from_be_bytes([*w1, *w0])),
            components: components.as_chunks().0,
        })
    }

    /// Returns the number of minimum coded units of a scan with this header (T.81, A.2).
    fn units(&self, scan: &[u8]) -> Option<u64> {
        let factors = |factors: u8| (u64::from(factors >> 4), u64::from(factors & 0xf));
        let all = || self.components.iter().map(|component| factors(component[1]));
        let (widest, highest) =
            all().fold((1, 1), |most, one| (most.0.max(one.0), most.1.max(one.1)));
        let (across, down) = match scan {
            [1, id, ..] => {
                let component = self.components.iter().find(|component| component[0] == *id)?;
                factors(component[1])
            }
            _ => (1, 1),
        };
        let columns = (self.width * across).div_ceil(8 * widest);
        Some(columns * (self.height * down).div_ceil(8 * highest))
    }
}
