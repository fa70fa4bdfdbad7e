//! The horizontal pass in AVX2 instructions, eight pixels at a time, because compilers find no good ones for three channels.
//!
//! A weight has up to 23 bits, and the fastest multiplication takes 16. So every weight is split into a coarse part and a
//! fine one, and both sums stay exact.

use bytemuck::cast;
use pulp::NullaryFnOnce;
use pulp::x86::V3;
use std::arch::x86_64::{__m128i, __m256i};

use super::taps::{FRACTION_BITS, HALF, Taps};

/// The bits of the fine part, which must be positive in 16 bits.
const FINE_BITS: u32 = 15;
const BLOCK: usize = 8;

/// Byte positions of two pixels in a lane of 16 bytes, interleaved: R, R, G, G, B, B, each widened to 16 bits by a zero.
const fn pairs(first: u8) -> [u8; 16] {
    const ZERO: u8 = 0x80;
    let [r, g, b] = [first, first + 1, first + 2];
    [r, ZERO, r + 3, ZERO, g, ZERO, g + 3, ZERO, b, ZERO, b + 3, ZERO, ZERO, ZERO, ZERO, ZERO]
}

/// Where the pixels 0, 1, 4 and 5 of a block lie when its bytes 0 to 15 and 8 to 23 are the two lanes, and then the
/// pixels 2, 3, 6 and 7.
const PAIRS: [[[u8; 16]; 2]; 2] = [[pairs(0), pairs(4)], [pairs(6), pairs(10)]];

/// The weights of a block, in the order of its shuffled pixels.
#[derive(Clone, Copy, Default)]
struct Block {
    fine: [[i16; 16]; 2],
    coarse: [[i16; 16]; 2],
}

impl Block {
    fn set(&mut self, pixel: usize, weight: i32) {
        // Of every four pixels, two are shuffled at once.
        let (half, lane, place) = (pixel % 4 / 2, pixel / 4, pixel % 2);
        for channel in 0..3 {
            let at = lane * 8 + channel * 2 + place;
            self.fine[half][at] = (weight & ((1 << FINE_BITS) - 1)) as i16;
            self.coarse[half][at] = (weight >> FINE_BITS) as i16;
        }
    }
}

/// The weights of a row of output samples, in blocks.
pub(super) struct Windows {
    simd: V3,
    /// The first pixel of the first block of each output sample.
    firsts: Vec<usize>,
    /// Blocks per output sample.
    count: usize,
    blocks: Vec<Block>,
}

impl Windows {
    /// Arranges the weights for rows of `width` pixels; `None` if the machine has no AVX2, or the rows are shorter than
    /// what an output sample reads.
    pub(super) fn new(width: usize, taps: &[Taps]) -> Option<Self> {
        let simd = V3::try_new()?;
        let count = taps.iter().map(|taps| taps.weights.len()).max()?.div_ceil(BLOCK);
        let last = width.checked_sub(count * BLOCK)?;
        let mut blocks = vec![Block::default(); taps.len() * count];
        let mut firsts = Vec::with_capacity(taps.len());
        for (taps, blocks) in taps.iter().zip(blocks.chunks_exact_mut(count)) {
            let first = taps.first.min(last);
            for (pixel, weight) in (taps.first - first..).zip(&taps.weights) {
                blocks[pixel / BLOCK].set(pixel % BLOCK, *weight);
            }
            firsts.push(first);
        }
        Some(Self { simd, firsts, count, blocks })
    }

    /// Resizes a row of R, G, B.
    pub(super) fn resize(&self, row: &[u8], out: &mut [u8]) {
        self.simd.vectorize(HorizontalPass { windows: self, row, out });
    }
}

struct HorizontalPass<'a> {
    windows: &'a Windows,
    row: &'a [u8],
    out: &'a mut [u8],
}

impl NullaryFnOnce for HorizontalPass<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { windows, row, out } = self;
        let V3 { sse2, sse4_1, avx, avx2, .. } = windows.simd;
        let pairs: [__m256i; 2] = cast(PAIRS);
        let zero = avx._mm256_setzero_si256();
        let blocks = windows.blocks.chunks_exact(windows.count);
        for ((out, first), blocks) in
            out.as_chunks_mut().0.iter_mut().zip(&windows.firsts).zip(blocks)
        {
            let (mut fine, mut coarse) = (zero, zero);
            for (pixels, block) in
                row[first * 3..].as_chunks::<{ 3 * BLOCK }>().0.iter().zip(blocks)
            {
                let (Some(low), Some(high)) =
                    (pixels.first_chunk::<16>(), pixels.last_chunk::<16>())
                else {
                    return;
                };
                let pixels: __m256i = cast([*low, *high]);
                for (pairs, (of_fine, of_coarse)) in
                    pairs.into_iter().zip(block.fine.iter().zip(&block.coarse))
                {
                    let samples = avx2._mm256_shuffle_epi8(pixels, pairs);
                    let product = avx2._mm256_madd_epi16(samples, cast(*of_fine));
                    fine = avx2._mm256_add_epi32(fine, product);
                    let product = avx2._mm256_madd_epi16(samples, cast(*of_coarse));
                    coarse = avx2._mm256_add_epi32(coarse, product);
                }
            }
            let coarse = avx2._mm256_slli_epi32::<{ FINE_BITS as i32 }>(coarse);
            let [left, right]: [__m128i; 2] = cast(avx2._mm256_add_epi32(fine, coarse));
            let sum = sse2._mm_add_epi32(left, right);
            let sum = sse2._mm_add_epi32(sum, sse2._mm_set1_epi32(HALF));
            let samples = sse2._mm_srai_epi32::<{ FRACTION_BITS as i32 }>(sum);
            let samples = sse4_1._mm_packus_epi32(samples, samples);
            let samples: [u8; 16] = cast(sse2._mm_packus_epi16(samples, samples));
            *out = [samples[0], samples[1], samples[2]];
        }
    }
}
