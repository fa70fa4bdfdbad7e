//! Keeps the EXIF metadata of a photo (EXIF 2.32, TIFF 6.0) on request: time, GPS location, camera, author.
//!
//! The block is changed in place, because makers' notes refer to places in it. It loses what would be wrong in another
//! file: the orientation, which is applied to the pixels, and the thumbnail, which shows the original. Sizes are
//! corrected for each file.

use std::io::Cursor;

use bytes::Bytes;
use image::codecs::webp::WebPDecoder;
use image::{ColorType, ImageDecoder};

use crate::decode::exif_block::{PREFIX, without_prefix};
use crate::decode::{self, FileFormat, Header};
use crate::{Limits, PixelError};

/// Maximum length of a block, in bytes: a JPEG segment has two bytes for its length, and the block has a prefix of six.
const MAX_BYTES: usize = u16::MAX as usize - 2 - PREFIX.len();
/// Maximum length of a block that is read, in bytes. It may be longer than [`MAX_BYTES`] before it loses its thumbnail.
/// The limit keeps the memory for it out of the budget, because a PNG or WebP may have a block as large as the file.
const MAX_READ_BYTES: usize = 1 << 20;
/// Maximum number of pieces of a thumbnail. Cameras write one, other programs a strip per few rows.
const MAX_PIECES: usize = 4096;

const IMAGE_WIDTH: u16 = 0x0100;
const IMAGE_HEIGHT: u16 = 0x0101;
const STRIP_STARTS: u16 = 0x0111;
const ORIENTATION: u16 = 0x0112;
const STRIP_LENGTHS: u16 = 0x0117;
const THUMBNAIL_START: u16 = 0x0201;
const THUMBNAIL_LENGTH: u16 = 0x0202;
const EXIF_DIRECTORY: u16 = 0x8769;
const PIXEL_WIDTH: u16 = 0xa002;
const PIXEL_HEIGHT: u16 = 0xa003;
const SHORT: u16 = 3;
const LONG: u16 = 4;

/// The flags of a WebP's extended header.
const WEBP_EXIF: u8 = 0x08;
const WEBP_ALPHA: u8 = 0x10;

/// The EXIF metadata of a photo, without the orientation and the thumbnail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exif {
    block: Vec<u8>,
    is_little: bool,
}

impl Exif {
    /// Reads the block of a PNG, JPEG or WebP; `None` if it has none, or a block that is damaged or too large to keep.
    pub fn of(file: &[u8]) -> Option<Self> {
        Self::parse(decode::exif(file)?)
    }

    /// Reads a block that starts like a TIFF; `None` if it is damaged or too large to keep.
    pub fn parse(block: &[u8]) -> Option<Self> {
        let block = without_prefix(block);
        if block.len() > MAX_READ_BYTES {
            return None;
        }
        let is_little = match block.first_chunk()? {
            b"II*\0" => true,
            b"MM\0*" => false,
            _ => return None,
        };
        let mut exif = Self { block: block.to_vec(), is_little };
        let first = exif.long(4)? as usize;
        exif.set(first, ORIENTATION, 1);
        exif.drop_thumbnail(first)?;
        (exif.block.len() <= MAX_BYTES).then_some(exif)
    }

    /// Returns a PNG, JPEG or WebP without EXIF with this block, and with the file's own size in it.
    ///
    /// # Errors
    /// [`PixelError::Unreadable`] if the file is damaged.
    pub fn put_on(&self, file: &Bytes) -> Result<Bytes, PixelError> {
        let header = Header::read(file, &Limits { max_dimension: u32::MAX })?;
        let block = self.of_size(header.width, header.height).block;
        let written = match header.format {
            FileFormat::Jpeg => in_jpeg(file, &block),
            FileFormat::Png => in_png(file, &block),
            FileFormat::WebP => in_webp(file, &block, (header.width, header.height)),
        };
        written.ok_or_else(|| PixelError::Unreadable("it is damaged".to_owned()))
    }

    fn of_size(&self, width: u32, height: u32) -> Self {
        let mut exif = self.clone();
        let first = exif.long(4).map_or(0, |at| at as usize);
        exif.set(first, IMAGE_WIDTH, width);
        exif.set(first, IMAGE_HEIGHT, height);
        let inner = exif.find(first, EXIF_DIRECTORY).and_then(|at| exif.long(at + 8));
        if let Some(inner) = inner {
            exif.set(inner as usize, PIXEL_WIDTH, width);
            exif.set(inner as usize, PIXEL_HEIGHT, height);
        }
        exif
    }

    /// Clears the second directory and the thumbnail that it names.
    fn drop_thumbnail(&mut self, first: usize) -> Option<()> {
        let count = usize::from(self.short(first)?);
        let link = first + 2 + count * 12;
        // Some writers leave the link out.
        let Some(second) = self.long(link).map(|at| at as usize).filter(|at| *at != 0) else {
            return Some(());
        };
        // Compressed in one piece, or uncompressed in strips.
        let mut pieces = Vec::new();
        for (starts, lengths) in
            [(THUMBNAIL_START, THUMBNAIL_LENGTH), (STRIP_STARTS, STRIP_LENGTHS)]
        {
            pieces.extend(
                self.values(second, starts)?.into_iter().zip(self.values(second, lengths)?),
            );
        }
        let entries = 2 + usize::from(self.short(second)?) * 12 + 4;
        let is_within_first = second < link + 4 && first < second.saturating_add(entries);
        if is_within_first {
            return None;
        }
        self.clear(second, entries);
        self.clear(link, 4);
        // Pieces that overlap could take forever.
        let mut left = self.block.len();
        for (start, length) in pieces.into_iter().rev() {
            left = left.checked_sub(length)?;
            self.clear(start, length);
            // It is usually last. The bytes before it must stay.
            let is_last = start > link && start.checked_add(length)? >= self.block.len();
            if is_last {
                self.block.truncate(start);
            }
        }
        Some(())
    }

    /// Returns the numbers of an entry, none if it is absent or damaged; `None` if it claims to have too many.
    fn values(&self, directory: usize, tag: u16) -> Option<Vec<usize>> {
        let Some((start, size, count)) = self.array(directory, tag) else {
            return Some(Vec::new());
        };
        let value = |index| {
            let at = start + index * size;
            if size == 2 { self.short(at).map(usize::from) } else { Some(self.long(at)? as usize) }
        };
        let values = || (0..count).map(value).collect::<Option<_>>();
        (count <= MAX_PIECES).then(|| values().unwrap_or_default())
    }

    /// Returns where the numbers of an entry begin, the size of each in bytes, and how many it claims to have.
    fn array(&self, directory: usize, tag: u16) -> Option<(usize, usize, usize)> {
        let at = self.find(directory, tag)?;
        let size = match self.short(at + 2)? {
            SHORT => 2,
            LONG => 4,
            _ => return None,
        };
        let count = self.long(at + 4)? as usize;
        // Up to four bytes are in the entry itself.
        let start = if count <= 4 / size { at + 8 } else { self.long(at + 8)? as usize };
        Some((start, size, count))
    }

    fn clear(&mut self, start: usize, length: usize) {
        let end = start.saturating_add(length).min(self.block.len());
        // The head of the block does not belong to a directory.
        if let Some(bytes) = self.block.get_mut(start.max(8)..end) {
            bytes.fill(0);
        }
    }

    /// Sets the value of an entry, if it exists and is a single number.
    fn set(&mut self, directory: usize, tag: u16, value: u32) {
        let Some(at) = self.find(directory, tag) else { return };
        let little = self.is_little;
        let bytes = match (self.short(at + 2), self.long(at + 4)) {
            (Some(SHORT), Some(1)) => {
                let value = u16::try_from(value).unwrap_or(u16::MAX);
                let [a, b] = if little { value.to_le_bytes() } else { value.to_be_bytes() };
                [a, b, 0, 0]
            }
            (Some(LONG), Some(1)) if little => value.to_le_bytes(),
            (Some(LONG), Some(1)) => value.to_be_bytes(),
            _ => return,
        };
        if let Some(place) = self.block.get_mut(at + 8..at + 12) {
            place.copy_from_slice(&bytes);
        }
    }

    /// Returns where an entry of a directory is.
    fn find(&self, directory: usize, tag: u16) -> Option<usize> {
        let count = usize::from(self.short(directory)?);
        let mut entries = (0..count).map(|entry| directory + 2 + entry * 12);
        entries.find(|at| self.short(*at) == Some(tag))
    }

    fn short(&self, at: usize) -> Option<u16> {
        let bytes = *self.block.get(at..)?.first_chunk()?;
        Some(if self.is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    fn long(&self, at: usize) -> Option<u32> {
        let bytes = *self.block.get(at..)?.first_chunk()?;
        Some(if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }
}

/// JFIF wants its segment first; EXIF follows.
fn in_jpeg(jpeg: &[u8], block: &[u8]) -> Option<Bytes> {
    let after = match jpeg.get(2..6)? {
        [0xff, 0xe0, high, low] => 4 + usize::from(u16::from_be_bytes([*high, *low])),
        _ => 2,
    };
    let length = u16::try_from(2 + PREFIX.len() + block.len()).ok()?;
    let segment = [&[0xff, 0xe1], &length.to_be_bytes()[..], PREFIX, block].concat();
    spliced(jpeg, after, &segment)
}

/// The chunk may stand anywhere before the end; here it follows the header (PNG 3, 11.3.4.5).
fn in_png(png: &[u8], block: &[u8]) -> Option<Bytes> {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(b"eXIf");
    checksum.update(block);
    let length = u32::try_from(block.len()).ok()?.to_be_bytes();
    let chunk = [&length[..], b"eXIf", block, &checksum.finalize().to_be_bytes()].concat();
    // The signature, and a header chunk of 13 bytes.
    spliced(png, 8 + 12 + 13, &chunk)
}

/// Only the extended format can have metadata (RFC 9649, 2.7).
fn in_webp(webp: &[u8], block: &[u8], (width, height): (u32, u32)) -> Option<Bytes> {
    let length = u32::from_le_bytes(*webp.get(4..)?.first_chunk()?) as usize;
    let body = webp.get(12..length.checked_add(8)?)?;
    let mut file = Vec::with_capacity(webp.len() + block.len() + 64);
    file.extend_from_slice(b"RIFF\0\0\0\0WEBP");
    if !body.starts_with(b"VP8X") {
        let has_alpha = WebPDecoder::new(Cursor::new(webp)).ok()?.color_type() == ColorType::Rgba8;
        file.extend_from_slice(b"VP8X\x0a\0\0\0");
        file.extend_from_slice(&[if has_alpha { WEBP_ALPHA } else { 0 }, 0, 0, 0]);
        for side in [width, height] {
            file.extend_from_slice(&side.checked_sub(1)?.to_le_bytes()[..3]);
        }
    }
    file.extend_from_slice(body);
    // Some writers forget the padding of the last chunk.
    file.resize(file.len() + file.len() % 2, 0);
    *file.get_mut(20)? |= WEBP_EXIF;
    file.extend_from_slice(b"EXIF");
    file.extend_from_slice(&u32::try_from(block.len()).ok()?.to_le_bytes());
    file.extend_from_slice(block);
    file.resize(file.len() + file.len() % 2, 0);
    let length = u32::try_from(file.len() - 8).ok()?;
    file[4..8].copy_from_slice(&length.to_le_bytes());
    Some(file.into())
}

fn spliced(file: &[u8], at: usize, piece: &[u8]) -> Option<Bytes> {
    let (head, rest) = file.split_at_checked(at)?;
    Some([head, piece, rest].concat().into())
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, ImageFormat, RgbaImage};

    use super::*;

    /// A block as a phone writes it: orientation, sizes, a GPS location, and a thumbnail at the end.
    fn block(is_little: bool) -> Vec<u8> {
        let short = |value: u16| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        let long = |value: u32| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        let entry = |tag: u16, kind: u16, value: u32| {
            let mut bytes = [short(tag), short(kind)].concat();
            bytes.extend(long(1));
            if kind == SHORT {
                bytes.extend([short(value as u16), [0, 0]].concat());
            } else {
                bytes.extend(long(value));
            }
            bytes
        };
        let mut block = if is_little { b"II*\0".to_vec() } else { b"MM\0*".to_vec() };
        block.extend(long(8));
        // At 8: the orientation. The sizes are in the directory at 50, the GPS location in the directory at 80.
        block.extend(short(3));
        block.extend(entry(ORIENTATION, SHORT, 6));
        block.extend(entry(EXIF_DIRECTORY, LONG, 50));
        block.extend(entry(0x8825, LONG, 80));
        block.extend(long(98));
        assert_eq!(block.len(), 50);
        block.extend(short(2));
        block.extend(entry(PIXEL_WIDTH, LONG, 4032));
        block.extend(entry(PIXEL_HEIGHT, SHORT, 3024));
        block.extend(long(0));
        block.extend(short(1));
        block.extend(entry(0x0001, LONG, 0x4e));
        block.extend(long(0));
        assert_eq!(block.len(), 98);
        block.extend(short(2));
        block.extend(entry(THUMBNAIL_START, LONG, 128));
        block.extend(entry(THUMBNAIL_LENGTH, LONG, 9));
        block.extend(long(0));
        assert_eq!(block.len(), 128);
        block.extend(b"thumbnail");
        block
    }

    fn value(exif: &Exif, directory: usize, tag: u16) -> u32 {
        let at = exif.find(directory, tag).unwrap();
        match exif.short(at + 2) {
            Some(SHORT) => exif.short(at + 8).unwrap().into(),
            _ => exif.long(at + 8).unwrap(),
        }
    }

    #[test]
    fn a_block_loses_turn_and_thumbnail_and_gets_the_size_of_its_file() {
        for is_little in [true, false] {
            let exif = Exif::parse(&[PREFIX, &block(is_little)].concat()).unwrap();
            assert_eq!(exif.block.len(), 128, "the thumbnail is gone");
            assert_eq!(value(&exif, 8, ORIENTATION), 1);
            for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
                let mut file = Cursor::new(Vec::new());
                let picture = DynamicImage::from(RgbaImage::new(31, 17));
                let picture =
                    if format == ImageFormat::Jpeg { picture.into_rgb8().into() } else { picture };
                picture.write_to(&mut file, format).unwrap();
                let written = exif.put_on(&file.into_inner().into()).unwrap();
                let found = Exif::of(&written).expect("it reads what it wrote");
                let size = (value(&found, 50, PIXEL_WIDTH), value(&found, 50, PIXEL_HEIGHT));
                assert_eq!(size, (31, 17), "{format:?}");
                assert_eq!(value(&found, 80, 0x0001), 0x4e, "the GPS location stays");
                // Another decoder finds it too, and the pixels are as they were.
                let decoded = image::load_from_memory(&written).unwrap();
                assert_eq!((decoded.width(), decoded.height()), (31, 17));
                let mut reader = image::ImageReader::with_format(Cursor::new(&written), format)
                    .into_decoder()
                    .unwrap();
                let read = reader.exif_metadata().unwrap().expect("the block");
                assert_eq!(read.strip_prefix(PREFIX).unwrap_or(&read), found.block, "{format:?}");
            }
        }
    }

    #[test]
    fn an_uncompressed_thumbnail_is_cleared_too() {
        for (count, starts, lengths) in [(1, 74, 5), (2, 74, 82)] {
            // At 8: the orientation. At 26: the strips of the thumbnail; several have tables at 74 and 82.
            let mut block = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0".to_vec();
            block.extend(26_u32.to_le_bytes());
            block.extend(2_u16.to_le_bytes());
            for (tag, value) in [(0x0111_u16, starts), (0x0117, lengths)] {
                block.extend(tag.to_le_bytes());
                block.extend(LONG.to_le_bytes());
                block.extend([u32::from(count > 1) + 1, value].map(u32::to_le_bytes).concat());
            }
            block.resize(74, 0);
            if count > 1 {
                block.extend([90_u32, 95, 5, 5].map(u32::to_le_bytes).concat());
            }
            block.extend(b"strip");
            if count > 1 {
                block.extend(b"stripSTAYS");
            } else {
                block.extend(b"STAYS");
            }
            let exif = Exif::parse(&block).expect("it is sound");
            let has = |text: &[u8]| exif.block.windows(5).any(|window| window == text);
            assert!(!has(b"strip") && has(b"STAYS"), "{count} strips");
        }
    }

    #[test]
    fn a_block_that_takes_much_memory_is_dropped() {
        // The second directory, at 14, has strips of no bytes, whose tables follow it.
        let strips = |count: u32| {
            let mut block = b"II*\0\x08\0\0\0\0\0\x0e\0\0\0\x02\0".to_vec();
            for (tag, table) in [(STRIP_STARTS, 44), (STRIP_LENGTHS, 44 + 4 * count)] {
                block.extend([tag, LONG].map(u16::to_le_bytes).concat());
                block.extend([count, table].map(u32::to_le_bytes).concat());
            }
            block.resize(44 + 8 * count as usize, 0);
            block
        };
        assert!(Exif::parse(&strips(MAX_PIECES as u32)).is_some());
        assert_eq!(Exif::parse(&strips(MAX_PIECES as u32 + 1)), None, "too many strips");

        let mut long = block(true);
        long[120..124].copy_from_slice(&(MAX_READ_BYTES as u32 - 128).to_le_bytes());
        long.resize(MAX_READ_BYTES, 0);
        assert_eq!(Exif::parse(&long).map(|exif| exif.block.len()), Some(128));
        long.push(0);
        assert_eq!(Exif::parse(&long), None, "too long, although its thumbnail is dropped");
    }

    #[test]
    fn a_block_whose_directories_overlap_is_dropped() {
        let mut block = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0".to_vec();
        block.extend(26_u32.to_le_bytes());
        block.extend([0; 6]);
        let sound = Exif::parse(&block).expect("the second directory is behind the first");
        assert_eq!(value(&sound, 8, ORIENTATION), 1);
        for second in [4_u32, 8, 10, 25] {
            block[22..26].copy_from_slice(&second.to_le_bytes());
            assert_eq!(Exif::parse(&block), None, "at {second}");
        }
    }

    #[test]
    fn blocks_of_any_bytes_are_read_or_dropped() {
        let whole = block(true);
        for end in 0..whole.len() {
            let _ = Exif::parse(&whole[..end]);
        }
        let mut state = 1_u32;
        for _ in 0..50_000 {
            let mut bytes = whole.clone();
            for _ in 0..4 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = 4 + (state >> 8) as usize % (bytes.len() - 4);
                bytes[at] = state as u8;
            }
            if let Some(exif) = Exif::parse(&bytes) {
                let _ = exif.of_size(1, 1);
            }
        }
        let mut large = whole;
        large[46..50].fill(0);
        large.resize(MAX_BYTES + 1, 0);
        assert_eq!(Exif::parse(&large), None, "a JPEG cannot hold it");
        large.pop();
        assert!(Exif::parse(&large).is_some());
    }
}
