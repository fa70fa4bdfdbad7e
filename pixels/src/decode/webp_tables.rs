//! The memory that the decoder of lossless WebP takes for Huffman tables.
//!
//! A lossless stream may divide its picture into blocks and choose one of up to 65,536 groups of five Huffman codes
//! for each of them. The decoder expands all groups before the first pixel, each code into up to 75 kB, while the
//! stream describes a code in some twenty bytes: a file of a few megabytes could take gigabytes. So this module reads
//! a stream up to its first pixel, as RFC 9649 describes it, and adds up what the decoder will allocate.

/// A position in the stream at which it ends or breaks its rules. The decoder stops there too, so nothing that it
/// allocates comes later.
struct Broken;

type Read<T> = Result<T, Broken>;

/// The symbols of a group's five codes without a color cache: green samples and lengths of copies, red, blue, alpha,
/// distances of copies.
const ALPHABETS: [usize; 5] = [256 + COPIES, 256, 256, 256, 40];
/// How many lengths of copies there are.
const COPIES: usize = 24;
const LONGEST_CODE: usize = 15;
/// Codes up to this length are looked up in a table, longer ones in a tree.
const LONGEST_IN_TABLE: usize = 10;
/// The order in which the lengths of the codes of code lengths are stored.
const LENGTHS_ORDER: [usize; 19] =
    [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Returns the bytes that decoding the first frame of a WebP file takes for Huffman tables, the data of transforms, and
/// the choice of groups; 0 without a lossless stream.
pub(super) fn bytes(file: &[u8]) -> u64 {
    let (mut most, mut size) = (0, (0, 0));
    for (kind, content) in chunks(file.get(12..).unwrap_or_default()) {
        match &kind {
            b"VP8X" => size = (number(content, 4) + 1, number(content, 7) + 1),
            b"ANMF" => {
                size = (number(content, 6) + 1, number(content, 9) + 1);
                let frame = chunks(content.get(16..).unwrap_or_default());
                return frame.fold(most, |most, (kind, content)| {
                    most.max(chunk_bytes(kind, content, size))
                });
            }
            _ => most = most.max(chunk_bytes(kind, content, size)),
        }
    }
    most
}

/// Iterates over the chunks of a file or a frame: four letters and the content (RFC 9649, 2.3).
fn chunks(mut rest: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let (kind, after) = rest.split_first_chunk::<4>()?;
        let (length, content) = after.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        // Content of an odd length is padded.
        rest = content.get(length.saturating_add(length & 1)..).unwrap_or_default();
        Some((*kind, &content[..length.min(content.len())]))
    })
}

/// Returns the number of 24 bits at an offset; 0 beyond the end.
fn number(content: &[u8], at: usize) -> u32 {
    let bytes = content.get(at..at + 3).unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

fn chunk_bytes(kind: [u8; 4], content: &[u8], (width, height): (u32, u32)) -> u64 {
    let mut stream = Stream { bits: Bits { bytes: content, at: 0 }, allocated: 0 };
    // The decoder meets a broken stream at the same place, and has allocated this much by then.
    let _: Read<()> = match (&kind, content.first()) {
        (b"VP8L", _) => stream.read_picture(),
        // The first two bits say whether transparency is compressed (2.7.1.2); its stream has no header.
        (b"ALPH", Some(info)) if info & 3 == 1 => {
            stream.bits.at = 8;
            stream.read_until_first_pixel(width, height)
        }
        _ => Ok(()),
    };
    stream.allocated
}

/// A lossless stream.
struct Stream<'a> {
    bits: Bits<'a>,
    /// The bytes that the decoder has allocated so far.
    allocated: u64,
}

impl Stream<'_> {
    /// Reads the header, 3.4, and what follows it.
    fn read_picture(&mut self) -> Read<()> {
        let _signature = self.bits.read(8)?;
        let (width, height) = (self.bits.read(14)? + 1, self.bits.read(14)? + 1);
        let _alpha_and_version = self.bits.read(4)?;
        self.read_until_first_pixel(width, height)
    }

    fn read_until_first_pixel(&mut self, mut width: u32, height: u32) -> Read<()> {
        // Transforms (4) may change the width.
        while self.bits.read_flag()? {
            match self.bits.read(2)? {
                0 | 1 => {
                    self.read_blocks(width, height)?;
                }
                2 => {}
                _ => {
                    let colors = self.bits.read(8)? + 1;
                    self.read_subimage(colors, 1)?;
                    // Pixels of few colors are bundled.
                    width = width.div_ceil(match colors {
                        ..=2 => 8,
                        3..=4 => 4,
                        5..=16 => 2,
                        _ => 1,
                    });
                }
            }
        }
        let cache = self.read_color_cache_size()?;
        // Red and green of each block's pixel are the number of its group (6.2.2).
        let groups = if self.bits.read_flag()? { self.read_blocks(width, height)? + 1 } else { 1 };
        for _ in 0..groups {
            for alphabet in alphabets(cache) {
                let code = self.read_code(alphabet)?;
                self.allocated += code.decoder_bytes();
            }
        }
        Ok(())
    }

    /// Reads an image with one pixel per block, and returns the greatest of its pixels.
    fn read_blocks(&mut self, width: u32, height: u32) -> Read<u32> {
        let side = 4 << self.bits.read(3)?;
        let (width, height) = (width.div_ceil(side), height.div_ceil(side));
        // The decoder keeps four bytes per pixel, and two more for the number of the group.
        self.allocated += 6 * u64::from(width) * u64::from(height);
        self.read_subimage(width, height)
    }

    /// Reads a whole image that has one group of codes, and returns the greatest of its pixels, with red and green as
    /// a number of 16 bits.
    fn read_subimage(&mut self, width: u32, height: u32) -> Read<u32> {
        let cache = self.read_color_cache_size()?;
        let [greens, reds, blues, alphas, distances] = alphabets(cache);
        let (green, red) = (self.read_code(greens)?, self.read_code(reds)?);
        let (blue, alpha) = (self.read_code(blues)?, self.read_code(alphas)?);
        let distance = self.read_code(distances)?;
        let (mut left, mut greatest) = (width * height, 0);
        while left > 0 {
            let symbol = green.read(&mut self.bits)?;
            let pixels = match symbol.checked_sub(256) {
                None => {
                    // Copied and cached colors are those of earlier pixels, so only these count.
                    greatest = greatest.max((red.read(&mut self.bits)? << 8) | symbol);
                    blue.read(&mut self.bits)?;
                    alpha.read(&mut self.bits)?;
                    let all_are_equal =
                        [&green, &red, &blue, &alpha].iter().all(|code| code.is_single());
                    if all_are_equal { left } else { 1 }
                }
                Some(copy) if copy < COPIES as u32 => {
                    let pixels = self.read_prefixed(copy)?;
                    let distance = distance.read(&mut self.bits)?;
                    self.read_prefixed(distance)?;
                    pixels
                }
                Some(_) => 1,
            };
            left = left.checked_sub(pixels).ok_or(Broken)?;
        }
        Ok(greatest)
    }

    /// Returns the number of cached colors (5.2.3).
    fn read_color_cache_size(&mut self) -> Read<usize> {
        if !self.bits.read_flag()? {
            return Ok(0);
        }
        match self.bits.read(4)? {
            bits @ 1..=11 => Ok(1 << bits),
            _ => Err(Broken),
        }
    }

    /// Reads the rest of a length or distance (5.2.2).
    fn read_prefixed(&mut self, symbol: u32) -> Read<u32> {
        if symbol < 4 {
            return Ok(symbol + 1);
        }
        let extra = (symbol - 2) >> 1;
        Ok(((2 + (symbol & 1)) << extra) + self.bits.read(extra)? + 1)
    }

    /// Reads a code of an alphabet of `symbols` (6.2.1).
    fn read_code(&mut self, symbols: usize) -> Read<Code> {
        if self.bits.read_flag()? {
            let has_two = self.bits.read_flag()?;
            let bits = if self.bits.read_flag()? { 8 } else { 1 };
            let first = self.bits.read(bits)?;
            let second = if has_two { Some(self.bits.read(8)?) } else { None };
            return Ok(Code::simple(first as u16, second.map(|second| second as u16)));
        }
        let mut lengths_of_lengths = [0; LENGTHS_ORDER.len()];
        let stored = 4 + self.bits.read(4)? as usize;
        for symbol in &LENGTHS_ORDER[..stored] {
            lengths_of_lengths[*symbol] = self.bits.read(3)? as u8;
        }
        let code = Code::new(&lengths_of_lengths)?;
        let mut stored = symbols as u32;
        if self.bits.read_flag()? {
            let bits = 2 + 2 * self.bits.read(3)?;
            stored = 2 + self.bits.read(bits)?;
        }
        let mut lengths = vec![0; symbols];
        let (mut at, mut previous) = (0, 8);
        for _ in 0..stored {
            if at >= symbols {
                break;
            }
            let (length, times) = match code.read(&mut self.bits)? {
                16 => (previous, 3 + self.bits.read(2)?),
                17 => (0, 3 + self.bits.read(3)?),
                18 => (0, 11 + self.bits.read(7)?),
                length => (length as u8, 1),
            };
            let end = at + times as usize;
            lengths.get_mut(at..end).ok_or(Broken)?.fill(length);
            at = end;
            if length != 0 {
                previous = length;
            }
        }
        Code::new(&lengths)
    }
}

fn alphabets(cache: usize) -> [usize; 5] {
    let mut alphabets = ALPHABETS;
    // Cached colors are symbols of the first code.
    alphabets[0] += cache;
    alphabets
}

/// A canonical Huffman code.
struct Code {
    /// How many symbols have codes of each length.
    counts: [u16; LONGEST_CODE + 1],
    /// The symbols in the order of their codes.
    symbols: Vec<u16>,
}

impl Code {
    /// One symbol, or two with one bit each.
    fn simple(first: u16, second: Option<u16>) -> Self {
        let symbols: Vec<_> = [Some(first), second].into_iter().flatten().collect();
        let mut counts = [0; LONGEST_CODE + 1];
        counts[1] = symbols.len() as u16;
        Self { counts, symbols }
    }

    /// The code with a length for each symbol; 0 for those that do not occur.
    fn new(lengths: &[u8]) -> Read<Self> {
        let mut counts = [0; LONGEST_CODE + 1];
        for length in lengths {
            counts[usize::from(*length)] += 1;
        }
        counts[0] = 0;
        let mut symbols: Vec<_> = (0..).zip(lengths).filter(|(_, length)| **length > 0).collect();
        symbols.sort_by_key(|(_, length)| **length);
        let symbols: Vec<u16> = symbols.into_iter().map(|(symbol, _)| symbol).collect();
        // The shares of all codes in the space of codes, in units of the longest.
        let full = 1 << LONGEST_CODE;
        let used: u32 = (1..)
            .zip(&counts[1..])
            .map(|(length, count)| u32::from(*count) * (full >> length))
            .sum();
        match symbols.len() {
            0 => Err(Broken),
            1 => Ok(Self { counts, symbols }),
            _ if used == full => Ok(Self { counts, symbols }),
            _ => Err(Broken),
        }
    }

    /// Returns whether there is only one symbol, which takes no bits.
    fn is_single(&self) -> bool {
        self.symbols.len() == 1
    }

    fn read(&self, bits: &mut Bits) -> Read<u32> {
        let (mut code, mut first, mut index) = (0, 0, 0);
        if self.is_single() {
            return Ok(self.symbols[0].into());
        }
        for count in &self.counts[1..] {
            let count = u32::from(*count);
            code = (code << 1) | bits.read(1)?;
            first <<= 1;
            if code < first + count {
                return Ok(self.symbols[(index + code - first) as usize].into());
            }
            first += count;
            index += count;
        }
        Err(Broken)
    }

    /// Returns what the decoder allocates for this code: a table of four bytes for each value of as many bits as the
    /// longest code has, and for codes that are longer than the table two nodes of 16 bytes.
    fn decoder_bytes(&self) -> u64 {
        // The vectors themselves, twice while the list of groups grows.
        const HEADER: u64 = 160;
        let longest = self.counts.iter().rposition(|count| *count > 0).unwrap_or(0);
        let in_tree: u64 =
            self.counts[LONGEST_IN_TABLE + 1..].iter().map(|count| u64::from(*count)).sum();
        if self.is_single() {
            HEADER
        } else {
            HEADER + (4 << longest.min(LONGEST_IN_TABLE)) + 32 * in_tree
        }
    }
}

/// Reads bits, the lowest of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    /// The number of bits that were read.
    at: usize,
}

impl Bits<'_> {
    /// Reads a number of up to 24 bits.
    fn read(&mut self, bits: u32) -> Read<u32> {
        let end = self.at + bits as usize;
        if end > 8 * self.bytes.len() {
            return Err(Broken);
        }
        let window = &self.bytes[self.at / 8..end.div_ceil(8)];
        let value = window.iter().rev().fold(0, |value, byte| (value << 8) | u32::from(*byte));
        let value = (value >> (self.at % 8)) & ((1 << bits) - 1);
        self.at = end;
        Ok(value)
    }

    fn read_flag(&mut self) -> Read<bool> {
        Ok(self.read(1)? == 1)
    }
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, ImageFormat, RgbaImage};

    use super::*;

    /// Pictures of the reference encoder: one with predictors, color transform, color cache and several groups, one
    /// with a palette, and a lossy one with compressed transparency.
    const FILES: [(&str, &[u8]); 3] = [
        ("photo", include_bytes!("../../tests/webp/photo.webp")),
        ("palette", include_bytes!("../../tests/webp/palette.webp")),
        ("transparency", include_bytes!("../../tests/webp/transparency.webp")),
    ];

    fn read(file: &[u8]) -> Read<u64> {
        let streams = chunks(&file[12..]).filter(|(kind, _)| matches!(kind, b"VP8L" | b"ALPH"));
        let (kind, content) = streams.last().expect("it is lossless");
        let mut stream = Stream { bits: Bits { bytes: content, at: 0 }, allocated: 0 };
        if &kind == b"VP8L" {
            stream.read_picture()?;
        } else {
            stream.bits.at = 8;
            let picture = image::load_from_memory(file).expect("it decodes");
            stream.read_until_first_pixel(picture.width(), picture.height())?;
        }
        Ok(stream.allocated)
    }

    #[test]
    fn ordinary_streams_are_understood_up_to_the_first_pixel() {
        for (name, file) in FILES {
            let Ok(found) = read(file) else { panic!("{name}") };
            assert!((1_000..2_000_000).contains(&found), "{name}: {found}");
            assert_eq!(bytes(file), found, "{name}");
        }
        let mut file = std::io::Cursor::new(Vec::new());
        let picture =
            RgbaImage::from_fn(64, 64, |x, y| image::Rgba([x as u8, y as u8, 9, x as u8]));
        DynamicImage::ImageRgba8(picture).write_to(&mut file, ImageFormat::WebP).unwrap();
        assert!(read(file.get_ref()).is_ok());
    }

    #[test]
    fn a_broken_stream_counts_up_to_the_break() {
        let (_, photo) = FILES[0];
        let whole = bytes(photo);
        let counted: Vec<_> = (0..photo.len()).step_by(7).map(|end| bytes(&photo[..end])).collect();
        assert!(
            counted.is_sorted() && counted.first() == Some(&0) && counted.last() == Some(&whole)
        );
    }
}
