//! Refines an enlarged alpha along the edges of the picture. A segmentation map is a few times smaller than a photo, so
//! its enlargement blurs hair, strings and letters.
//!
//! Where foreground and background have locally constant colors, alpha is a linear function of the picture's color, at
//! the map's size as well as at full size. So a linear model is fitted to every neighborhood of the map and evaluated
//! at full size: a guided filter (He, Sun, and Tang, "Guided Image Filtering", TPAMI 2013, equations 14 to 16) that
//! is fitted on a small picture ("Fast Guided Filter", arXiv 1505.00996).
//!
//! A guided filter alone copies the texture of a picture into wide soft edges. Here, the model competes with the
//! enlarged alpha: each is weighted by the other's residual. The enlargement is exact where the map is locally a plane,
//! so its residual is that of a plane fitted to the same neighborhood. Where a cell and its immediate neighbors lie on a
//! plane, the model has no weight, even beside a sharp edge: the enlargement interpolates between these only.

mod fit;
#[cfg(test)]
mod tests;

use std::ops::Range;

use rayon::prelude::*;

use crate::resize::resize_roughly;
use crate::{Picture, PixelError};
pub use fit::Map;
use fit::{Cell, fit};

/// Refines `alpha`, one byte per pixel of `picture`, which `map` was enlarged to. Bytes change only near cells whose
/// neighbors differ. Does nothing if the picture is no larger than the map. `small` is R, G, B of every cell: the picture at
/// the map's size, which is made here if the caller does not have it.
///
/// # Errors
/// [`PixelError::Internal`] if the picture's size is wrong.
pub fn refine(
    alpha: &mut [u8],
    map: &Map<'_>,
    picture: &Picture,
    small: Option<&[u8]>,
) -> Result<(), PixelError> {
    let (columns, rows) = (map.columns, map.values.len() / map.columns);
    let (width, height) = (picture.width as usize, picture.height as usize);
    if columns >= width || rows >= height {
        return Ok(());
    }
    let cells = if let Some(small) = small {
        fit(small, map)
    } else {
        let size = (picture.width, picture.height);
        fit(&resize_roughly(&picture.rgb, size, (columns as u32, rows as u32))?, map)
    };
    let uneven: Vec<_> = (0..rows).map(|row| uneven(&cells, columns, row)).collect();
    let columns_of: Vec<_> = positions(width, columns).collect();
    let rows_of: Vec<_> = positions(height, rows).collect();
    let lines = alpha.par_chunks_mut(width).zip(picture.rgb.par_chunks(width * 3)).zip(rows_of);
    lines.with_min_len(16).for_each_init(
        || vec![Cell::default(); columns],
        |between, ((alpha, rgb), row)| {
            let (upper, lower) = (&cells[row.first * columns..], &cells[row.second * columns..]);
            for span in &uneven[row.first] {
                // Pixels to the left of the first cell lie between it and the one before.
                let first = span.start.saturating_sub(1);
                for at in first..(span.end + 1).min(columns) {
                    between[at] = upper[at].blend(&lower[at], row.share);
                }
                let pixel_of = |cell| columns_of.partition_point(|column| column.first < cell);
                let pixels = pixel_of(first)..pixel_of(span.end);
                let rgb = &rgb[pixels.start * 3..pixels.end * 3];
                refine_row(&mut alpha[pixels.clone()], rgb, between, &columns_of[pixels]);
            }
        },
    );
    Ok(())
}

/// Returns the cells with weight in a row or the next one, as ranges of columns.
fn uneven(cells: &[Cell], columns: usize, row: usize) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for column in 0..columns {
        let at = row * columns + column;
        let below = cells.get(at + columns).map_or(0.0, |cell| cell.weight);
        if cells[at].weight + below > 0.0 {
            match spans.last_mut() {
                Some(span) if span.end == column => span.end += 1,
                _ => spans.push(column..column + 1),
            }
        }
    }
    spans
}

fn refine_row(alpha: &mut [u8], rgb: &[u8], cells: &[Cell], columns: &[Position]) {
    let pixels = alpha.iter_mut().zip(rgb.as_chunks::<3>().0).zip(columns);
    for ((alpha, rgb), column) in pixels {
        let (left, right) = (&cells[column.first], &cells[column.second]);
        if left.weight + right.weight > 0.0 {
            let cell = left.blend(right, column.share);
            let enlarged = f32::from(*alpha) * (1.0 - cell.weight);
            *alpha = (enlarged + 255.0 * cell.weighted_alpha(rgb.map(f32::from)) + 0.5) as u8;
        }
    }
}

/// Where the center of a pixel lies between two cells.
struct Position {
    first: usize,
    second: usize,
    /// The share of the second, 0..=1.
    share: f32,
}

/// Returns the position of every pixel of a side, for bilinear interpolation.
fn positions(pixels: usize, cells: usize) -> impl Iterator<Item = Position> {
    let (scale, last) = (cells as f32 / pixels as f32, cells - 1);
    (0..pixels).map(move |pixel| {
        let position = ((pixel as f32 + 0.5) * scale - 0.5).max(0.0);
        let first = (position as usize).min(last);
        Position { first, second: (first + 1).min(last), share: position - first as f32 }
    })
}
