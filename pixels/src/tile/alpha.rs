//! What is transparent in a tile. The colour of a transparent pixel means nothing, and is often black: a
//! model that saw it would draw it into the edge. So the nearest visible colours are spread into it first.

/// How far visible colours are spread, in pixels. Everything that a tile shows depends on nothing further
/// away, so tiles fit together; beyond it a neutral gray stands for nothing at all.
pub const FILL: u32 = 8;

const NOTHING: u8 = 128;

/// Around a pixel, in pixels: where all alpha is 255, or all 0, the enlarged alpha is exactly that. A
/// model's white is not always white.
const SURE: usize = 2;

/// The alpha of a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alpha {
    /// All of it is opaque.
    Opaque,
    /// All of it is transparent.
    Clear,
    /// A byte for each pixel.
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

/// Spreads the colours of visible pixels into transparent ones, ring after ring: each takes the mean of
/// the neighbours that have a colour already.
pub(super) fn fill(rgb: &mut [u8], alpha: &[u8], width: usize) {
    let height = alpha.len() / width;
    let mut known: Vec<bool> = alpha.iter().map(|value| *value > 0).collect();
    let mut unknown: Vec<usize> = (0..alpha.len()).filter(|at| !known[*at]).collect();
    for _ in 0..FILL {
        if unknown.is_empty() || unknown.len() == alpha.len() {
            break;
        }
        let mut ring = Vec::new();
        unknown.retain(|&at| {
            let (x, y) = (at % width, at / width);
            let mut sum = [0_u32; 4];
            for ny in y.saturating_sub(1)..(y + 2).min(height) {
                for nx in x.saturating_sub(1)..(x + 2).min(width) {
                    let neighbour = ny * width + nx;
                    if known[neighbour] {
                        for channel in 0..3 {
                            sum[channel] += u32::from(rgb[neighbour * 3 + channel]);
                        }
                        sum[3] += 1;
                    }
                }
            }
            let [colour @ .., count] = sum;
            if count > 0 {
                ring.push((at, colour.map(|sum| ((sum + count / 2) / count) as u8)));
            }
            count == 0
        });
        for (at, colour) in ring {
            rgb[at * 3..at * 3 + 3].copy_from_slice(&colour);
            known[at] = true;
        }
    }
    for at in unknown {
        rgb[at * 3..at * 3 + 3].fill(NOTHING);
    }
}

/// Where alpha is surely 255 or surely 0: `Some` of that for each pixel of the cut.
pub fn certainties(alpha: &[u8], width: usize) -> Vec<Option<u8>> {
    let height = alpha.len() / width;
    let windows = |length: usize, at: usize| at.saturating_sub(SURE)..(at + SURE + 1).min(length);
    // Rows first, then columns of what the rows agreed on.
    let agree = |mut values: Box<dyn Iterator<Item = Option<u8>> + '_>| {
        let first = values.next().flatten()?;
        values.all(|value| value == Some(first)).then_some(first)
    };
    let end = |value: u8| (value == 0 || value == u8::MAX).then_some(value);
    let along_rows: Vec<Option<u8>> = (0..alpha.len())
        .map(|at| {
            let row = at / width * width;
            agree(Box::new(windows(width, at % width).map(|x| end(alpha[row + x]))))
        })
        .collect();
    (0..alpha.len())
        .map(|at| {
            let x = at % width;
            agree(Box::new(windows(height, at / width).map(|y| along_rows[y * width + x])))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_colours_reach_eight_pixels_and_no_further() {
        let width = 20;
        let mut alpha = vec![0; width];
        alpha[0] = 1;
        let mut rgb = vec![0; width * 3];
        rgb[..3].copy_from_slice(&[250, 10, 20]);
        fill(&mut rgb, &alpha, width);
        for (at, pixel) in rgb.chunks_exact(3).enumerate() {
            let expected = if at <= 8 { [250, 10, 20] } else { [NOTHING; 3] };
            assert_eq!(pixel, expected, "at {at}");
        }
    }

    #[test]
    fn only_what_lies_well_within_is_certain() {
        let alpha = [255, 255, 255, 255, 255, 9, 0, 0, 0, 0];
        let sure = certainties(&alpha, 10);
        let expected =
            [Some(255); 3].into_iter().chain([None; 5]).chain([Some(0); 2]).collect::<Vec<_>>();
        assert_eq!(sure, expected);
    }
}
