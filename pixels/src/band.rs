//! Joins tiles: side by side into a band as wide as the picture, and bands one below the other. Where tiles overlap,
//! one fades into the other.

use std::ops::Range;

use crate::tile::Region;

/// Splits a length into the fewest pieces of at most `largest`, which must exceed `overlap`. Neighbors share `overlap` or
/// one more, so that all pieces have one length: tiles of one shape go through a model in one batch.
pub fn pieces(length: u32, largest: u32, overlap: u32) -> Vec<Range<u32>> {
    let count = length.saturating_sub(overlap).div_ceil(largest - overlap).max(1);
    let gaps = count - 1;
    let side = (length + gaps * overlap).div_ceil(count);
    let start = |index: u32| u64::from(length - side) * u64::from(index) / u64::from(gaps.max(1));
    (0..count).map(|index| start(index) as u32).map(|start| start..start + side).collect()
}

/// Full-width rows of a picture, assembled from tiles.
#[derive(Debug)]
pub struct Band {
    width: usize,
    channels: usize,
    /// Interleaved samples, `width * channels` per row.
    pub pixels: Vec<u8>,
}

impl Band {
    /// Creates a black band of `width` × `rows` pixels.
    pub fn new(width: u32, rows: u32, channels: usize) -> Self {
        let width = width as usize;
        Self { width, channels, pixels: vec![0; width * channels * rows as usize] }
    }

    const fn stride(&self) -> usize {
        self.width * self.channels
    }

    /// Pastes a tile into the columns `x`, over the band's whole height. Its first `fade` columns fade in over the
    /// tile to the left.
    pub fn paste(&mut self, tile: &[u8], x: Range<u32>, fade: u32) {
        let (stride, channels) = (self.stride(), self.channels);
        let (start, end) = (x.start as usize * channels, x.end as usize * channels);
        let fade = fade as usize;
        let weights: Vec<f32> = (0..fade).map(|column| weight(column, fade)).collect();
        for (row, tile) in self.pixels.chunks_exact_mut(stride).zip(tile.chunks_exact(end - start))
        {
            let (faded, kept) = tile.split_at(fade * channels);
            let (over, rest) = row[start..end].split_at_mut(fade * channels);
            for ((over, faded), weight) in
                over.chunks_exact_mut(channels).zip(faded.chunks_exact(channels)).zip(&weights)
            {
                mix(over, faded, *weight);
            }
            rest.copy_from_slice(kept);
        }
    }

    /// Blends the overlap with the band above: `above` are its last rows, which show the same part of the picture as
    /// the first rows of this band.
    pub fn fade_in(&mut self, above: &[u8]) {
        let stride = self.stride();
        let rows = self.pixels.chunks_exact_mut(stride).zip(above.chunks_exact(stride));
        let fade = above.len() / stride;
        for (index, (row, above)) in rows.enumerate() {
            let weight = weight(index, fade);
            for (sample, above) in row.iter_mut().zip(above) {
                *sample = mixed(*above, *sample, weight);
            }
        }
    }

    /// Removes the last rows and returns their samples.
    pub fn split_off(&mut self, rows: u32) -> Vec<u8> {
        let kept = self.pixels.len() - rows as usize * self.stride();
        self.pixels.split_off(kept)
    }
}

/// Returns the weight of the new tile at a step of a fade: a raised cosine, flat at both ends.
fn weight(step: usize, steps: usize) -> f32 {
    let at = (step as f32 + 0.5) / steps as f32;
    (1.0 - (std::f32::consts::PI * at).cos()) / 2.0
}

fn mix(over: &mut [u8], new: &[u8], weight: f32) {
    for (sample, new) in over.iter_mut().zip(new) {
        *sample = mixed(*sample, *new, weight);
    }
}

fn mixed(old: u8, new: u8, weight: f32) -> u8 {
    let (old, new) = (f32::from(old), f32::from(new));
    // Without `mul_add`, which calls a function where the processor is not known to have it.
    ((new - old) * weight + old + 0.5) as u8
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandTile {
    /// The part of the picture that the tile covers, overlap included.
    pub region: Region,
    /// The first columns of `region`, which fade in over the tile to the left.
    pub fade: u32,
}

/// Returns the tiles of the band with the rows `y`, from the left, for a picture of this width. They are [`pieces`] of it.
pub fn tiles(width: u32, y: &Range<u32>, largest: u32, overlap: u32) -> Vec<BandTile> {
    let mut covered = 0;
    pieces(width, largest, overlap)
        .into_iter()
        .map(|x| {
            let fade = covered - x.start;
            covered = x.end;
            BandTile { fade, region: Region { x, y: y.clone() } }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_length_share_the_overlap_and_cover_everything() {
        for (length, largest, overlap) in [
            (1, 256, 0),
            (256, 256, 0),
            (257, 256, 0),
            (1440, 192, 16),
            (7, 2, 0),
            (10_000, 64, 16),
            (9, 64, 16),
            (128, 139, 16),
            (9999, 139, 16),
        ] {
            let pieces = pieces(length, largest, overlap);
            assert_eq!((pieces[0].start, pieces[pieces.len() - 1].end), (0, length));
            let shared = |pair: &[Range<u32>]| pair[0].end - pair[1].start;
            assert!(pieces.windows(2).map(shared).all(|s| s == overlap || s == overlap + 1));
            let side = pieces[0].end;
            assert!(pieces.iter().all(|piece| piece.end - piece.start == side && side <= largest));
            let fewer = pieces.len() as u32 - 1;
            assert!(fewer == 0 || fewer * largest < length + (fewer - 1) * overlap, "{length}");
        }
    }

    #[test]
    fn a_fade_starts_with_the_old_and_ends_with_the_new() {
        let mut band = Band::new(8, 2, 1);
        band.paste(&[100; 12], 0..6, 0);
        band.paste(&[200; 8], 4..8, 2);
        assert_eq!(band.pixels[..8], [100, 100, 100, 100, 115, 185, 200, 200]);
        let mut below = Band::new(8, 2, 1);
        below.fade_in(&[100; 16]);
        assert_eq!((below.pixels[0], below.pixels[8]), (85, 15));
    }
}
