//! Reads the header of a HEIC or AVIF file, without decoding its picture (ISO/IEC 14496-12, 23008-12; AVIF 1.1).
//!
//! Only the boxes that determine the size are read: the primary item and its properties, and nothing that they refer
//! to. The decoder's limits cover the rest, such as a grid that is larger than stated.

use retouch_pixels::decode::Foreign;
use retouch_pixels::exif::Exif;
use retouch_pixels::{Limits, PixelError};

/// The memory of the decoder apart from pixels, in bytes: the libraries' tables, threads, and buffers.
const BASE_BYTES: u64 = 48 << 20;
/// Peak memory of decoding, rotating, and encoding per pixel of 8 bits a channel, in bytes; photos of 12 megapixels
/// take 8 to 11.
const PIXEL_BYTES: u64 = 14;
/// The same for more bits a channel; photos take 12, and 20 if they are of high dynamic range.
const DEEP_PIXEL_BYTES: u64 = 24;
/// Maximum size of the result per pixel, in bytes: the fast compression takes up to 12 bits for a byte of noise.
const RESULT_PIXEL_BYTES: u64 = 6;
/// Maximum size of what else the result has, in bytes: a profile and metadata take a megabyte each at most.
const RESULT_EXTRA_BYTES: u64 = 3 << 20;

/// Maximum side before cropping, in pixels; libheif's own limit.
pub const MAX_CODED_SIDE: u32 = 1 << 16;

type FourCc = [u8; 4];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// HEVC in HEIF.
    Heic,
    /// AV1 in HEIF.
    Avif,
}

impl Codec {
    /// Recognizes a still picture by the brands in its first box; `None` for any other file.
    pub fn of(file: &[u8]) -> Option<Self> {
        let (kind, brands) = boxes(file.get(..file.len().min(4096))?).next()?;
        let (major, others) = (brands.get(..4)?, brands.get(8..)?);
        // Sequences have `pict` as handler of no track; their brands say so first.
        if kind != *b"ftyp" || matches!(major, b"msf1" | b"hevc" | b"hevx" | b"avis") {
            return None;
        }
        std::iter::once(major).chain(others.chunks_exact(4)).find_map(|brand| match brand {
            b"heic" | b"heix" | b"heim" | b"heis" => Some(Self::Heic),
            b"avif" => Some(Self::Avif),
            _ => None,
        })
    }

    /// Returns the name for users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heic => "HEIC",
            Self::Avif => "AVIF",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The codec that its brands name.
    pub codec: Codec,
    /// Width of the upright picture in pixels.
    pub width: u32,
    /// Height of the upright picture in pixels.
    pub height: u32,
    /// Pixels to decode, before cropping.
    coded_pixels: u64,
    /// Whether any picture in the file has more than 8 bits a channel.
    is_deep: bool,
    /// The size of the file, in bytes.
    file: u64,
}

impl Header {
    /// Reads the header of a file. A file that passes may still be damaged.
    ///
    /// # Errors
    /// [`PixelError::UnsupportedFormat`] for any other file, [`PixelError::Foreign`] if its codec is neither HEVC nor
    /// AV1, [`PixelError::Unreadable`] if it is damaged or truncated, [`PixelError::TooLarge`] if a side exceeds
    /// `limits`, or a side before cropping exceeds what the decoder accepts.
    pub fn read(file: &[u8], limits: &Limits) -> Result<Self, PixelError> {
        let codec = Codec::of(file).ok_or(PixelError::UnsupportedFormat)?;
        if is_truncated(file) {
            return Err(unreadable("it is truncated"));
        }
        let damaged = || unreadable("it is damaged");
        let meta = find(file, *b"meta").and_then(|meta| meta.get(4..)).ok_or_else(damaged)?;
        let primary = primary_item(meta).ok_or_else(damaged)?;
        if !matches!(
            &items(meta)
                .and_then(|mut all| all.find(|(id, _)| *id == primary))
                .ok_or_else(damaged)?
                .1,
            b"hvc1" | b"av01" | b"grid" | b"iden" | b"iovl"
        ) {
            return Err(PixelError::Foreign(Foreign::Other("HEIF")));
        }
        let properties = find(meta, *b"iprp").ok_or_else(damaged)?;
        let container = find(properties, *b"ipco").ok_or_else(damaged)?;
        let Size { coded, upright: (width, height) } =
            size(container, properties, primary).ok_or_else(damaged)?;
        // Cropping leaves at least one pixel.
        if coded.0 == 0 || coded.1 == 0 {
            return Err(unreadable("it has no pixels"));
        }
        let max_dimension = limits.max_dimension;
        if width > max_dimension || height > max_dimension {
            return Err(PixelError::TooLarge { width, height, max_dimension });
        }
        if coded.0.max(coded.1) > MAX_CODED_SIDE {
            let (width, height) = coded;
            return Err(PixelError::TooLarge { width, height, max_dimension: MAX_CODED_SIDE });
        }
        let coded_pixels = u64::from(coded.0) * u64::from(coded.1);
        let is_deep = boxes(container).any(|(kind, data)| is_deep(kind, data));
        Ok(Self { codec, width, height, coded_pixels, is_deep, file: file.len() as u64 })
    }

    /// Returns the peak memory that [`crate::Heif::convert`] takes beside the file and its result, in bytes.
    pub const fn convert_bytes(&self) -> u64 {
        let per_pixel = if self.is_deep { DEEP_PIXEL_BYTES } else { PIXEL_BYTES };
        BASE_BYTES + 2 * self.file + per_pixel * self.coded_pixels
    }

    /// Returns the maximum size of the result, in bytes.
    pub(crate) const fn result_bytes(&self) -> u64 {
        RESULT_PIXEL_BYTES * self.width as u64 * self.height as u64 + RESULT_EXTRA_BYTES
    }
}

/// Returns the camera's metadata (EXIF) of a picture in any uploadable format; `None` if there is none, or it cannot be
/// kept.
pub fn exif(file: &[u8]) -> Option<Exif> {
    if Codec::of(file).is_none() {
        return Exif::of(file);
    }
    let meta = find(file, *b"meta")?.get(4..)?;
    let item = items(meta)?.find(|(_, kind)| kind == b"Exif").map(|(id, _)| id)?;
    let block = located(file, find(meta, *b"iloc")?, item)?;
    // The block states how many bytes precede it (ISO/IEC 23008-12, A.2.1).
    let skipped = number(block, 0)? as usize;
    Exif::parse(block.get(4_usize.checked_add(skipped)?..)?)
}

/// Returns the contents of an item that is in one piece in the file (`iloc`).
fn located<'a>(file: &'a [u8], places: &[u8], wanted: u32) -> Option<&'a [u8]> {
    let version = *places.first().filter(|version| **version <= 2)?;
    let sizes =
        [places.get(4)? >> 4, places.get(4)? & 15, places.get(5)? >> 4, places.get(5)? & 15];
    let [offset_size, length_size, base_size, index_size] = sizes.map(usize::from);
    let mut at = 6;
    let mut next = |size: usize| {
        let bytes = places.get(at..at + size)?;
        at += size;
        Some(bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    for _ in 0..next(if version < 2 { 2 } else { 4 })? {
        let id = next(if version < 2 { 2 } else { 4 })?;
        // 0: in the file, not within another box.
        let method = if version > 0 { next(2)? & 15 } else { 0 };
        next(2)?;
        let base = next(base_size)?;
        let pieces = next(2)?;
        // A small file can claim billions of pieces that take no bytes.
        let piece_size = offset_size + length_size + if version > 0 { index_size } else { 0 };
        if piece_size == 0 && pieces > 1 {
            return None;
        }
        for _ in 0..pieces {
            if version > 0 {
                next(index_size)?;
            }
            let (offset, length) = (next(offset_size)?, next(length_size)?);
            if id == u64::from(wanted) {
                let start = usize::try_from(base.checked_add(offset)?).ok()?;
                let end = start.checked_add(usize::try_from(length).ok()?)?;
                return file.get(start..end).filter(|_| method == 0 && pieces == 1);
            }
        }
    }
    None
}

/// Returns kind and contents of the boxes in `data`, up to the first that is damaged.
fn boxes(data: &[u8]) -> impl Iterator<Item = (FourCc, &[u8])> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (kind, start, end) = extent(rest)?;
        let contents = rest.get(start..usize::try_from(end).ok()?)?;
        rest = &rest[start + contents.len()..];
        Some((kind, contents))
    })
}

/// Returns the kind of the first box, and where its contents start and end; `None` if its head is damaged.
fn extent(data: &[u8]) -> Option<(FourCc, usize, u64)> {
    let kind = *data.get(4..)?.first_chunk()?;
    match number(data, 0)? {
        // To the end of the file.
        0 => Some((kind, 8, data.len() as u64)),
        1 => {
            let end = u64::from_be_bytes(*data.get(8..)?.first_chunk()?);
            (end >= 16).then_some((kind, 16, end))
        }
        end if end >= 8 => Some((kind, 8, u64::from(end))),
        _ => None,
    }
}

/// Returns whether a box at the top level ends after the file.
fn is_truncated(file: &[u8]) -> bool {
    let mut rest = file;
    while let Some((_, _, end)) = extent(rest) {
        let Some(after) = usize::try_from(end).ok().and_then(|end| rest.get(end..)) else {
            return true;
        };
        rest = after;
    }
    false
}

fn find(data: &[u8], wanted: FourCc) -> Option<&[u8]> {
    boxes(data).find(|(kind, _)| *kind == wanted).map(|(_, contents)| contents)
}

/// The primary item (`pitm`).
fn primary_item(meta: &[u8]) -> Option<u32> {
    let data = find(meta, *b"pitm")?;
    match data.first()? {
        0 => short(data, 4),
        _ => number(data, 4),
    }
}

/// Every item with its type (`iinf`, `infe`).
fn items(meta: &[u8]) -> Option<impl Iterator<Item = (u32, FourCc)>> {
    let items = find(meta, *b"iinf")?;
    let start = if *items.first()? == 0 { 6 } else { 8 };
    let entries = boxes(items.get(start..)?).filter(|(kind, _)| kind == b"infe");
    Some(entries.filter_map(|(_, entry)| {
        let (id, at) = match entry.first()? {
            2 => (short(entry, 4)?, 8),
            3 => (number(entry, 4)?, 10),
            _ => return None,
        };
        Some((id, *entry.get(at..)?.first_chunk()?))
    }))
}

/// The size of an item (width, height).
struct Size {
    /// Before its transformations.
    coded: (u32, u32),
    /// After its transformations.
    upright: (u32, u32),
}

/// The size of an item, whose properties name its transformations in order (`ipma`).
fn size(container: &[u8], properties: &[u8], item: u32) -> Option<Size> {
    let all: Vec<_> = boxes(container).collect();
    let (mut coded, mut size) = (None, None);
    for index in associated(properties, item)? {
        let Some((kind, data)) = usize::from(index).checked_sub(1).and_then(|at| all.get(at))
        else {
            continue;
        };
        match (kind, size) {
            (b"ispe", None) => {
                coded = Some((number(data, 4)?, number(data, 8)?));
                size = coded;
            }
            (b"clap", Some((width, height))) => {
                let cropped_side = |at: usize, full: u32| {
                    let cropped = number(data, at)?.checked_div(number(data, at + 4)?)?;
                    Some(cropped.clamp(1, full.max(1)))
                };
                size = Some((cropped_side(0, width)?, cropped_side(8, height)?));
            }
            (b"irot", Some((width, height))) if data.first()? & 1 == 1 => {
                size = Some((height, width));
            }
            _ => {}
        }
    }
    coded.zip(size).map(|(coded, upright)| Size { coded, upright })
}

/// The numbers of an item's properties, counted from 1.
fn associated(properties: &[u8], item: u32) -> Option<Vec<u16>> {
    let (_, data) = boxes(properties).find(|(kind, data)| {
        kind == b"ipma" && entries(data).is_some_and(|mut all| all.any(|(id, _)| id == item))
    })?;
    entries(data)?.find(|(id, _)| *id == item).map(|(_, indices)| indices)
}

/// Every item in an `ipma` box, with the numbers of its properties.
fn entries(data: &[u8]) -> Option<impl Iterator<Item = (u32, Vec<u16>)>> {
    let (has_long_ids, has_long_indices) = (*data.first()? > 0, data.get(3)? & 1 == 1);
    let mut left = number(data, 4)?;
    let mut at = 8;
    Some(std::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        let id = if has_long_ids { number(data, at)? } else { short(data, at)? };
        at += if has_long_ids { 4 } else { 2 };
        let count = usize::from(*data.get(at)?);
        at += 1;
        let width = if has_long_indices { 2 } else { 1 };
        let indices = data.get(at..at + count * width)?.chunks_exact(width);
        at += count * width;
        // The highest bit says whether a reader must know the property.
        let index = |bytes: &[u8]| match *bytes {
            [high, low] => u16::from_be_bytes([high & 0x7f, low]),
            [only, ..] => u16::from(only & 0x7f),
            [] => 0,
        };
        Some((id, indices.map(index).collect()))
    }))
}

/// Whether the configuration of a codec (`hvcC`, `av1C`) announces more than 8 bits a channel.
fn is_deep(kind: FourCc, data: &[u8]) -> bool {
    match &kind {
        b"hvcC" => [17, 18].iter().any(|at| data.get(*at).is_some_and(|depth| depth & 7 != 0)),
        b"av1C" => data.get(2).is_some_and(|flags| flags & 0x40 != 0),
        b"pixi" => data.get(5..).is_some_and(|depths| depths.iter().any(|depth| *depth > 8)),
        _ => false,
    }
}

fn number(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*data.get(at..)?.first_chunk()?))
}

fn short(data: &[u8], at: usize) -> Option<u32> {
    Some(u16::from_be_bytes(*data.get(at..)?.first_chunk()?).into())
}

fn unreadable(reason: &str) -> PixelError {
    PixelError::Unreadable(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use retouch_pixels::Picture;
    use retouch_pixels::upload::encode_upright;

    use super::*;

    #[test]
    fn noise_with_transparency_fits_into_the_result() {
        let side = 256_u32;
        let pixels = u64::from(side * side);
        // Xorshift (G. Marsaglia, 2003).
        let mut state = 1_u32;
        let noise = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 24) as u8
        });
        let noise = noise.take(4 * pixels as usize).collect();
        let result = encode_upright(&Picture::from_rgba(side, side, noise, None)).unwrap();
        let header = Header {
            codec: Codec::Avif,
            width: side,
            height: side,
            coded_pixels: pixels,
            is_deep: false,
            file: 0,
        };
        let most = header.result_bytes() - RESULT_EXTRA_BYTES;
        let taken = result.len() as u64;
        assert!((5 * pixels..=most).contains(&taken), "{taken} bytes for {pixels} pixels");
    }
}
