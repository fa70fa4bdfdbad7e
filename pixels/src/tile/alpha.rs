//! The alpha of a tile. The color of a transparent pixel is arbitrary and often black, and a model would draw it into
//! the edge. So visible colors are spread into transparent pixels first.

/// How far visible colors spread, in pixels; farther away, transparent pixels become neutral gray. The bound makes
/// tiles independent of what lies farther away, so they fit together.
pub const FILL_RADIUS: u32 = 8;

const NEUTRAL_GRAY: u8 = 128;

/// If alpha is 255, or 0, everywhere within this many pixels, the enlarged alpha is exactly that value: what a model
/// returns for white is not always white, and around an edge it often leaves a faint halo.
const CERTAIN_RADIUS: usize = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alpha {
    /// Every pixel is opaque.
    Opaque,
    /// Every pixel is transparent.
    Clear,
    /// One byte per pixel.
    Mixed(Vec<u8>),
}

impl Alpha {
    pub(super) fn of(alpha: Vec<u8>) -> Self {
        if alpha.iter().all(|value| *value == u8::MAX) {
            Self::Opaque
        } else if alpha.iter().all(|value| *value == 0) {
            Self::Clear
        } else {
            Self::Mixed(alpha)
        }
    }
}

/// Spreads the colors of visible pixels into transparent ones, ring by ring: each pixel takes the mean of the neighbors
/// that already have a color. `spreads(index)` returns whether the color of a visible pixel spreads.
pub(super) fn fill(rgb: &mut [u8], alpha: &[u8], width: usize, spreads: impl Fn(usize) -> bool) {
    let height = alpha.len() / width;
    let mut known: Vec<bool> =
        alpha.iter().enumerate().map(|(at, value)| *value > 0 && spreads(at)).collect();
    let mut unknown: Vec<usize> = (0..alpha.len()).filter(|at| alpha[*at] == 0).collect();
    for _ in 0..FILL_RADIUS {
        if unknown.is_empty() || unknown.len() == alpha.len() {
            break;
        }
        let mut ring = Vec::new();
        unknown.retain(|&at| {
            let (x, y) = (at % width, at / width);
            let mut sum = [0_u32; 4];
            for ny in y.saturating_sub(1)..(y + 2).min(height) {
                for nx in x.saturating_sub(1)..(x + 2).min(width) {
                    let neighbor = ny * width + nx;
                    if known[neighbor] {
                        for channel in 0..3 {
                            sum[channel] += u32::from(rgb[neighbor * 3 + channel]);
                        }
                        sum[3] += 1;
                    }
                }
            }
            let [color @ .., count] = sum;
            if count > 0 {
                ring.push((at, color.map(|sum| ((sum + count / 2) / count) as u8)));
            }
            count == 0
        });
        for (at, color) in ring {
            rgb[at * 3..at * 3 + 3].copy_from_slice(&color);
            known[at] = true;
        }
    }
    for at in unknown {
        rgb[at * 3..at * 3 + 3].fill(NEUTRAL_GRAY);
    }
}

/// Returns, for each pixel, the alpha that is certain without asking the model: `Some(255)`, `Some(0)` or `None`.
pub fn certain_values(alpha: &[u8], width: usize) -> Vec<Option<u8>> {
    let height = alpha.len() / width;
    let windows = |length: usize, at: usize| {
        at.saturating_sub(CERTAIN_RADIUS)..(at + CERTAIN_RADIUS + 1).min(length)
    };
    let end = |value: u8| (value == 0 || value == u8::MAX).then_some(value);
    // The window is separable: rows first, then columns.
    let along_rows: Vec<Option<u8>> = (0..alpha.len())
        .map(|at| {
            let row = at / width * width;
            agree(windows(width, at % width).map(|x| end(alpha[row + x])))
        })
        .collect();
    (0..alpha.len())
        .map(|at| {
            let x = at % width;
            agree(windows(height, at / width).map(|y| along_rows[y * width + x]))
        })
        .collect()
}

/// Returns the value that all have; `None` if they differ or one is unknown.
fn agree(mut values: impl Iterator<Item = Option<u8>>) -> Option<u8> {
    let first = values.next().flatten()?;
    values.all(|value| value == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_colors_spread_exactly_eight_pixels() {
        let width = 20;
        let mut alpha = vec![0; width];
        alpha[0] = 1;
        let mut rgb = vec![0; width * 3];
        rgb[..3].copy_from_slice(&[250, 10, 20]);
        fill(&mut rgb, &alpha, width, |_| true);
        for (at, pixel) in rgb.chunks_exact(3).enumerate() {
            let expected = if at <= 8 { [250, 10, 20] } else { [NEUTRAL_GRAY; 3] };
            assert_eq!(pixel, expected, "at {at}");
        }
    }

    #[test]
    fn alpha_is_certain_only_away_from_edges() {
        let alpha = [255, 255, 255, 255, 255, 9, 0, 0, 0, 0];
        let certain = certain_values(&alpha, 10);
        let expected =
            [Some(255); 4].into_iter().chain([None; 3]).chain([Some(0); 3]).collect::<Vec<_>>();
        assert_eq!(certain, expected);
    }
}
