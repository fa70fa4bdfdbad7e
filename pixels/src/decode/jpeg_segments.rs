//! The segments of a JPEG before its first scan (ITU-T T.81, B.1).

use memchr::memmem;

use super::foreign::Foreign;
use crate::PixelError;

/// Maximum sampling factor (T.81, B.2.2).
const MAX_SAMPLING: u8 = 4;
/// Maximum number of segments and fill bytes before the first scan. Cameras write fewer than a thousand.
const MAX_STEPS: usize = 1 << 16;
/// The end marker is in the last bytes of an ordinary file.
const TAIL: usize = 1 << 10;

/// The facts that the segments before the first scan state.
pub(super) struct JpegSegments<'a> {
    pub width: u16,
    pub height: u16,
    /// The EXIF data, from the byte order mark.
    pub exif: Option<&'a [u8]>,
    /// The size of the parts of the color profile, in bytes.
    pub profile_bytes: usize,
    /// Whether the picture comes in several scans. Otherwise, it is complete after the first.
    pub is_progressive: bool,
    /// The horizontal and vertical sampling factor of each component.
    components: Vec<(u8, u8)>,
    has_jfif: bool,
    metadata: usize,
}

impl<'a> JpegSegments<'a> {
    /// Walks the segments, because metadata may contain a thumbnail with its own markers.
    ///
    /// # Errors
    /// [`PixelError::Foreign`] for a kind of JPEG that the decoder cannot read, [`PixelError::Unreadable`] if the file has no
    /// frame header, no end marker, or more than [`MAX_STEPS`] segments.
    pub fn read(bytes: &'a [u8]) -> Result<Self, PixelError> {
        let mut found = Self {
            width: 0,
            height: 0,
            exif: None,
            profile_bytes: 0,
            components: Vec::new(),
            is_progressive: false,
            has_jfif: false,
            metadata: 0,
        };
        let mut rest = bytes.get(2..).unwrap_or_default();
        let mut steps = 0;
        let scan = loop {
            steps += 1;
            if steps > MAX_STEPS {
                return Err(PixelError::Unreadable("it has too many segments".to_owned()));
            }
            let (marker, segment, after) = match rest {
                [0xff, 0xff, ..] => {
                    rest = &rest[1..];
                    continue;
                }
                [0xff, marker, high, low, ..] => {
                    let end = 2 + usize::from(u16::from_be_bytes([*high, *low]));
                    let Some((segment, after)) = rest.split_at_checked(end) else { break None };
                    (*marker, segment.get(4..).unwrap_or_default(), after)
                }
                _ => break None,
            };
            match (marker, segment) {
                (0xc4 | 0xc8 | 0xcc, _) => {}
                (0xc0..=0xcf | 0xf7, [bits, h1, h0, w1, w0, _, components @ ..]) => {
                    if let Some(name) = other_kind(marker, *bits) {
                        return Err(PixelError::Foreign(Foreign::Other(name)));
                    }
                    (found.height, found.width) =
                        (u16::from_be_bytes([*h1, *h0]), u16::from_be_bytes([*w1, *w0]));
                    let factors = components.chunks_exact(3).map(|component| component[1]);
                    found.components = factors.map(|both| (both >> 4, both & 0xf)).collect();
                    found.is_progressive = marker == 0xc2;
                }
                (0xda, _) => {
                    let count = usize::from(segment.first().copied().unwrap_or(0));
                    if let Some(name) = found.other_layout(count) {
                        return Err(PixelError::Foreign(Foreign::Other(name)));
                    }
                    break Some(after);
                }
                (0xe0, [b'J', b'F', b'I', b'F', 0, ..]) => found.has_jfif = true,
                (0xe1, [b'E', b'x', b'i', b'f', 0, 0, exif @ ..]) => {
                    found.exif = found.exif.or(Some(exif));
                }
                (0xe2, [b'I', b'C', b'C', b'_', b'P', b'R', b'O', b'F', b'I', b'L', b'E', ..]) => {
                    found.profile_bytes += segment.len();
                }
                _ => {}
            }
            rest = after;
        };
        // In a scan the byte `ff` is always escaped, so `ff d9` is the real end marker.
        let has_end = |part: &[u8]| memmem::find(part, &[0xff, 0xd9]).is_some();
        let scan_bytes = scan.unwrap_or(bytes);
        let tail = &scan_bytes[scan_bytes.len().saturating_sub(TAIL)..];
        if !has_end(tail) && !has_end(scan_bytes) {
            return Err(PixelError::Unreadable("it is truncated".to_owned()));
        }
        match scan {
            Some(scan) if !found.components.is_empty() => {
                found.metadata = bytes.len() - scan.len();
                Ok(found)
            }
            _ => Err(PixelError::Unreadable("it is damaged".to_owned())),
        }
    }

    pub const fn is_gray(&self) -> bool {
        self.components.len() == 1
    }

    /// Whether JFIF, which knows YCbCr and gray only (ITU-T T.871), prevails over Adobe's color transform.
    pub const fn ignores_adobe(&self) -> bool {
        self.has_jfif && self.components.len() == 3
    }

    /// Returns the number of bytes before the first scan.
    pub const fn metadata_bytes(&self) -> u64 {
        self.metadata as u64
    }

    /// Returns the memory for coefficients, in bytes: none if each row of blocks is decoded on its own, otherwise two
    /// bytes for each sample of each block.
    pub fn coefficient_bytes(&self) -> u64 {
        if !self.is_progressive {
            return 0;
        }
        let factors = || {
            let within = |factor: u8| u64::from(factor.clamp(1, MAX_SAMPLING));
            self.components.iter().map(move |(across, down)| (within(*across), within(*down)))
        };
        let (across, down) = factors()
            .fold((1, 1), |(across, down), factor| (across.max(factor.0), down.max(factor.1)));
        let units =
            u64::from(self.width).div_ceil(8 * across) * u64::from(self.height).div_ceil(8 * down);
        let blocks: u64 = factors().map(|(across, down)| across * down).sum();
        units * blocks * 64 * 2
    }

    /// Names a layout of the components that the decoder turns into wrong colors or panics on. `first_scan` is the number
    /// of components in the first scan.
    fn other_layout(&self, first_scan: usize) -> Option<&'static str> {
        let (luma, _) = *self.components.first()?;
        if self.components.iter().any(|(across, _)| *across > luma) {
            return Some("JPEG (subsampled luma)");
        }
        let is_interleaved = self.is_progressive || first_scan >= self.components.len();
        (!is_interleaved).then_some("non-interleaved JPEG")
    }
}

/// Names the kind of a JPEG by its frame header's marker and bits per sample (T.81, B.1.1.3, and T.87). `None` for the kinds
/// that are decoded: baseline and progressive, with Huffman coding.
const fn other_kind(frame: u8, bits: u8) -> Option<&'static str> {
    match (frame, bits) {
        (0xc0..=0xc2, 12) => Some("12-bit JPEG"),
        (0xc0..=0xc2, _) => None,
        (0xc3 | 0xcb, _) => Some("lossless JPEG"),
        (0xc9 | 0xca, _) => Some("JPEG (arithmetic coding)"),
        (0xf7, _) => Some("JPEG-LS"),
        _ => Some("hierarchical JPEG"),
    }
}
