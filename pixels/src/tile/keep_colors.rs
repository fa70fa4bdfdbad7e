//! Gives an enlarged picture the colors of the original.
//!
//! Upscalers shift colors. The compact net of Real-ESRGAN makes a flat gray of 224 six levels brighter, and the shift
//! depends on the surroundings, so no curve undoes it. The **drift** does: the original minus the mean of the
//! output pixels that show the same place. Near edges the drift tells how the net draws edges, which is its task; in
//! flat places it tells the shift. So the drift is averaged with weights that favor flat places, and added.

use std::ops::Range;

use ndarray::{Array4, ArrayRef4};
use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

use crate::PixelError;
use crate::rounding::to_byte;

/// How far the average reaches in one pass, in input pixels. Two passes reach twice as far and have no corners. A longer
/// reach keeps less of the noise that the net removed, but follows the shift less closely, and costs padding.
const RADIUS: usize = 2;

/// How far around a pixel its correction looks, in input pixels: two passes, and the interpolation.
pub const COLOR_REACH: u32 = 2 * RADIUS as u32 + 1;

/// Rows of input pixels that one task corrects. It interpolates one more on each side.
const BAND_ROWS: usize = 16;

/// The range of samples around a pixel that halves its weight, in 0..=255.
const BUSY: f32 = 32.0;

/// The weight of a pixel in a flat place. With scales up to 8, the sums of two passes fit into 32 bits.
const FLAT: f32 = 64.0;

/// The weighted drift of R, G and B, as sums of an output block, and the weight. Integers, so that the sums of a window
/// do not depend on where it starts: tiles match to the bit.
type Weighted = [i32; 4];

/// What must be added to the output of an upscaler to give it the colors of its input.
///
/// Looks only at a window of columns and rows, in input pixels: outside it the net saw the border of its input. The
/// corrections of windows that overlap agree [`COLOR_REACH`] away from their borders.
pub struct Correction<'a> {
    output: &'a [u8],
    tile: Tile,
    /// For each pixel of the window. `None` for a net of scale 1, which may be meant to change colors.
    drift: Option<Vec<[f32; 3]>>,
}

impl<'a> Correction<'a> {
    /// Compares the output of an upscaler, bytes `[1, h * scale, w * scale, 3]`, with its input, bytes `[1, h, w, 3]`.
    ///
    /// # Errors
    /// [`PixelError::InvalidOutput`] if the output has another shape or is not contiguous.
    pub fn new(
        output: &'a ArrayRef4<u8>,
        input: &Array4<u8>,
        scale: u32,
        (columns, rows): (Range<u32>, Range<u32>),
    ) -> Result<Self, PixelError> {
        let (scale, (_, height, width, _)) = (scale as usize, input.dim());
        let invalid =
            || PixelError::InvalidOutput(format!("it has the shape {:?}", output.shape()));
        if output.dim() != (1, height * scale, width * scale, 3) {
            return Err(invalid());
        }
        let (Some(samples), Some(input)) = (output.as_slice(), input.as_slice()) else {
            return Err(invalid());
        };
        let [columns, rows] = [columns, rows].map(|it| it.start as usize..it.end as usize);
        let tile = Tile { width, scale, columns, rows };
        let drift = (scale > 1).then(|| tile.mean_drift(samples, input.as_chunks().0));
        Ok(Self { output: samples, tile, drift })
    }

    /// Returns the corrected output of a part of the window, in input pixels: R, G and B of every pixel.
    pub fn corrected(&self, columns: Range<u32>, rows: Range<u32>) -> Vec<u8> {
        let Tile { width, scale, .. } = self.tile;
        let [columns, rows] = [columns, rows].map(|it| it.start as usize..it.end as usize);
        let stride = columns.len() * scale * 3;
        let mut corrected = vec![0; rows.len() * scale * stride];
        let bands = corrected.par_chunks_mut((BAND_ROWS * scale * stride).max(1)).enumerate();
        bands.for_each(|(at, band)| {
            let rows =
                rows.start + at * BAND_ROWS..(rows.start + (at + 1) * BAND_ROWS).min(rows.end);
            let first = (rows.start * scale * width + columns.start) * scale * 3;
            let output = self.output[first..].chunks(width * scale * 3).map(|line| &line[..stride]);
            let lines = output.zip(band.chunks_exact_mut(stride));
            match &self.drift {
                Some(drift) => self.tile.add_enlarged(lines, columns.clone(), rows, drift),
                None => lines.for_each(|(output, line)| line.copy_from_slice(output)),
            }
        });
        corrected
    }
}

/// The part of a tile that is corrected, in input pixels.
struct Tile {
    width: usize,
    scale: usize,
    columns: Range<usize>,
    rows: Range<usize>,
}

impl Tile {
    /// Returns the drift of every pixel of the window, averaged over its surroundings, in levels of 255.
    fn mean_drift(&self, output: &[u8], input: &[[u8; 3]]) -> Vec<[f32; 3]> {
        let mut drift = self.weighted_drift(output, input);
        for _ in 0..2 {
            sum_along_rows(&mut drift, self.columns.len());
            sum_along_columns(&mut drift, self.columns.len());
        }
        // Sums of drifts by sums of weights: outside the window, both are zero.
        let samples = (self.scale * self.scale) as f32;
        drift
            .into_par_iter()
            .map(|[r, g, b, weight]| {
                [r, g, b].map(|drift| drift as f32 / (weight as f32 * samples))
            })
            .collect()
    }

    /// Returns the output of one input row of the window.
    fn window<'a>(&self, output: &'a [u8], row: usize) -> impl Iterator<Item = &'a [u8]> {
        let Self { width, scale, .. } = *self;
        let columns = self.columns.start * scale * 3..self.columns.end * scale * 3;
        let block = &output[row * scale * scale * width * 3..][..scale * scale * width * 3];
        block.chunks_exact(width * scale * 3).map(move |line| &line[columns.clone()])
    }

    /// Returns the drift of every pixel of the window.
    fn weighted_drift(&self, output: &[u8], input: &[[u8; 3]]) -> Vec<Weighted> {
        let Self { width, scale, .. } = *self;
        let height = input.len() / width;
        let samples = (scale * scale) as i32;
        let mut drift = vec![[0; 4]; self.columns.len() * self.rows.len()];
        let rows = drift.par_chunks_mut(self.columns.len()).zip(self.rows.clone());
        rows.for_each(|(drift, y)| {
            // Down, which compilers vectorize, then across.
            let mut down = vec![0_u16; drift.len() * scale * 3];
            for line in self.window(output, y) {
                down.iter_mut().zip(line).for_each(|(sum, sample)| *sum += u16::from(*sample));
            }
            let sums = down.chunks_exact(scale * 3).map(|pixels| {
                let pixels = pixels.as_chunks::<3>().0.iter();
                pixels.fold([0_i32; 3], |sum, pixel| {
                    std::array::from_fn(|channel| sum[channel] + i32::from(pixel[channel]))
                })
            });
            let around = y.saturating_sub(1)..(y + 2).min(height);
            // One more on each side, where there is one.
            let left = self.columns.start.saturating_sub(1);
            let wide = left..(self.columns.end + 1).min(width);
            let (mut least, mut largest) = (vec![u8::MAX; wide.len() * 3], vec![0; wide.len() * 3]);
            for row in around.map(|y| input[y * width..][wide.clone()].as_flattened()) {
                least
                    .iter_mut()
                    .zip(row)
                    .for_each(|(least, sample)| *least = (*least).min(*sample));
                largest.iter_mut().zip(row).for_each(|(most, sample)| *most = (*most).max(*sample));
            }
            let (least, largest) = (least.as_chunks::<3>().0, largest.as_chunks::<3>().0);
            for ((drift, sum), x) in drift.iter_mut().zip(sums).zip(self.columns.clone()) {
                let near = (x - left).saturating_sub(1)..(x - left + 2).min(least.len());
                let least =
                    least[near.clone()].iter().fold([u8::MAX; 3], |a, b| each(a, *b, u8::min));
                let largest = largest[near].iter().fold([0; 3], |a, b| each(a, *b, u8::max));
                let range = largest.iter().zip(least).map(|(largest, least)| largest - least).max();
                let busy = f32::from(range.unwrap_or(0)) / BUSY;
                let weight = (FLAT / (1.0 + busy * busy) + 0.5) as i32;
                let own = input[y * width + x];
                for channel in 0..3 {
                    drift[channel] = weight * (i32::from(own[channel]) * samples - sum[channel]);
                }
                drift[3] = weight;
            }
        });
        drift
    }

    /// Adds the drift, interpolated between the centers of input pixels, to the output of some columns and rows of input
    /// pixels. `lines` are the output, and where the sums go.
    fn add_enlarged<'a>(
        &self,
        mut lines: impl Iterator<Item = (&'a [u8], &'a mut [u8])>,
        columns: Range<usize>,
        rows: Range<usize>,
        drift: &[[f32; 3]],
    ) {
        let scale = self.scale;
        let last = self.rows.len() - 1;
        let widened = |y: usize| {
            let row = &drift[y * self.columns.len()..(y + 1) * self.columns.len()];
            let part = columns.start - self.columns.start..columns.end - self.columns.start;
            self.widened(row, part)
        };
        let first = rows.start - self.rows.start;
        let (mut above, mut own) = (widened(first.saturating_sub(1)), widened(first));
        for y in first..first + rows.len() {
            let below = widened((y + 1).min(last));
            for (phase, (output, line)) in lines.by_ref().take(scale).enumerate() {
                let down = offset(phase, scale);
                let beside = if down < 0.0 { &above } else { &below };
                Arch::new().dispatch(Sum { output, own: &own, beside, share: down.abs(), line });
            }
            (above, own) = (own, below);
        }
    }

    /// Interpolates a row of drifts: returns those of `part`, in pixels of the output.
    fn widened(&self, row: &[[f32; 3]], part: Range<usize>) -> Vec<f32> {
        let offsets: Vec<_> = (0..self.scale).map(|phase| offset(phase, self.scale)).collect();
        let mut wide = vec![0.0; part.len() * self.scale * 3];
        for (x, pixels) in part.zip(wide.chunks_exact_mut(self.scale * 3)) {
            let (left, middle) = (row[x.saturating_sub(1)], row[x]);
            let right = row[(x + 1).min(row.len() - 1)];
            for (across, pixel) in offsets.iter().zip(pixels.as_chunks_mut::<3>().0) {
                *pixel = mix(middle, if *across < 0.0 { left } else { right }, across.abs());
            }
        }
        wide
    }
}

/// Returns how far an output pixel lies from the center of its input pixel along one axis, in input pixels.
fn offset(phase: usize, scale: usize) -> f32 {
    (phase as f32 + 0.5) / scale as f32 - 0.5
}

/// Adds a mixture of two lines of drifts to a line of the output.
struct Sum<'a> {
    output: &'a [u8],
    own: &'a [f32],
    beside: &'a [f32],
    /// The share of `beside`, 0..=1.
    share: f32,
    line: &'a mut [u8],
}

impl NullaryFnOnce for Sum<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { output, own, beside, share, line } = self;
        let drifts = own.iter().zip(beside);
        for ((sum, sample), (own, beside)) in line.iter_mut().zip(output).zip(drifts) {
            let drift = own + share * (beside - own);
            *sum = to_byte((f32::from(*sample) + drift).clamp(0.0, 255.0));
        }
    }
}

fn each(one: [u8; 3], other: [u8; 3], of: fn(u8, u8) -> u8) -> [u8; 3] {
    std::array::from_fn(|channel| of(one[channel], other[channel]))
}

/// Replaces every value by the sum of those at most [`RADIUS`] columns away.
fn sum_along_rows(values: &mut [Weighted], width: usize) {
    values.par_chunks_mut(width).for_each(|row| {
        let own = row.to_vec();
        let mut sum = [0; 4];
        own.iter().take(RADIUS).for_each(|ahead| add(&mut sum, ahead, 1));
        for (x, value) in row.iter_mut().enumerate() {
            if let Some(ahead) = own.get(x + RADIUS) {
                add(&mut sum, ahead, 1);
            }
            *value = sum;
            if let Some(behind) = x.checked_sub(RADIUS) {
                add(&mut sum, &own[behind], -1);
            }
        }
    });
}

/// Replaces every value by the sum of those at most [`RADIUS`] rows away.
fn sum_along_columns(values: &mut [Weighted], width: usize) {
    let own = values.to_vec();
    let rows: Vec<_> = own.chunks_exact(width).collect();
    let mut sums = vec![[0; 4]; width];
    let add_row = |sums: &mut [Weighted], row: &[Weighted], sign| {
        sums.iter_mut().zip(row).for_each(|(sum, value)| add(sum, value, sign));
    };
    rows.iter().take(RADIUS).for_each(|ahead| add_row(&mut sums, ahead, 1));
    for (y, row) in values.chunks_exact_mut(width).enumerate() {
        if let Some(ahead) = rows.get(y + RADIUS) {
            add_row(&mut sums, ahead, 1);
        }
        row.copy_from_slice(&sums);
        if let Some(behind) = y.checked_sub(RADIUS) {
            add_row(&mut sums, rows[behind], -1);
        }
    }
}

fn add(sum: &mut Weighted, value: &Weighted, sign: i32) {
    for (sum, value) in sum.iter_mut().zip(value) {
        *sum += sign * value;
    }
}

fn mix(one: [f32; 3], other: [f32; 3], share: f32) -> [f32; 3] {
    std::array::from_fn(|channel| one[channel] + share * (other[channel] - one[channel]))
}

#[cfg(test)]
mod tests {
    use ndarray::s;

    use super::*;

    /// Enlarges by repetition; `change` makes the sample of the net, from the sample, its row and its column.
    fn net(
        input: &Array4<u8>,
        scale: usize,
        change: impl Fn(u8, usize, usize) -> u8,
    ) -> Array4<u8> {
        let (_, height, width, _) = input.dim();
        Array4::from_shape_fn((1, height * scale, width * scale, 3), |(_, y, x, c)| {
            change(input[[0, y / scale, x / scale, c]], y, x)
        })
    }

    /// Two areas of fine texture and flat color.
    fn picture(height: usize, width: usize) -> Array4<u8> {
        Array4::from_shape_fn((1, height, width, 3), |(_, y, x, c)| {
            if x < width / 2 { [40, 128, 224][c] } else { 90 + ((x * 7 + y * 5 + c) % 9) as u8 }
        })
    }

    /// Corrects with a window of everything.
    fn keep_all(output: &Array4<u8>, input: &Array4<u8>, scale: u32) -> Array4<u8> {
        let (_, height, width, _) = input.dim();
        let whole = (0..width as u32, 0..height as u32);
        keep(output, input, scale, whole)
    }

    /// Returns the corrected window.
    fn keep(
        output: &Array4<u8>,
        input: &Array4<u8>,
        scale: u32,
        (columns, rows): (Range<u32>, Range<u32>),
    ) -> Array4<u8> {
        let shape = (1, rows.len() * scale as usize, columns.len() * scale as usize, 3);
        let window = (columns.clone(), rows.clone());
        let correction = Correction::new(output, input, scale, window).unwrap();
        Array4::from_shape_vec(shape, correction.corrected(columns, rows)).unwrap()
    }

    fn apart(one: &Array4<u8>, other: &Array4<u8>) -> u8 {
        one.iter().zip(other).map(|(one, other)| one.abs_diff(*other)).max().unwrap_or(0)
    }

    #[test]
    fn a_shift_of_the_net_is_undone() {
        for scale in [2, 3, 4] {
            let input = picture(20, 31);
            let right = net(&input, scale, |sample, _, _| sample);
            let brighter = net(&input, scale, |sample, _, _| sample + 3 + sample / 64);
            assert!(apart(&brighter, &right) >= 5);
            let brighter = keep_all(&brighter, &input, scale as u32);
            assert!(apart(&brighter, &right) <= 1, "{scale}: {}", apart(&brighter, &right));
            // Flat places are exact, far from the texture.
            assert_eq!(brighter[[0, 0, 0, 2]], 224);
        }
    }

    #[test]
    fn what_the_net_adds_is_kept() {
        let input = picture(16, 16);
        let detailed =
            net(&input, 2, |sample, y, x| if (x + y) % 2 == 0 { sample + 20 } else { sample - 20 });
        assert_eq!(apart(&keep_all(&detailed, &input, 2), &detailed), 0);
    }

    #[test]
    fn a_sharper_edge_leaves_its_surroundings_alone() {
        // The edge of the input is soft over two pixels; the net moves it and draws it hard.
        let input = Array4::from_shape_fn((1, 24, 32, 3), |(_, _, x, _)| match x {
            0..15 => 240,
            15 => 160,
            16 => 80,
            _ => 20,
        });
        let drawn = |x: usize| if x < 66 { 240 } else { 20 };
        let output = Array4::from_shape_fn((1, 96, 128, 3), |(_, _, x, _)| drawn(x));
        let output = keep_all(&output, &input, 4);
        for x in (0..58).chain(70..128) {
            let found = output[[0, 48, x, 1]];
            assert!(found.abs_diff(drawn(x)) <= 2, "column {x}: {found}");
        }
    }

    #[test]
    fn a_window_gets_the_correction_of_the_whole_and_ignores_the_rest() {
        let input = Array4::from_shape_fn((1, 60, 60, 3), |(_, y, x, c)| {
            (120.0 + 60.0 * ((x + c) as f32 / 9.0).sin() + 40.0 * (y as f32 / 7.0).cos()) as u8
        });
        let right = net(&input, 4, |sample, _, x| sample.saturating_add((x % 3) as u8 + 4));
        let whole = keep_all(&right, &input, 4);
        let is_inside = |x: usize, y: usize| (40..160).contains(&x) && (32..200).contains(&y);
        // Like a net that pads its input with black.
        let mut padded = right;
        for ((_, y, x, _), sample) in padded.indexed_iter_mut() {
            *sample = if is_inside(x, y) { *sample } else { 0 };
        }
        let part = keep(&padded, &input, 4, (10..40, 8..50));
        let inner = COLOR_REACH as usize * 4;
        let expected = whole.slice(s![.., 32 + inner..200 - inner, 40 + inner..160 - inner, ..]);
        assert_eq!(part.slice(s![.., inner..168 - inner, inner..120 - inner, ..]), expected);
    }

    #[test]
    fn a_part_of_a_window_is_corrected_like_all_of_it() {
        let input = picture(20, 30);
        let brighter = net(&input, 4, |sample, _, x| sample + (x % 3) as u8 + 4);
        let whole = keep_all(&brighter, &input, 4);
        let correction = Correction::new(&brighter, &input, 4, (0..30, 0..20)).unwrap();
        let part = correction.corrected(3..17, 2..9);
        let expected = whole.slice(s![0, 8..36, 12..68, ..]);
        assert!(part.iter().eq(expected.iter()));
    }

    #[test]
    fn a_cleaning_net_may_change_colors_and_a_wrong_shape_is_refused() {
        let input = picture(9, 9);
        let brighter = net(&input, 1, |sample, _, _| sample + 9);
        assert_eq!(apart(&keep_all(&brighter, &input, 1), &brighter), 0);
        let refused = Correction::new(&brighter, &input, 2, (0..9, 0..9));
        assert!(matches!(refused, Err(PixelError::InvalidOutput(_))));
    }
}
