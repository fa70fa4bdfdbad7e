//! Runs of a net for the checks: on a tensor, or on part of a picture as one tile.

use ndarray::Array4;
use retouch_pixels::Picture;
use retouch_pixels::tile::{self, OutputLayout, Region};

use crate::manifest::{NetTask, Upscale};
use crate::session::Session;

/// Runs a net on its input tensor.
pub fn run(
    session: &mut Session,
    task: NetTask<'_>,
    input: &Array4<f32>,
) -> Result<Array4<f32>, String> {
    session.run(task.input(), input, task.output()).map_err(|error| error.to_string())
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
    let planes = tile::planes(&output, region, OutputLayout { padding, scale, halve: false })
        .map_err(|error| error.to_string())?;
    Ok(planes.map(|plane| plane.into_iter().map(tile::to_byte).collect()))
}

/// Cuts out a region with its padding, as f32 `[1, 3, height, width]`.
pub fn tile_tensor(picture: &Picture, region: &Region, upscale: &Upscale) -> Array4<f32> {
    let Upscale { input, tiling, .. } = upscale;
    let cut = tile::cut(picture, region, tiling.padding, tiling.multiple_of);
    tile::to_tensor(&cut, &input.normalization())
}

/// The region of the whole picture.
pub fn whole_of(picture: &Picture) -> Region {
    Region { x: 0..picture.width, y: 0..picture.height }
}
