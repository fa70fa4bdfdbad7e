//! The memory that the decoder of lossless WebP takes for Huffman tables.
//!
//! A lossless stream may divide its picture into blocks and choose one of up to 65,536 groups of five Huffman codes
//! for each of them. The decoder expands all groups before the first pixel, each code into up to 75 kB, while the
//! stream describes a code in some twenty bytes: a file of a few megabytes could take gigabytes. So this module reads
//! a stream up to its first pixel, as RFC 9649 describes it, and adds up what the decoder will allocate.
//!
//! The API does that before it knows whether a file is worth any work, so reading must end within milliseconds. Every
//! loop takes bits from the stream in each round or ends at once, and [`Bits`] limits how often bits are taken.

mod huffman;

use std::ops::Range;

use huffman::{Bits, Code, Lengths, Read, Stop};

use super::webp_chunks::{Chunk, chunks, chunks_of};

/// Maximum side of a lossless picture (3.4).
const MAX_SIDE: u32 = 1 << 14;
/// Maximum number of groups of codes: their numbers have 16 bits (6.2.2).
const MOST_GROUPS: u32 = 1 << 16;
/// The symbols of a group's five codes without a color cache: green samples and lengths of copies, red, blue, alpha,
/// distances of copies.
const ALPHABETS: [usize; 5] = [256 + COPIES, 256, 256, 256, 40];
/// How many lengths of copies there are.
const COPIES: usize = 24;
/// Maximum number of colors in a cache (5.2.3).
const MOST_CACHED: usize = 1 << 11;
/// The order in which the lengths of the codes of code lengths are stored.
const LENGTHS_ORDER: [usize; 19] =
    [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// The decoder's memory per block: a pixel of four bytes, and two more for the number of the group.
const BLOCK_BYTES: u64 = 6;
/// Returns the peak memory, in bytes, that decoding a WebP file takes for Huffman tables, the data of transforms, and
/// the choice of groups; 0 without a lossless stream. `size` is the width and height that the file states.
pub(super) fn bytes(file: &[u8], size: (u32, u32)) -> u64 {
    let find = |name| chunks(file).find(|chunk| chunk.name == name);
    // The decoder also takes a stream from a frame, if it is nowhere else.
    let within = |name| {
        let parts = chunks_of(find(*b"ANMF")?.rest.get(16..)?);
        parts.take(2).find(|part| part.name == name)
    };
    let stream = |name| find(name).or_else(|| within(name));
    stream(*b"VP8L").or_else(|| stream(*b"ALPH")).map_or(0, |chunk| stream_bytes(&chunk, size))
}

/// Returns the most bytes for a stream in a picture of this size.
fn stream_bytes(chunk: &Chunk, size: (u32, u32)) -> u64 {
    let (width, height) = size;
    // The decoder refuses larger ones.
    if width.max(height) > MAX_SIDE {
        return 0;
    }
    let mut stream = Stream::new(chunk.data());
    let read = match (&chunk.name, chunk.data().first()) {
        (b"VP8L", _) => stream.read_picture(size),
        // The first two bits say whether transparency is compressed (2.7.1.2); its stream has no header.
        (b"ALPH", Some(info)) if info & 3 == 1 => {
            stream.bits.at = 8;
            stream.read_until_first_pixel(width, height)
        }
        _ => Ok(()),
    };
    match read {
        Ok(()) | Err(Stop::Broken) => stream.allocated,
        Err(Stop::TooLong) => stream.allocated + stream.ahead,
    }
}

struct Stream<'a> {
    bits: Bits<'a>,
    /// The bytes that the decoder has allocated so far.
    allocated: u64,
    /// Maximum memory that it may allocate for the unread rest, in bytes.
    ahead: u64,
}

impl<'a> Stream<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bits: Bits::new(bytes), allocated: 0, ahead: 0 }
    }

    /// Reads the header, 3.4, and what follows it.
    fn read_picture(&mut self, size: (u32, u32)) -> Read<()> {
        let signature = self.bits.read(8)?;
        let (width, height) = (self.bits.read(14)? + 1, self.bits.read(14)? + 1);
        let _has_alpha = self.bits.read(1)?;
        let version = self.bits.read(3)?;
        if signature != 0x2f || version != 0 || (width, height) != size {
            return Err(Stop::Broken);
        }
        self.read_until_first_pixel(width, height)
    }

    fn read_until_first_pixel(&mut self, mut width: u32, height: u32) -> Read<()> {
        // Two transforms and the choice of groups have data for blocks of at least four pixels.
        let blocks = u64::from(width.div_ceil(4)) * u64::from(height.div_ceil(4));
        self.ahead = 3 * BLOCK_BYTES * blocks + most_bytes(MOST_GROUPS, MOST_CACHED);
        let mut has = [false; 4];
        // Transforms (4) may change the width.
        while self.bits.read_flag()? {
            let transform = self.bits.read(2)?;
            // Each may come once.
            if std::mem::replace(&mut has[transform as usize], true) {
                return Err(Stop::Broken);
            }
            match transform {
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
        for group in 0..groups {
            self.ahead = most_bytes(groups - group, cache);
            for alphabet in alphabets(cache) {
                let lengths = self.read_lengths(alphabet)?;
                self.allocated += lengths.decoder_bytes();
            }
        }
        Ok(())
    }

    /// Reads an image with one pixel per block, and returns the greatest of its pixels.
    fn read_blocks(&mut self, width: u32, height: u32) -> Read<u32> {
        let side = 4 << self.bits.read(3)?;
        let (width, height) = (width.div_ceil(side), height.div_ceil(side));
        self.allocated += BLOCK_BYTES * u64::from(width) * u64::from(height);
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
        let colors = [&green, &red, &blue, &alpha];
        let all_are_equal = colors.iter().all(|code| code.is_single());
        let pixels = u64::from(width) * u64::from(height);
        let (mut left, mut greatest) = (pixels, 0);
        while left > 0 {
            let symbol = green.read(&mut self.bits)?;
            let count = match symbol.checked_sub(256) {
                None => {
                    // The others take up to 45 bits, which are looked up together.
                    let next = self.bits.next();
                    let (value, red) = red.find(next);
                    let (_, blue) = blue.find(next >> red);
                    let (_, alpha) = alpha.find(next >> (red + blue));
                    self.bits.take(red + blue + alpha)?;
                    // Copied and cached colors come from earlier pixels, so only these count.
                    greatest = greatest.max((value << 8) | symbol);
                    if all_are_equal { left } else { 1 }
                }
                // A copy needs an earlier pixel.
                Some(copy) if copy < COPIES as u32 && left == pixels => return Err(Stop::Broken),
                Some(copy) if copy < COPIES as u32 => {
                    let count = self.read_prefixed(copy)?;
                    let distance = distance.read(&mut self.bits)?;
                    self.read_prefixed(distance)?;
                    count.into()
                }
                // The cache stays empty.
                Some(_) if green.is_single() => left,
                Some(_) => 1,
            };
            left = left.checked_sub(count).ok_or(Stop::Broken)?;
        }
        Ok(greatest)
    }

    /// Returns the number of cached colors (5.2.3).
    fn read_color_cache_size(&mut self) -> Read<usize> {
        if !self.bits.read_flag()? {
            return Ok(0);
        }
        match 1 << self.bits.read(4)? {
            colors @ 2..=MOST_CACHED => Ok(colors),
            _ => Err(Stop::Broken),
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
        if let Some((first, second)) = self.read_simple(symbols)? {
            return Ok(Code::simple(first, second));
        }
        let mut lengths = vec![0; symbols];
        self.read_each_length(symbols, |range, length| lengths[range].fill(length))?;
        Code::new(&lengths)
    }

    /// Reads only how long the symbols of a code are: no pixel will be read with it.
    fn read_lengths(&mut self, symbols: usize) -> Read<Lengths> {
        let mut lengths = Lengths::default();
        if let Some((_, second)) = self.read_simple(symbols)? {
            lengths.add(1, 1 + usize::from(second.is_some()));
        } else {
            self.read_each_length(symbols, |range, length| lengths.add(length, range.len()))?;
        }
        lengths.check()
    }

    /// Reads a code of one symbol, or of two with one bit each (6.2.1); `None` if it is another.
    fn read_simple(&mut self, symbols: usize) -> Read<Option<(u32, Option<u32>)>> {
        if !self.bits.read_flag()? {
            return Ok(None);
        }
        let has_two = self.bits.read_flag()?;
        let bits = if self.bits.read_flag()? { 8 } else { 1 };
        let first = self.bits.read(bits)?;
        let second = if has_two { Some(self.bits.read(8)?) } else { None };
        if first.max(second.unwrap_or(0)) as usize >= symbols {
            return Err(Stop::Broken);
        }
        Ok(Some((first, second)))
    }

    /// Reads the lengths of the symbols of a code, of those in a range at a time (6.2.1).
    fn read_each_length(
        &mut self,
        symbols: usize,
        mut set: impl FnMut(Range<usize>, u8),
    ) -> Read<()> {
        let mut lengths_of_lengths = [0; LENGTHS_ORDER.len()];
        let stored = 4 + self.bits.read(4)? as usize;
        for symbol in &LENGTHS_ORDER[..stored] {
            lengths_of_lengths[*symbol] = self.bits.read(3)? as u8;
        }
        let code = Code::new(&lengths_of_lengths)?;
        let mut left = symbols;
        if self.bits.read_flag()? {
            let bits = 2 + 2 * self.bits.read(3)?;
            left = 2 + self.bits.read(bits)? as usize;
            if left > symbols {
                return Err(Stop::Broken);
            }
        }
        let (mut at, mut previous) = (0, 8);
        while left > 0 && at < symbols {
            left -= 1;
            let (length, times) = match code.read(&mut self.bits)? {
                16 => (previous, 3 + self.bits.read(2)? as usize),
                17 => (0, 3 + self.bits.read(3)? as usize),
                18 => (0, 11 + self.bits.read(7)? as usize),
                // All that are left have this length, which takes no bits.
                length if code.is_single() => (length as u8, std::mem::take(&mut left) + 1),
                length => (length as u8, 1),
            };
            let end = at + times;
            if end > symbols {
                return Err(Stop::Broken);
            }
            set(at..end, length);
            at = end;
            if length != 0 {
                previous = length;
            }
        }
        Ok(())
    }
}

const fn alphabets(cache: usize) -> [usize; 5] {
    let mut alphabets = ALPHABETS;
    // Cached colors are symbols of the first code.
    alphabets[0] += cache;
    alphabets
}

/// Returns the maximum memory that the decoder allocates for groups of codes, in bytes.
fn most_bytes(groups: u32, cache: usize) -> u64 {
    u64::from(groups) * alphabets(cache).map(Lengths::most_decoder_bytes).iter().sum::<u64>()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use image::{DynamicImage, ImageFormat, RgbaImage};

    use super::huffman::CODE_BYTES;
    use super::*;
    use crate::decode::Header;
    use crate::{Limits, PixelError};

    /// Writes a lossless stream, the lowest bit first.
    #[derive(Default)]
    struct Writer(Vec<bool>);

    impl Writer {
        fn write(&mut self, value: u32, bits: u32) {
            self.0.extend((0..bits).map(|bit| (value >> bit) & 1 == 1));
        }

        /// Begins a transform with data for each block of four pixels.
        fn transform(&mut self, kind: u32) {
            self.write(1 | (kind << 1), 6);
        }

        /// Writes a code whose only symbol is 0.
        fn zero(&mut self) {
            self.write(0b0001, 4);
        }

        /// Writes a code of an alphabet with one symbol above 255, which takes no bits.
        fn one_symbol(&mut self, symbol: u32, alphabet: u32) {
            // Lengths are 1 (code 0), or 11 and more zeros (code 1).
            self.write(0, 1 + 4);
            for length in [0, 1, 0, 1] {
                self.write(length, 3);
            }
            self.write(0, 1);
            let mut zeros = |count: u32| self.write(1 | ((count - 11) << 1), 8);
            zeros(128);
            zeros(symbol - 128);
            self.write(0, 1);
            let rest = alphabet - symbol - 1;
            if rest > 0 {
                self.write(1 | ((rest - 11) << 1), 8);
            }
        }

        fn bytes(&self) -> Vec<u8> {
            let byte =
                |bits: &[bool]| bits.iter().rev().fold(0, |all, bit| all << 1 | u8::from(*bit));
            self.0.chunks(8).map(byte).collect()
        }
    }

    fn chunk(name: [u8; 4], data: &[u8]) -> Vec<u8> {
        let mut chunk = [&name[..], &(data.len() as u32).to_le_bytes(), data].concat();
        chunk.resize(chunk.len().next_multiple_of(2), 0);
        chunk
    }

    /// Returns a file in the extended format, which has transparency.
    fn extended((width, height): (u32, u32), chunks: &[u8]) -> Vec<u8> {
        let mut header = vec![0x10, 0, 0, 0];
        header.extend_from_slice(&(width - 1).to_le_bytes()[..3]);
        header.extend_from_slice(&(height - 1).to_le_bytes()[..3]);
        let body = [b"WEBP", &chunk(*b"VP8X", &header)[..], chunks].concat();
        chunk(*b"RIFF", &body)
    }

    /// Returns a square file without colors, whose transparency is a lossless stream.
    fn with_alpha(side: u32, stream: &Writer) -> Vec<u8> {
        let alpha = chunk(*b"ALPH", &[&[1], &stream.bytes()[..]].concat());
        extended((side, side), &[chunk(*b"VP8 ", &[]), alpha].concat())
    }

    /// Pictures of the reference encoder: one with predictors, color transform, color cache and several groups, one
    /// with a palette, and a lossy one with compressed transparency.
    const FILES: [(&str, &[u8]); 3] = [
        ("photo", include_bytes!("../../tests/webp/photo.webp")),
        ("palette", include_bytes!("../../tests/webp/palette.webp")),
        ("transparency", include_bytes!("../../tests/webp/transparency.webp")),
    ];

    /// Reads the stream of a still picture, which must not stop before the first pixel.
    fn read(file: &[u8]) -> Option<u64> {
        let picture = image::load_from_memory(file).expect("it decodes");
        let size = (picture.width(), picture.height());
        let chunk = chunks(file).find(|chunk| matches!(&chunk.name, b"VP8L" | b"ALPH"))?;
        let mut stream = Stream::new(chunk.data());
        let read = if &chunk.name == b"VP8L" {
            stream.read_picture(size)
        } else {
            stream.bits.at = 8;
            stream.read_until_first_pixel(size.0, size.1)
        };
        read.ok().map(|()| stream.allocated)
    }

    /// Returns the bytes of tables that are added to the header.
    fn counted(file: &[u8]) -> u64 {
        let picture = image::load_from_memory(file).expect("it decodes");
        bytes(file, (picture.width(), picture.height()))
    }

    #[test]
    fn ordinary_streams_are_understood_up_to_the_first_pixel() {
        for (name, file) in FILES {
            let found = read(file).expect(name);
            assert!((1_000..2_000_000).contains(&found), "{name}: {found}");
            assert_eq!(counted(file), found, "{name}");
        }
        let mut file = std::io::Cursor::new(Vec::new());
        let picture =
            RgbaImage::from_fn(64, 64, |x, y| image::Rgba([x as u8, y as u8, 9, x as u8]));
        DynamicImage::ImageRgba8(picture).write_to(&mut file, ImageFormat::WebP).unwrap();
        assert!(read(file.get_ref()).is_some());
    }

    /// Reads headers on a thread, so that a test can stop waiting.
    fn read_within(time: Duration, file: Vec<u8>) -> Result<Header, PixelError> {
        let (sender, receiver) = mpsc::channel();
        let any_size = Limits { max_dimension: u32::MAX };
        thread::spawn(move || sender.send(Header::read(&file, &any_size)));
        receiver.recv_timeout(time).expect("it takes too long")
    }

    #[test]
    fn a_stream_that_takes_no_bits_ends_at_once() {
        // All pixels are copies of one pixel, or come from the cache.
        for (cache, symbol) in [(0, 256), (4, 281)] {
            let mut stream = Writer::default();
            for kind in [0, 1] {
                stream.transform(kind);
                if cache > 0 {
                    stream.write(1 | (cache << 1), 5);
                } else {
                    stream.write(0, 1);
                }
                stream.one_symbol(symbol, 280 + if cache > 0 { 1 << cache } else { 0 });
                (0..4).for_each(|_| stream.zero());
            }
            for side in [16_384, 65_535] {
                let read = read_within(Duration::from_secs(1), with_alpha(side, &stream));
                assert!(read.is_ok(), "symbol {symbol}, side {side}: {read:?}");
            }
        }
    }

    #[test]
    fn a_transform_that_comes_again_breaks_the_stream() {
        let mut stream = Writer::default();
        for _ in 0..400_000 {
            stream.transform(1);
            stream.write(0, 1);
            (0..5).for_each(|_| stream.zero());
        }
        let file = with_alpha(16_000, &stream);
        let counted = bytes(&file, (16_000, 16_000));
        assert_eq!(counted, BLOCK_BYTES * 4000 * 4000, "one transform");
    }

    #[test]
    fn reading_ends_within_milliseconds_and_the_rest_counts_as_the_most() {
        let mut stream = Writer::default();
        // No transforms and no cache. All blocks have the last group.
        stream.write(0, 2);
        stream.write(1, 4);
        stream.write(0, 1);
        (0..2).for_each(|_| stream.write(0b101 | (0xff << 3), 11));
        (0..3).for_each(|_| stream.zero());
        for _ in 0..5 * MOST_GROUPS {
            stream.zero();
        }
        let file = with_alpha(1000, &stream);
        let times = (0..5).map(|_| {
            let started = Instant::now();
            let counted = bytes(&file, (1000, 1000));
            (started.elapsed(), counted)
        });
        // The shortest, because the machine may be busy.
        let (took, counted) = times.min().unwrap();
        assert!(took < Duration::from_millis(100), "{took:?}");
        let all = u64::from(5 * MOST_GROUPS) * CODE_BYTES;
        assert!(counted > all && counted < most_bytes(MOST_GROUPS, 0), "{counted}");
    }

    #[test]
    fn the_stream_counts_that_the_decoder_takes() {
        let (_, photo) = FILES[0];
        let expected = counted(photo);
        let picture = image::load_from_memory(photo).unwrap();
        let size = (picture.width(), picture.height());
        let stream = &photo[12..];
        let frame = |stream: &[u8]| chunk(*b"ANMF", &[&[0; 16], stream].concat());
        let other = chunk(*b"VP8 ", &[0; 8]);
        // The first that is not in a frame, or else one in the first frame.
        let behind = extended(size, &[&frame(&other)[..], stream].concat());
        assert_eq!(bytes(&behind, size), expected);
        let within = extended(size, &[other, frame(stream)].concat());
        assert_eq!(bytes(&within, size), expected);
    }

    #[test]
    fn a_broken_stream_counts_up_to_the_break() {
        let (_, photo) = FILES[0];
        let whole = counted(photo);
        let size = image::load_from_memory(photo).expect("it decodes");
        let size = (size.width(), size.height());
        let cut = |end: usize| bytes(&photo[..end], size);
        let counted: Vec<_> = (0..photo.len()).step_by(7).map(cut).collect();
        assert!(
            counted.is_sorted() && counted.first() == Some(&0) && counted.last() == Some(&whole)
        );
    }
}
