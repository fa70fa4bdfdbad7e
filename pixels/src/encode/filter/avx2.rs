//! The filters in AVX2 instructions, 32 bytes at a time.

use std::arch::x86_64::__m256i;

use bytemuck::cast;
use pulp::NullaryFnOnce;
use pulp::x86::V3;

use super::window::{KINDS, Window};

/// Bytes in a vector.
const LANES: usize = 32;

/// Returns the sum of each filter over the whole vectors of a window, and the rest of it.
pub(super) fn sums(simd: V3, window: Window<'_>) -> ([u64; KINDS], Window<'_>) {
    let (vectors, rest) = split(window);
    (simd.vectorize(Sums { simd, vectors }), rest)
}

/// Filters the whole vectors of a window, and returns the number of bytes and the rest of the window.
pub(super) fn filter<'a>(
    simd: V3,
    window: Window<'a>,
    kind: usize,
    out: &mut [u8],
) -> (usize, Window<'a>) {
    let (vectors, rest) = split(window);
    let done = vectors.here.len() * LANES;
    let out = out.as_chunks_mut().0;
    match kind {
        0 => simd.vectorize(Filter::<0> { simd, vectors, out }),
        1 => simd.vectorize(Filter::<1> { simd, vectors, out }),
        2 => simd.vectorize(Filter::<2> { simd, vectors, out }),
        3 => simd.vectorize(Filter::<3> { simd, vectors, out }),
        _ => simd.vectorize(Filter::<4> { simd, vectors, out }),
    }
    (done, rest)
}

/// A window in whole vectors.
#[derive(Clone, Copy)]
struct Vectors<'a> {
    here: &'a [[u8; LANES]],
    left: &'a [[u8; LANES]],
    above: &'a [[u8; LANES]],
    corner: &'a [[u8; LANES]],
}

fn split(window: Window<'_>) -> (Vectors<'_>, Window<'_>) {
    let (here, rest_here) = window.here.as_chunks();
    let (left, rest_left) = window.left.as_chunks();
    let (above, rest_above) = window.above.as_chunks();
    let (corner, rest_corner) = window.corner.as_chunks();
    let rest = Window { here: rest_here, left: rest_left, above: rest_above, corner: rest_corner };
    (Vectors { here, left, above, corner }, rest)
}

impl<'a> Vectors<'a> {
    #[inline(always)]
    fn iter(self) -> impl Iterator<Item = [__m256i; 4]> + 'a {
        let neighbors = self.left.iter().zip(self.above).zip(self.corner);
        self.here.iter().zip(neighbors).map(|(here, ((left, above), corner))| {
            [cast(*here), cast(*left), cast(*above), cast(*corner)]
        })
    }
}

/// Returns what each filter predicts.
#[inline(always)]
fn predictions(simd: V3, left: __m256i, above: __m256i, corner: __m256i) -> [__m256i; KINDS] {
    let V3 { avx, avx2, .. } = simd;
    // The instruction rounds up.
    let odd = avx2._mm256_and_si256(avx2._mm256_xor_si256(left, above), avx._mm256_set1_epi8(1));
    let average = avx2._mm256_sub_epi8(avx2._mm256_avg_epu8(left, above), odd);
    [avx._mm256_setzero_si256(), left, above, average, paeth(simd, left, above, corner)]
}

/// The Paeth predictor without widening: the distance from the corner is the sum of both others if both neighbors lie on
/// the same side of the corner, otherwise their difference. A sum above 255 counts as 255, which is still not below the
/// others.
#[inline(always)]
fn paeth(simd: V3, left: __m256i, above: __m256i, corner: __m256i) -> __m256i {
    let avx2 = simd.avx2;
    let distance =
        |a, b| avx2._mm256_or_si256(avx2._mm256_subs_epu8(a, b), avx2._mm256_subs_epu8(b, a));
    let is_at_most = |a, b| avx2._mm256_cmpeq_epi8(avx2._mm256_min_epu8(a, b), a);
    let (of_left, of_above) = (distance(above, corner), distance(left, corner));
    let differ = avx2._mm256_xor_si256(is_at_most(corner, left), is_at_most(corner, above));
    let of_corner = avx2._mm256_blendv_epi8(
        avx2._mm256_adds_epu8(of_left, of_above),
        distance(of_left, of_above),
        differ,
    );
    let least = avx2._mm256_min_epu8(of_above, of_corner);
    let second = avx2._mm256_blendv_epi8(corner, above, is_at_most(of_above, of_corner));
    avx2._mm256_blendv_epi8(second, left, is_at_most(of_left, least))
}

struct Sums<'a> {
    simd: V3,
    vectors: Vectors<'a>,
}

impl NullaryFnOnce for Sums<'_> {
    type Output = [u64; KINDS];

    #[inline(always)]
    fn call(self) -> Self::Output {
        let Self { simd, vectors } = self;
        let V3 { avx, avx2, .. } = simd;
        let zero = avx._mm256_setzero_si256();
        let mut sums = [zero; KINDS];
        for [here, left, above, corner] in vectors.iter() {
            let predictions = predictions(simd, left, above, corner);
            for (sum, prediction) in sums.iter_mut().zip(predictions) {
                let filtered = avx2._mm256_sub_epi8(here, prediction);
                let absolute = avx2._mm256_abs_epi8(filtered);
                *sum = avx2._mm256_add_epi64(*sum, avx2._mm256_sad_epu8(absolute, zero));
            }
        }
        sums.map(|sum| cast::<__m256i, [u64; 4]>(sum).into_iter().sum())
    }
}

struct Filter<'a, const KIND: usize> {
    simd: V3,
    vectors: Vectors<'a>,
    out: &'a mut [[u8; LANES]],
}

impl<const KIND: usize> NullaryFnOnce for Filter<'_, KIND> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, vectors, out } = self;
        for (out, [here, left, above, corner]) in out.iter_mut().zip(vectors.iter()) {
            let prediction = predictions(simd, left, above, corner)[KIND];
            *out = cast(simd.avx2._mm256_sub_epi8(here, prediction));
        }
    }
}
