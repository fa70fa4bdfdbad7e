//! Filters the rows of a PNG: each with the filter whose output has the smallest sum of absolute values (PNG, third edition,
//! 12.7). Cutouts are transparent in large parts, where every filter returns zeros, so those parts are left out.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod window;

use std::ops::Range;

use self::window::{KINDS, Window};
use crate::span::span;

pub(super) struct RowFilter {
    /// The distance in bytes from a sample to the same sample of the pixel on its left.
    distance: usize,
    /// The row above, after one pixel of zeros.
    above: Vec<u8>,
    /// The part of it that is not zero.
    above_span: Range<usize>,
    /// The row, after one pixel of zeros.
    row: Vec<u8>,
    /// The number of the filter, and the row's filtered bytes.
    filtered: Vec<u8>,
}

impl RowFilter {
    /// Starts a picture with rows of `length` bytes and pixels of `distance` bytes.
    pub(super) fn new(length: usize, distance: usize) -> Self {
        let row = vec![0; distance + length];
        let filtered = vec![0; 1 + length];
        Self { distance, above: row.clone(), above_span: 0..0, row, filtered }
    }

    /// Returns the length of a row in bytes.
    pub(super) const fn length(&self) -> usize {
        self.filtered.len() - 1
    }

    /// Returns the number of the chosen filter, and the filtered bytes of the next row.
    pub(super) fn filter(&mut self, row: &[u8]) -> &[u8] {
        let Self { distance, above, above_span, row: own, filtered } = self;
        own[*distance..].copy_from_slice(row);
        let span = span(row);
        let spans = [&span, &*above_span].into_iter().filter(|span| !span.is_empty());
        let start = spans.clone().map(|span| span.start).min().unwrap_or(0);
        // The pixel to the right of a span has it on its left.
        let end = spans.map(|span| span.end + *distance).max().unwrap_or(0);
        let end = end.min(row.len());
        let window = Window {
            here: &own[start + *distance..end + *distance],
            left: &own[start..end],
            above: &above[start + *distance..end + *distance],
            corner: &above[start..end],
        };
        let sums = sums(window);
        let kind = (0..KINDS).min_by_key(|kind| sums[*kind]).unwrap_or(0);
        filtered[0] = kind as u8;
        filtered[1..][..start].fill(0);
        filter(window, kind, &mut filtered[1..][start..end]);
        filtered[1..][end..].fill(0);
        std::mem::swap(above, own);
        *above_span = span;
        filtered
    }
}

/// Returns the sum of absolute values that each filter would return, as signed bytes.
fn sums(window: Window<'_>) -> [u64; KINDS] {
    let (mut sums, rest) = sums_of_vectors(window);
    for at in 0..rest.here.len() {
        for (kind, sum) in sums.iter_mut().enumerate() {
            *sum += u64::from((rest.filtered(kind, at) as i8).unsigned_abs());
        }
    }
    sums
}

fn filter(window: Window<'_>, kind: usize, out: &mut [u8]) {
    let (done, rest) = filter_vectors(window, kind, out);
    for (at, out) in out[done..].iter_mut().enumerate() {
        *out = rest.filtered(kind, at);
    }
}

/// Returns the sums of as many bytes as vectors hold, and the rest of the window.
fn sums_of_vectors(window: Window<'_>) -> ([u64; KINDS], Window<'_>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return avx2::sums(simd, window);
    }
    ([0; KINDS], window)
}

/// Filters as many bytes as vectors hold, and returns their number and the rest of the window.
fn filter_vectors<'a>(window: Window<'a>, kind: usize, out: &mut [u8]) -> (usize, Window<'a>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return avx2::filter(simd, window, kind, out);
    }
    let _ = (kind, out);
    (0, window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_predict_exactly_as_single_bytes_do() {
        // Every pair of a left and an upper byte, with many corners.
        let mut noise = 7_u32;
        let mut bytes = |count: usize| -> Vec<u8> {
            (0..count)
                .map(|_| {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (noise >> 24) as u8
                })
                .collect()
        };
        let count = 1 << 16;
        let left: Vec<u8> = (0..count).map(|at| at as u8).collect();
        let above: Vec<u8> = (0..count).map(|at| (at >> 8) as u8).collect();
        for corner in [bytes(count), left.clone(), above.clone(), vec![0; count]] {
            let here = bytes(count);
            for length in [count, 31, 32, 33, 0] {
                let window = Window {
                    here: &here[..length],
                    left: &left[..length],
                    above: &above[..length],
                    corner: &corner[..length],
                };
                let sums = sums(window);
                for (kind, found) in sums.into_iter().enumerate() {
                    let expected: Vec<u8> =
                        (0..length).map(|at| window.filtered(kind, at)).collect();
                    let mut out = vec![0; length];
                    filter(window, kind, &mut out);
                    assert!(out == expected, "filter {kind}");
                    let sum: u64 =
                        expected.iter().map(|byte| u64::from((*byte as i8).unsigned_abs())).sum();
                    assert_eq!(found, sum, "filter {kind}");
                }
            }
        }
    }
}
