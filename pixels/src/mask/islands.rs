//! Isolated objects in a picture with transparency.

use super::{Area, EffectiveMask, connected_component};
use crate::Picture;
use crate::cutout::FAINTEST;

impl EffectiveMask {
    /// Makes the islands in the mask transparent, and drops them from the mask. An island is a connected group of visible
    /// pixels that touches no visible pixel outside the mask: nothing is behind it, so nothing can continue there. If
    /// there is an island, the mask also drops all transparent pixels, whose colors nobody sees.
    ///
    /// Changes nothing if the picture has no alpha or would become empty.
    pub fn remove_islands(&mut self, picture: &mut Picture) {
        let stride = picture.width as usize;
        let Some(alpha) = &mut picture.alpha else { return };
        let islands = self.islands(alpha, stride);
        let is_removed = |at: usize| islands.binary_search(&at).is_ok();
        let remains = |(at, alpha): (usize, &u8)| *alpha >= FAINTEST && !is_removed(at);
        if islands.is_empty() || !alpha.iter().enumerate().any(remains) {
            return;
        }
        for at in islands {
            alpha[at] = 0;
            picture.rgb[at * 3..at * 3 + 3].fill(0);
        }
        for (weight, at) in self.weight.iter_mut().zip(self.area.pixels(stride)) {
            if alpha[at] == 0 {
                *weight = 0;
            }
        }
    }

    /// Returns the indices in the picture of the pixels of all islands, in ascending order.
    fn islands(&self, alpha: &[u8], stride: usize) -> Vec<usize> {
        let Self { area: Area { left, top, width, height }, weight } = self;
        let alpha: Vec<_> = self.area.pixels(stride).map(|at| alpha[at]).collect();
        let stays = |x, y| weight[y * width + x] == 0 && alpha[y * width + x] >= FAINTEST;
        let touches_what_stays = |at: &usize| {
            let (x, y) = (at % width, at / width);
            (y.saturating_sub(1)..(y + 2).min(*height))
                .any(|y| (x.saturating_sub(1)..(x + 2).min(*width)).any(|x| stays(x, y)))
        };
        let mut seen: Vec<_> =
            weight.iter().zip(&alpha).map(|(weight, alpha)| *weight == 0 || *alpha == 0).collect();
        let (mut islands, mut piece) = (Vec::new(), Vec::new());
        for start in 0..seen.len() {
            if seen[start] {
                continue;
            }
            connected_component(start, &mut seen, *width, &mut piece);
            if !piece.iter().any(touches_what_stays) {
                islands
                    .extend(piece.iter().map(|at| (top + at / width) * stride + left + at % width));
            }
        }
        islands.sort_unstable();
        islands
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::Mask;

    /// Opaque are the columns 1 to 4 and 8 to 10 of 12; column 11 is barely visible.
    fn two_islands() -> Picture {
        let column = |at: usize| match at % 12 {
            1..5 | 8..11 => 255,
            11 => FAINTEST - 1,
            _ => 0,
        };
        let alpha = Some((0..12 * 6).map(column).collect());
        Picture { width: 12, height: 6, rgb: vec![90; 12 * 6 * 3], alpha, gray: false, icc: None }
    }

    fn mask(columns: std::ops::Range<usize>) -> EffectiveMask {
        let on = (0..12 * 6).map(|at| columns.contains(&(at % 12))).collect();
        Mask::new(12, 6, on).expect("a mask").exact(0)
    }

    #[test]
    fn an_island_in_the_mask_becomes_transparent_and_the_mask_has_nothing_left_to_change() {
        let (before, mut picture, mut mask) = (two_islands(), two_islands(), mask(7..11));
        mask.remove_islands(&mut picture);
        for at in 0..12 * 6 {
            let is_removed = (8..11).contains(&(at % 12));
            let pixel = |picture: &Picture| {
                let alpha = picture.alpha.as_ref().map(|alpha| alpha[at]);
                (alpha, picture.rgb[at * 3..at * 3 + 3].to_vec())
            };
            let expected = if is_removed { (Some(0), vec![0; 3]) } else { pixel(&before) };
            assert_eq!(pixel(&picture), expected, "{at}");
        }
        assert!(mask.is_empty());
    }

    #[test]
    fn what_touches_pixels_that_stay_is_left_to_the_fill() {
        for columns in [2..5, 8..9, 3..12] {
            let (mut picture, mut mask) = (two_islands(), mask(columns.clone()));
            mask.remove_islands(&mut picture);
            let alpha = picture.alpha.expect("alpha");
            assert_eq!(alpha[4], 255, "{columns:?}");
            assert_eq!(alpha[9] == 0, columns.contains(&10), "{columns:?}");
            assert!(!mask.is_empty(), "{columns:?}");
        }
    }

    #[test]
    fn no_picture_becomes_empty_and_none_without_alpha_changes() {
        let opaque = Picture { alpha: None, ..two_islands() };
        for before in [two_islands(), opaque] {
            let (mut picture, mut mask) = (before.clone(), mask(0..12));
            mask.remove_islands(&mut picture);
            assert_eq!(picture, before);
            assert_eq!(mask.bounds(), (0, 0, 12, 6));
            assert!(!mask.is_empty());
        }
    }
}
