//! Opens and runs a net for the checks: on an input, or on part of a picture as one tile.

use ndarray::Array4;
use retouch_pixels::Picture;
use retouch_pixels::band::{self, Band, BandTile};
use retouch_pixels::tile::{self, Region, TileSize};

use super::samples::{SAMPLE_SIDE, disc_on_gradient, noise};
use crate::manifest::{NetTask, Tiling, Upscale};
use crate::output::{Output, Values};
use crate::registry::steps::Outcome;
use crate::session::{ExtraFile, PictureNet, Runtime, SessionError};

/// Minimum side of [`odd_input`] without its padding, in pixels. The run must cost little.
const SMALL_SIDE: u32 = 16;

/// Opens a net from the bytes of its file.
///
/// # Errors
/// Same as [`Runtime::open_net`].
pub fn open(
    runtime: &Runtime,
    task: NetTask<'_>,
    model: &[u8],
    extra: &[ExtraFile],
) -> Result<PictureNet, SessionError> {
    let shapes = task.input_shapes(runtime.batching().0, runtime.tile_memory_bytes());
    runtime.open_net(model, extra, &task.tensors(), &shapes)
}

pub fn run(net: &mut PictureNet, input: &Array4<u8>) -> Result<Output, String> {
    net.run(input).map_err(|error| error.to_string())
}

/// Finds where the operators of a net run.
pub fn place(net: &mut PictureNet, task: NetTask<'_>) -> Outcome<()> {
    let [input, _] = sample_inputs(task);
    match net.placement(&input) {
        Ok(placement) => Outcome::passed(placement.to_string(), ()),
        Err(error) => Outcome::refused(error.to_string()),
    }
}

/// Returns two inputs that have little in common.
pub fn sample_inputs(task: NetTask<'_>) -> [Array4<u8>; 2] {
    match task {
        NetTask::Segmentation(segmentation) => [disc_on_gradient(SAMPLE_SIDE), noise(SAMPLE_SIDE)]
            .map(|picture| segmentation.input.to_bytes(&picture)),
        NetTask::Upscale(upscale) => {
            let side = side_in_one_tile(upscale, SAMPLE_SIDE);
            [disc_on_gradient(side), noise(side)]
                .map(|picture| tile_input(&picture, &whole_of(&picture), upscale))
        }
    }
}

/// Returns an input for an upscaler of any size whose sides differ and are odd multiples of what its tiles are multiples
/// of: a net that needs larger multiples fails on it. `None` if the net takes one size.
pub fn odd_input(upscale: &Upscale) -> Option<Array4<u8>> {
    let TileSize::MultipleOf(of) = upscale.tile_size() else { return None };
    let least = SMALL_SIDE + 2 * upscale.tiling.padding;
    let count = least.div_ceil(of) | 1;
    let (rows, columns) = ((count * of) as usize, ((count + 2) * of) as usize);
    let sample = |(_, y, x, channel)| (5 * x + 3 * y + 40 * channel) as u8;
    Some(Array4::from_shape_fn((1, rows, columns, 3), sample))
}

/// Enlarges a whole picture, in tiles of the size that the net takes, or of the largest size that tools send it. Returns
/// R, G, B of every pixel, `scale` times as wide and high.
pub fn enlarge_picture(
    net: &mut PictureNet,
    upscale: &Upscale,
    picture: &Picture,
) -> Result<Vec<u8>, String> {
    let size = (picture.width, picture.height);
    let Tiling { padding, largest, blend: overlap, .. } = upscale.tiling;
    let largest = upscale.fixed_region(padding).unwrap_or(largest);
    let scale = upscale.upscale.scale;
    let (mut done, mut above) = (Vec::new(), Vec::new());
    let mut rows = band::pieces(size.1, largest, overlap).into_iter().peekable();
    while let Some(y) = rows.next() {
        let mut band = Band::new(size.0 * scale, (y.end - y.start) * scale, 3);
        for BandTile { region, fade } in band::tiles(size.0, &y, largest, overlap) {
            let samples = enlarge(net, upscale, picture, &region)?;
            let x = region.x.start * scale..region.x.end * scale;
            band.paste(&samples, x, fade * scale);
        }
        band.fade_in(&above);
        let shared = rows.peek().map_or(0, |next| y.end - next.start);
        above = band.split_off(shared * scale);
        done.append(&mut band.pixels);
    }
    Ok(done)
}

/// Enlarges a region as one tile. Returns R, G and B of every pixel, `scale` times as wide and high.
pub fn enlarge(
    net: &mut PictureNet,
    upscale: &Upscale,
    picture: &Picture,
    region: &Region,
) -> Result<Vec<u8>, String> {
    let output = run(net, &tile_input(picture, region, upscale))?;
    let (padding, scale) = (upscale.tiling.padding, upscale.upscale.scale);
    let part = |output: Values<u8>| tile::region_of(&output.view(), region, padding, scale);
    output.into_pictures().and_then(part).map_err(|error| error.to_string())
}

/// Cuts out a region with its padding, as bytes `[1, height, width, 3]`.
pub fn tile_input(picture: &Picture, region: &Region, upscale: &Upscale) -> Array4<u8> {
    tile::cut(picture, region, upscale.tiling.padding, upscale.tile_size()).colors()
}

/// Returns the side of a picture that fits into one tile, at most `side`.
pub fn side_in_one_tile(upscale: &Upscale, side: u32) -> u32 {
    upscale.fixed_region(upscale.tiling.padding).map_or(side, |most| most.min(side))
}

pub fn whole_of(picture: &Picture) -> Region {
    Region { x: 0..picture.width, y: 0..picture.height }
}
