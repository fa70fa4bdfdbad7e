//! Runs of a net for the checks: on a tensor, or on part of a picture as one tile.

use ndarray::Array4;
use retouch_pixels::Picture;
use retouch_pixels::band::{self, Band, BandTile};
use retouch_pixels::tile::{self, OutputLayout, Region};

use super::samples::{SAMPLE_SIDE, disc_on_gradient, noise};
use crate::manifest::{NetTask, Tiling, Upscale};
use crate::session::Session;

/// Runs a net on its input tensor.
pub fn run(
    session: &mut Session,
    task: NetTask<'_>,
    input: &Array4<f32>,
) -> Result<Array4<f32>, String> {
    session.run(task.tensors(), input).map_err(|error| error.to_string())
}

/// Returns two inputs that have little in common.
pub fn sample_inputs(task: NetTask<'_>) -> [Array4<f32>; 2] {
    match task {
        NetTask::Segmentation(segmentation) => [disc_on_gradient(SAMPLE_SIDE), noise(SAMPLE_SIDE)]
            .map(|picture| segmentation.input.to_tensor(&picture)),
        NetTask::Upscale(upscale) => {
            let side = side_in_one_tile(upscale, SAMPLE_SIDE);
            [disc_on_gradient(side), noise(side)]
                .map(|picture| tile_tensor(&picture, &whole_of(&picture), upscale))
        }
    }
}

/// Enlarges a whole picture, in tiles of the size that the net takes, or of the largest size that tools send it. Returns
/// R, G, B of every pixel, `scale` times as wide and high.
pub fn enlarge_picture(
    session: &mut Session,
    upscale: &Upscale,
    picture: &Picture,
) -> Result<Vec<u8>, String> {
    let size = (picture.width, picture.height);
    let Tiling { padding, largest, blend: overlap, .. } = upscale.tiling;
    let largest = upscale.fixed_region(padding).unwrap_or(largest);
    let scale = upscale.upscale.scale;
    let (mut done, mut above) = (Vec::new(), Vec::new());
    for y in band::split_evenly(size.1, largest) {
        let tiles = band::tiles(size, &y, largest, overlap);
        let rows = tiles.first().map_or(0, |tile| tile.region.height());
        let mut band = Band::new(size.0 * scale, rows * scale, 3);
        for BandTile { region, fade } in tiles {
            let [red, green, blue] = enlarge(session, upscale, picture, &region)?;
            let pixels = red.into_iter().zip(green).zip(blue);
            let samples: Vec<_> = pixels.flat_map(|((r, g), b)| [r, g, b]).collect();
            let x = region.x.start * scale..region.x.end * scale;
            band.paste(&samples, x, fade * scale);
        }
        band.fade_in(&above);
        above = if y.end == size.1 { Vec::new() } else { band.split_off(overlap * scale) };
        done.append(&mut band.pixels);
    }
    Ok(done)
}

/// Enlarges a region as one tile. Returns the samples of R, G and B, `scale` times as wide and high.
pub fn enlarge(
    session: &mut Session,
    upscale: &Upscale,
    picture: &Picture,
    region: &Region,
) -> Result<[Vec<u8>; 3], String> {
    let tensor = tile_tensor(picture, region, upscale);
    let output = run(session, NetTask::Upscale(upscale), &tensor)?;
    let (padding, scale) = (upscale.tiling.padding, upscale.upscale.scale);
    let planes = tile::planes(&output, region, OutputLayout { padding, scale, factor: scale })
        .map_err(|error| error.to_string())?;
    Ok(planes.map(|plane| plane.into_iter().map(tile::to_byte).collect()))
}

/// Cuts out a region with its padding, as f32 `[1, 3, height, width]`.
pub fn tile_tensor(picture: &Picture, region: &Region, upscale: &Upscale) -> Array4<f32> {
    let cut = tile::cut(picture, region, upscale.tiling.padding, upscale.tile_size());
    tile::to_tensor(&cut, &upscale.input.normalization())
}

/// Returns the side of a picture that fits into one tile, at most `side`.
pub fn side_in_one_tile(upscale: &Upscale, side: u32) -> u32 {
    upscale.fixed_region(upscale.tiling.padding).map_or(side, |most| most.min(side))
}

/// The region of the whole picture.
pub fn whole_of(picture: &Picture) -> Region {
    Region { x: 0..picture.width, y: 0..picture.height }
}
