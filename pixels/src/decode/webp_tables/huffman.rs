//! The bits of a lossless WebP, and its Huffman codes (RFC 9649, 6.2).

/// Why reading ends before the first pixel.
pub(super) enum Stop {
    /// The stream ends or breaks its rules. The decoder stops there too, so nothing that it allocates comes later.
    Broken,
    /// The stream describes more than this reads. The decoder continues.
    TooLong,
}

pub(super) type Read<T> = Result<T, Stop>;

/// Maximum number of reads from a stream. The reference encoder needs 400,000 up to the codes and 540,000 in all, for a
/// photo of 36 megapixels at its best compression. The worst stream that was found takes 18 ns for each.
const MOST_STEPS: u32 = 800_000;
const LONGEST_CODE: usize = 15;
/// Codes up to this length are looked up in a table, longer ones in a tree.
const LONGEST_IN_TABLE: usize = 10;
/// The decoder's memory per code: the vectors themselves, twice while the list of groups grows.
pub(super) const CODE_BYTES: u64 = 160;
/// The decoder's memory per symbol in the tree: two nodes of 16 bytes.
const TREE_BYTES: u64 = 32;

/// Reads bits, the lowest of each byte first.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// The number of bits that were taken.
    pub(super) at: usize,
    /// How often bits were taken.
    steps: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, steps: 0 }
    }

    /// Returns the next bits, at least 57; zeros behind the end.
    pub(super) fn next(&self) -> u64 {
        let bytes = self.bytes.get(self.at / 8..).unwrap_or_default();
        let next = bytes.first_chunk().map_or_else(
            || bytes.iter().rev().fold(0, |next, byte| (next << 8) | u64::from(*byte)),
            |bytes| u64::from_le_bytes(*bytes),
        );
        next >> (self.at % 8)
    }

    pub(super) fn take(&mut self, bits: u32) -> Read<()> {
        self.at += bits as usize;
        self.steps += u32::from(bits > 0);
        if self.at > 8 * self.bytes.len() {
            Err(Stop::Broken)
        } else if self.steps > MOST_STEPS {
            Err(Stop::TooLong)
        } else {
            Ok(())
        }
    }

    /// Reads a number of up to 24 bits.
    pub(super) fn read(&mut self, bits: u32) -> Read<u32> {
        let number = self.next() & ((1 << bits) - 1);
        self.take(bits)?;
        Ok(number as u32)
    }

    pub(super) fn read_flag(&mut self) -> Read<bool> {
        Ok(self.read(1)? == 1)
    }
}

/// How many symbols of a canonical Huffman code have each length; symbols of length 0 do not occur.
#[derive(Default)]
pub(super) struct Lengths([usize; LONGEST_CODE + 1]);

impl Lengths {
    pub(super) fn add(&mut self, length: u8, symbols: usize) {
        self.0[usize::from(length)] += symbols;
    }

    /// Returns these lengths if they make a code.
    pub(super) fn check(mut self) -> Read<Self> {
        self.0[0] = 0;
        // The shares of all codes in the space of codes, in units of the longest.
        let full = 1 << LONGEST_CODE;
        let used: usize =
            (1..).zip(&self.0[1..]).map(|(length, count)| count * (full >> length)).sum();
        if self.is_single() || used == full { Ok(self) } else { Err(Stop::Broken) }
    }

    /// Returns whether there is only one symbol, which takes no bits.
    pub(super) fn is_single(&self) -> bool {
        self.0.iter().sum::<usize>() == 1
    }

    fn longest(&self) -> usize {
        self.0.iter().rposition(|count| *count > 0).unwrap_or(0)
    }

    /// Returns the maximum memory that the decoder allocates for a code of this many symbols.
    pub(super) const fn most_decoder_bytes(symbols: usize) -> u64 {
        CODE_BYTES + (4 << LONGEST_IN_TABLE) + TREE_BYTES * symbols as u64
    }

    /// Returns what the decoder allocates for this code: a table of four bytes for each value of as many bits as the
    /// longest code has, and for codes that are longer than the table a tree.
    pub(super) fn decoder_bytes(&self) -> u64 {
        if self.is_single() {
            return CODE_BYTES;
        }
        let in_tree: usize = self.0[LONGEST_IN_TABLE + 1..].iter().sum();
        CODE_BYTES + (4 << self.longest().min(LONGEST_IN_TABLE)) + TREE_BYTES * in_tree as u64
    }
}

/// A Huffman code: for each value of as many bits as the longest has, a symbol (12 bits) and the bits that it takes (4).
pub(super) struct Code(Vec<u16>);

impl Code {
    /// One symbol, or two with one bit each.
    pub(super) fn simple(first: u32, second: Option<u32>) -> Self {
        let bits = u16::from(second.is_some());
        Self(
            [Some(first), second]
                .iter()
                .flatten()
                .map(|symbol| ((*symbol as u16) << 4) | bits)
                .collect(),
        )
    }

    /// The canonical code with a length for each symbol; 0 for those that do not occur.
    pub(super) fn new(of_symbols: &[u8]) -> Read<Self> {
        let mut lengths = Lengths::default();
        for length in of_symbols {
            lengths.add(*length, 1);
        }
        let lengths = lengths.check()?;
        let symbols = || (0..).zip(of_symbols).filter(|(_, length)| **length > 0);
        if lengths.is_single() {
            return Ok(Self(symbols().map(|(symbol, _): (u16, _)| symbol << 4).collect()));
        }
        // The next code of each length.
        let mut next = [0_u16; LONGEST_CODE + 1];
        for length in 1..=LONGEST_CODE {
            next[length] = (next[length - 1] + lengths.0[length - 1] as u16) << 1;
        }
        let mut values = vec![0; 1 << lengths.longest()];
        for (symbol, length) in symbols() {
            let length = u16::from(*length);
            let code = &mut next[usize::from(length)];
            // The first bit of a code is the lowest.
            let first = usize::from(code.reverse_bits() >> (16 - length));
            *code += 1;
            values[first..]
                .iter_mut()
                .step_by(1 << length)
                .for_each(|value| *value = (symbol << 4) | length);
        }
        Ok(Self(values))
    }

    /// Returns whether there is only one symbol, which takes no bits.
    pub(super) fn is_single(&self) -> bool {
        self.0.len() == 1
    }

    /// Returns the symbol that these bits begin with, and how many of them it takes.
    pub(super) fn find(&self, bits: u64) -> (u32, u32) {
        let value = u32::from(self.0[bits as usize & (self.0.len() - 1)]);
        (value >> 4, value & 15)
    }

    pub(super) fn read(&self, bits: &mut Bits) -> Read<u32> {
        let (symbol, length) = self.find(bits.next());
        bits.take(length)?;
        Ok(symbol)
    }
}
