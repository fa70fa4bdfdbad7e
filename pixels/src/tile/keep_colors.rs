//! Gives an enlarged picture the colors of the original.
//!
//! Upscalers shift colors. The compact net of Real-ESRGAN makes a flat gray of 224 six levels brighter, and the shift
//! depends on the surroundings, so no curve undoes it. The **drift** does: the original minus the mean of the
//! output pixels that show the same place. Near edges the drift tells how the net draws edges, which is its task; in
//! flat places it tells the shift. So the drift is averaged with weights that favor flat places, and added.

use std::ops::Range;

use ndarray::Array4;
use rayon::prelude::*;

use crate::PixelError;

/// How far the average reaches in one pass, in input pixels. Two passes reach twice as far and have no corners. A longer
/// reach keeps less of the noise that the net removed, but follows the shift less closely, and costs padding.
const RADIUS: usize = 2;

/// How far around a pixel its correction looks, in input pixels: two passes, and the interpolation.
pub const COLOR_REACH: u32 = 2 * RADIUS as u32 + 1;

/// The range of samples around a pixel that halves its weight, in 0..=255.
const BUSY: f32 = 32.0;

/// The weight of a pixel in a flat place. With scales up to 8, the sums of two passes fit into 32 bits.
const FLAT: f32 = 64.0;

/// The weighted drift of R, G and B, as sums of an output block, and the weight. Integers, so that the sums of a window
/// do not depend on where it starts: tiles match to the bit.
type Weighted = [i32; 4];

/// Corrects the output of an upscaler, bytes `[1, h * scale, w * scale, 3]`, by its drift from the input, bytes
/// `[1, h, w, 3]`. A net of scale 1 may be meant to change colors: its output stays as it is.
///
/// Neither reads nor changes pixels outside a window of columns and rows, in input pixels: there the net saw the border
/// of its input. The corrections of windows that overlap agree [`COLOR_REACH`] away from their borders.
///
/// # Errors
/// [`PixelError::InvalidOutput`] if the output has another shape or is not contiguous.
pub fn keep_colors(
    output: &mut Array4<u8>,
    input: &Array4<u8>,
    scale: u32,
    (columns, rows): (Range<u32>, Range<u32>),
) -> Result<(), PixelError> {
    let (scale, (_, height, width, _)) = (scale as usize, input.dim());
    if scale == 1 {
        return Ok(());
    }
    let invalid =
        |shape: &[usize]| PixelError::InvalidOutput(format!("it has the shape {shape:?}"));
    if output.dim() != (1, height * scale, width * scale, 3) {
        return Err(invalid(output.shape()));
    }
    let shape = output.shape().to_vec();
    let (Some(output), Some(input)) = (output.as_slice_mut(), input.as_slice()) else {
        return Err(invalid(&shape));
    };
    let [columns, rows] = [columns, rows].map(|it| it.start as usize..it.end as usize);
    let tile = Tile { width, scale, columns, rows };
    let mut drift = tile.weighted_drift(output, input.as_chunks().0);
    for _ in 0..2 {
        sum_along_rows(&mut drift, tile.columns.len());
        sum_along_columns(&mut drift, tile.columns.len());
    }
    // Sums of drifts by sums of weights: outside the window, both are zero.
    let samples = (scale * scale) as f32;
    let drift: Vec<[f32; 3]> = drift
        .into_par_iter()
        .map(|[r, g, b, weight]| [r, g, b].map(|drift| drift as f32 / (weight as f32 * samples)))
        .collect();
    tile.add_enlarged(output, &drift);
    Ok(())
}

/// The part of a tile that is corrected, in input pixels.
struct Tile {
    width: usize,
    scale: usize,
    columns: Range<usize>,
    rows: Range<usize>,
}

impl Tile {
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
            let mut sums = vec![[0_i32; 3]; drift.len()];
            for line in self.window(output, y) {
                for (sum, pixels) in sums.iter_mut().zip(line.chunks_exact(scale * 3)) {
                    for pixel in pixels.as_chunks::<3>().0 {
                        for (sum, sample) in sum.iter_mut().zip(pixel) {
                            *sum += i32::from(*sample);
                        }
                    }
                }
            }
            let around = y.saturating_sub(1)..(y + 2).min(height);
            for ((drift, sum), x) in drift.iter_mut().zip(&sums).zip(self.columns.clone()) {
                let near = x.saturating_sub(1)..(x + 2).min(width);
                let near = around.clone().flat_map(|y| &input[y * width..][near.clone()]);
                let [least, largest] = near.copied().fold([[u8::MAX; 3], [0; 3]], widened);
                let range = largest.iter().zip(least).map(|(largest, least)| largest - least).max();
                let busy = f32::from(range.unwrap_or(0)) / BUSY;
                let weight = (FLAT / (1.0 + busy * busy)).round() as i32;
                let own = input[y * width + x];
                for channel in 0..3 {
                    drift[channel] = weight * (i32::from(own[channel]) * samples - sum[channel]);
                }
                drift[3] = weight;
            }
        });
        drift
    }

    /// Adds the drift to the output, interpolated between the centers of input pixels.
    fn add_enlarged(&self, output: &mut [u8], drift: &[[f32; 3]]) {
        let Self { width, scale, .. } = *self;
        let (columns, rows) = (self.columns.len(), self.rows.len());
        let row = |y: usize| &drift[y * columns..(y + 1) * columns];
        // Where an output pixel lies from the center of its input pixel, in input pixels.
        let offset = |phase: usize| (phase as f32 + 0.5) / scale as f32 - 0.5;
        let lines = output.par_chunks_exact_mut(width * scale * 3);
        lines.skip(self.rows.start * scale).take(rows * scale).enumerate().for_each(|(y, line)| {
            let (own, down) = (y / scale, offset(y % scale));
            let beside = if down < 0.0 { own.saturating_sub(1) } else { (own + 1).min(rows - 1) };
            let mixed = |x: usize| mix(row(own)[x], row(beside)[x], down.abs());
            let (mut left, mut middle) = (mixed(0), mixed(0));
            let line = &mut line[self.columns.start * scale * 3..self.columns.end * scale * 3];
            for (x, pixels) in line.chunks_exact_mut(scale * 3).enumerate() {
                let right = mixed((x + 1).min(columns - 1));
                for (phase, pixel) in pixels.as_chunks_mut::<3>().0.iter_mut().enumerate() {
                    let across = offset(phase);
                    let drift = mix(middle, if across < 0.0 { left } else { right }, across.abs());
                    for (sample, drift) in pixel.iter_mut().zip(drift) {
                        // The cast clamps.
                        *sample = (f32::from(*sample) + drift + 0.5) as u8;
                    }
                }
                (left, middle) = (middle, right);
            }
        });
    }
}

/// Widens a range of colors, the least and the largest samples, by one color.
fn widened([least, largest]: [[u8; 3]; 2], color: [u8; 3]) -> [[u8; 3]; 2] {
    let each = |one: [u8; 3], of: fn(u8, u8) -> u8| {
        [of(one[0], color[0]), of(one[1], color[1]), of(one[2], color[2])]
    };
    [each(least, u8::min), each(largest, u8::max)]
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
    fn keep_all(output: &mut Array4<u8>, input: &Array4<u8>, scale: u32) -> Result<(), PixelError> {
        let (_, height, width, _) = input.dim();
        keep_colors(output, input, scale, (0..width as u32, 0..height as u32))
    }

    fn apart(one: &Array4<u8>, other: &Array4<u8>) -> u8 {
        one.iter().zip(other).map(|(one, other)| one.abs_diff(*other)).max().unwrap_or(0)
    }

    #[test]
    fn a_shift_of_the_net_is_undone() {
        for scale in [2, 3, 4] {
            let input = picture(20, 31);
            let right = net(&input, scale, |sample, _, _| sample);
            let mut brighter = net(&input, scale, |sample, _, _| sample + 3 + sample / 64);
            assert!(apart(&brighter, &right) >= 5);
            keep_all(&mut brighter, &input, scale as u32).unwrap();
            assert!(apart(&brighter, &right) <= 1, "{scale}: {}", apart(&brighter, &right));
            // Flat places are exact, far from the texture.
            assert_eq!(brighter[[0, 0, 0, 2]], 224);
        }
    }

    #[test]
    fn what_the_net_adds_is_kept() {
        let input = picture(16, 16);
        let mut detailed =
            net(&input, 2, |sample, y, x| if (x + y) % 2 == 0 { sample + 20 } else { sample - 20 });
        let before = detailed.clone();
        keep_all(&mut detailed, &input, 2).unwrap();
        assert_eq!(apart(&detailed, &before), 0);
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
        let mut output = Array4::from_shape_fn((1, 96, 128, 3), |(_, _, x, _)| drawn(x));
        keep_all(&mut output, &input, 4).unwrap();
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
        let (mut whole, mut part) = (right.clone(), right.clone());
        keep_all(&mut whole, &input, 4).unwrap();
        let is_inside = |x: usize, y: usize, by: usize| {
            (40 + by..160 - by).contains(&x) && (32 + by..200 - by).contains(&y)
        };
        // Like a net that pads its input with black.
        for ((_, y, x, _), sample) in part.indexed_iter_mut() {
            *sample = if is_inside(x, y, 0) { *sample } else { 0 };
        }
        keep_colors(&mut part, &input, 4, (10..40, 8..50)).unwrap();
        for ((_, y, x, c), sample) in part.indexed_iter() {
            let expected = if is_inside(x, y, COLOR_REACH as usize * 4) {
                whole[[0, y, x, c]]
            } else if is_inside(x, y, 0) {
                continue;
            } else {
                0
            };
            assert_eq!(*sample, expected, "row {y}, column {x}");
        }
    }

    #[test]
    fn a_cleaning_net_may_change_colors_and_a_wrong_shape_is_refused() {
        let input = picture(9, 9);
        let mut brighter = net(&input, 1, |sample, _, _| sample + 9);
        let before = brighter.clone();
        keep_all(&mut brighter, &input, 1).unwrap();
        assert_eq!(apart(&brighter, &before), 0);
        let refused = keep_all(&mut brighter, &input, 2);
        assert!(matches!(refused, Err(PixelError::InvalidOutput(_))));
    }
}
