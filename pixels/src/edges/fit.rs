//! Fits a linear model of alpha to every neighborhood of a map.

use rayon::prelude::*;

/// Cells on each side of the one in the middle of a neighborhood. On mattes of hair, fur, strings and letters, 4 left
/// a quarter more error; with 1, a map that a net has blurred gains nothing.
const RADIUS: usize = 2;

const SIDE: usize = 2 * RADIUS + 1;
const CELLS: f32 = (SIDE * SIDE) as f32;

/// Cells on each side that the enlargement of a cell depends on.
const REACH: usize = 1;

/// The mean of dx² over the cells up to `radius` away.
const fn position_variance(radius: usize) -> f32 {
    (radius * (radius + 1)) as f32 / 3.0
}

/// The regularization of a model: the variance, in squared shares of the color range, below which colors count as flat.
/// A hundredth of the range is about the noise of a photo.
const FLAT_COLOR: f32 = 1e-4;

/// The residual below which neither side has an advantage, in squared shares of the alpha range.
const LEAST_RESIDUAL: f32 = 1e-5;

/// Alpha that differs by less from its neighbors is even, and its enlargement exact.
const EVEN: f32 = 1.0 / 512.0;

/// A map of alpha values, 0..=1, row by row. It covers the whole picture.
pub struct Map<'a> {
    /// Cells in a row.
    pub columns: usize,
    /// One value per cell.
    pub values: &'a [f32],
}

/// A linear model of alpha, multiplied by its weight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// The factors of R, G and B in 0..=255.
    slope: [f32; 3],
    /// Alpha of black.
    offset: f32,
    /// The weight of the model against the enlarged alpha, 0..=1.
    pub weight: f32,
}

impl Cell {
    /// Returns the cell between this one and `other`, whose share is 0..=1.
    pub fn blend(&self, other: &Self, share: f32) -> Self {
        let blend = |a: f32, b: f32| a + (b - a) * share;
        Self {
            slope: std::array::from_fn(|channel| blend(self.slope[channel], other.slope[channel])),
            offset: blend(self.offset, other.offset),
            weight: blend(self.weight, other.weight),
        }
    }

    /// Returns the model's alpha for a color in 0..=255, clipped to 0..=1 and multiplied by the weight.
    pub fn weighted_alpha(&self, [r, g, b]: [f32; 3]) -> f32 {
        let [of_r, of_g, of_b] = self.slope;
        (of_r * r + of_g * g + of_b * b + self.offset).clamp(0.0, self.weight)
    }
}

/// Fits a model to the neighborhood of every cell of `map`. `rgb` is the picture at the map's size. Returns one cell per
/// cell of the map, with weight 0 where alpha is even.
pub fn fit(rgb: &[u8], map: &Map<'_>) -> Vec<Cell> {
    let (columns, rows) = (map.columns, map.values.len() / map.columns);
    let rgb = rgb.as_chunks::<3>().0;
    let mut cells = vec![Cell::default(); map.values.len()];
    let lines = cells.par_chunks_mut(columns).enumerate().with_min_len(8);
    lines.for_each_init(
        || (Extremes::new(columns), vec![Sums::default(); columns]),
        |(extremes, sums), (y, row)| {
            let ys = near(y, rows).map(|y| y * columns);
            let [_, adjacent @ .., _] = ys.map(|start| &map.values[start..start + columns]);
            extremes.look_at(adjacent);
            let values = &map.values[y * columns..];
            // Neighborhoods overlap, so each column of them is summed up once.
            let mut summed = 0;
            for (x, (cell, value)) in row.iter_mut().zip(values).enumerate() {
                if !extremes.are_even(x, *value) {
                    let xs = near(x, columns);
                    for x in summed.max(xs[0])..=xs[SIDE - 1] {
                        sums[x] =
                            column_sums(ys.map(|start| (map.values[start + x], rgb[start + x])));
                    }
                    summed = xs[SIDE - 1] + 1;
                    let [_, beside @ .., _] = xs;
                    let unevenness = plane_residual(adjacent.map(|row| beside.map(|x| row[x])));
                    *cell = Moments::of(xs.map(|x| &sums[x])).model(unevenness);
                }
            }
        },
    );
    cells
}

/// Returns the rows or columns of a neighborhood. Beyond the border, the outermost repeats.
fn near(at: usize, end: usize) -> [usize; SIDE] {
    std::array::from_fn(|offset| (at + offset).saturating_sub(RADIUS).min(end - 1))
}

/// The least and greatest alpha in each column of a row and its neighbors. Shows where alpha is even, without a look at
/// every cell.
struct Extremes {
    /// With [`REACH`] columns beyond each border.
    low: Vec<f32>,
    high: Vec<f32>,
}

impl Extremes {
    fn new(columns: usize) -> Self {
        let empty = vec![0.0; columns + 2 * REACH];
        Self { low: empty.clone(), high: empty }
    }

    /// Moves to another row of a map, given with its neighbors.
    fn look_at(&mut self, rows: [&[f32]; 2 * REACH + 1]) {
        let end = REACH + rows[0].len();
        self.low[REACH..end].copy_from_slice(rows[0]);
        self.high[REACH..end].copy_from_slice(rows[0]);
        for row in &rows[1..] {
            let extremes = self.low[REACH..].iter_mut().zip(&mut self.high[REACH..]);
            for ((low, high), value) in extremes.zip(*row) {
                *low = if *value < *low { *value } else { *low };
                *high = if *value > *high { *value } else { *high };
            }
        }
        for line in [&mut self.low, &mut self.high] {
            let (first, last) = (line[REACH], line[end - 1]);
            line[..REACH].fill(first);
            line[end..].fill(last);
        }
    }

    /// Returns whether no neighbor of the cell in this column differs much from it.
    fn are_even(&self, column: usize, center: f32) -> bool {
        let window = column..=column + 2 * REACH;
        self.low[window.clone()].iter().all(|low| center - low < EVEN)
            && self.high[window].iter().all(|high| high - center < EVEN)
    }
}

/// The offset of a row or column of a neighborhood from its center.
fn offset(index: usize) -> f32 {
    index as f32 - RADIUS as f32
}

/// Sums of alpha, colors and their products, in one array, so that they compile to vector instructions.
type Sums = [f32; 16];

/// The index of the sum of alpha times the horizontal offset, which a single column does not have.
const ALPHA_ACROSS: usize = 15;

/// Sums up the cells of a column of a neighborhood: alpha and color.
fn column_sums(cells: [(f32, [u8; 3]); SIDE]) -> Sums {
    let mut sums = Sums::default();
    for (index, (a, rgb)) in cells.into_iter().enumerate() {
        let [r, g, b] = rgb.map(|value| f32::from(value) / 255.0);
        let along = a * offset(index);
        let products = [a * a, a * r, a * g, a * b, r * r, r * g, r * b, g * g, g * b, b * b];
        let [aa, ar, ag, ab, rr, rg, rb, gg, gb, bb] = products;
        let terms = [a, r, g, b, aa, ar, ag, ab, rr, rg, rb, gg, gb, bb, along, 0.0];
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum += term;
        }
    }
    sums
}

/// The pairs of channels, as indices of R, G and B: the upper triangle of a symmetric matrix.
const PAIRS: [(usize, usize); 6] = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)];

/// Means over a neighborhood, of alpha and colors in 0..=1.
struct Moments {
    alpha: f32,
    color: [f32; 3],
    alpha_alpha: f32,
    alpha_color: [f32; 3],
    /// In the order of [`PAIRS`].
    color_color: [f32; 6],
    /// Of alpha times the offset from the center.
    alpha_offset: [f32; 2],
}

impl Moments {
    fn of(columns: [&Sums; SIDE]) -> Self {
        let mut sums = Sums::default();
        let mut alpha_across = 0.0;
        for (index, column) in columns.into_iter().enumerate() {
            alpha_across += column[0] * offset(index);
            for (sum, term) in sums.iter_mut().zip(column) {
                *sum += term;
            }
        }
        sums[ALPHA_ACROSS] = alpha_across;
        let [alpha, r, g, b, alpha_alpha, ar, ag, ab, rr, rg, rb, gg, gb, bb, ay, ax] =
            sums.map(|sum| sum / CELLS);
        Self {
            alpha,
            color: [r, g, b],
            alpha_alpha,
            alpha_color: [ar, ag, ab],
            color_color: [rr, rg, rb, gg, gb, bb],
            alpha_offset: [ax, ay],
        }
    }

    /// Returns the model with the least squared error, regularized, and its weight. `unevenness` is the [`plane_residual`] of
    /// the cell and its neighbors: where that is zero, the enlargement is exact, whatever else the neighborhood holds.
    fn model(&self, unevenness: f32) -> Cell {
        let Self { alpha, color, .. } = *self;
        let covariance = std::array::from_fn(|at| {
            let (one, other) = PAIRS[at];
            let regularization = if one == other { FLAT_COLOR } else { 0.0 };
            self.color_color[at] - color[one] * color[other] + regularization
        });
        let with_alpha: [f32; 3] =
            std::array::from_fn(|channel| self.alpha_color[channel] - alpha * color[channel]);
        let slope = solve(covariance, with_alpha);
        let offset = alpha - dot(slope, color);

        let variance = self.alpha_alpha - alpha * alpha;
        let of_model = variance - dot(slope, with_alpha) - FLAT_COLOR * dot(slope, slope);
        let [x, y] = self.alpha_offset;
        let of_plane = variance - (x * x + y * y) / position_variance(RADIUS);
        let (of_model, of_plane) = (of_model.max(0.0), of_plane.max(0.0));
        let weight = of_plane / (of_plane + of_model + LEAST_RESIDUAL);
        let weight = weight * unevenness / (unevenness + LEAST_RESIDUAL);
        Cell { slope: slope.map(|value| value * weight / 255.0), offset: offset * weight, weight }
    }
}

/// Returns the mean squared difference of a cell and its neighbors from the plane that fits them best.
fn plane_residual(cells: [[f32; 2 * REACH + 1]; 2 * REACH + 1]) -> f32 {
    let (mut sum, mut squares, mut along, mut across) = (0.0, 0.0, 0.0, 0.0);
    for (y, row) in cells.iter().enumerate() {
        for (x, alpha) in row.iter().enumerate() {
            sum += alpha;
            squares += alpha * alpha;
            along += alpha * (y as f32 - REACH as f32);
            across += alpha * (x as f32 - REACH as f32);
        }
    }
    let count = ((2 * REACH + 1) * (2 * REACH + 1)) as f32;
    let [mean, square, along, across] = [sum, squares, along, across].map(|sum| sum / count);
    let slopes = (along * along + across * across) / position_variance(REACH);
    (square - mean * mean - slopes).max(0.0)
}

/// Solves a symmetric, positive definite system. The matrix is given by its upper triangle, in the order of [`PAIRS`].
///
/// An LDL decomposition stays accurate for gray pictures, whose channels differ only by the regularization. Cramer's rule
/// loses most digits there.
fn solve([rr, rg, rb, gg, gb, bb]: [f32; 6], [r, g, b]: [f32; 3]) -> [f32; 3] {
    let (of_red, of_red_in_blue) = (rg / rr, rb / rr);
    let green = gg - rg * of_red;
    let mixed = gb - rb * of_red;
    let of_green = mixed / green;
    let blue = bb - rb * of_red_in_blue - mixed * of_green;

    let g = g - of_red * r;
    let b = (b - of_red_in_blue * r - of_green * g) / blue;
    let g = g / green - of_green * b;
    [r / rr - of_red * g - of_red_in_blue * b, g, b]
}

fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how far `solution` is from solving the system, per unit of the right side.
    fn error(matrix: [f64; 6], right: [f64; 3], solution: [f32; 3]) -> f64 {
        let [rr, rg, rb, gg, gb, bb] = matrix;
        let product = [[rr, rg, rb], [rg, gg, gb], [rb, gb, bb]].map(|row| {
            row.iter().zip(solution).map(|(factor, value)| factor * f64::from(value)).sum::<f64>()
        });
        let errors = product.iter().zip(right).map(|(is, wanted)| (is - wanted).abs());
        errors.fold(0.0, f64::max) / right.iter().fold(0.0, |most, value| value.abs().max(most))
    }

    #[test]
    fn systems_of_gray_and_of_colorful_neighborhoods_are_solved() {
        let flat = f64::from(FLAT_COLOR);
        for variance in [0.001, 0.03, 0.2, 0.25] {
            for (tint, right) in
                [(0.0, [0.1, 0.1, 0.1]), (0.02, [0.1, 0.11, 0.09]), (0.4, [0.02, -0.1, 0.2])]
            {
                let own = variance + flat;
                let green = variance * (1.0 - tint);
                let matrix = [own, green, variance * (1.0 - tint / 2.0), own, green, own];
                let solution = solve(matrix.map(|value| value as f32), right.map(|it| it as f32));
                let error = error(matrix, right, solution);
                assert!(error < 1e-3, "{error} at variance {variance} and tint {tint}");
            }
        }
    }
}
