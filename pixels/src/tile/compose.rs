//! Combines the model's outputs for a tile's colors and alpha into samples.

use ndarray::Array4;

use super::{Alpha, OutputLayout, PaddedTile, Region, alpha, planes, to_byte};
use crate::PixelError;
use crate::encode::Channels;

/// Returns the interleaved samples of a region, from the model's output for the colors and, if alpha is mixed, for
/// alpha.
///
/// A gray sample is the mean of the three output channels. Transparent pixels become black, which compresses best.
///
/// # Errors
/// Same as [`planes`].
pub fn compose(
    output: &Array4<f32>,
    alpha_output: Option<&Array4<f32>>,
    tile: &PaddedTile,
    region: &Region,
    layout: OutputLayout,
    channels: Channels,
) -> Result<Vec<u8>, PixelError> {
    let [red, green, blue] = planes(output, region, layout)?;
    let count = red.len();
    let alpha = match (&tile.alpha, alpha_output) {
        (Alpha::Opaque, _) => vec![u8::MAX; count],
        (Alpha::Mixed(alpha), Some(output)) => mixed(alpha, output, tile, region, layout)?,
        (Alpha::Clear | Alpha::Mixed(_), _) => vec![0; count],
    };
    let mean = |at: usize| (red[at] + green[at] + blue[at]) / 3.0;
    let mut samples = Vec::with_capacity(count * channels.count());
    for at in 0..count {
        let is_visible = alpha[at] > 0;
        let byte = |value: f32| if is_visible { to_byte(value) } else { 0 };
        match channels {
            Channels::Gray => samples.push(byte(mean(at))),
            Channels::GrayAlpha => samples.extend([byte(mean(at)), alpha[at]]),
            Channels::Rgb => samples.extend([red[at], green[at], blue[at]].map(byte)),
            Channels::Rgba => {
                samples.extend([red[at], green[at], blue[at]].map(byte));
                samples.push(alpha[at]);
            }
        }
    }
    Ok(samples)
}

fn mixed(
    own: &[u8],
    output: &Array4<f32>,
    tile: &PaddedTile,
    region: &Region,
    layout: OutputLayout,
) -> Result<Vec<u8>, PixelError> {
    let [red, green, blue] = planes(output, region, layout)?;
    let certain = alpha::certain_values(own, tile.width);
    let (factor, padding) = (layout.factor as usize, layout.padding as usize);
    let width = region.width() as usize * factor;
    Ok((0..red.len())
        .map(|at| {
            let (x, y) = (at % width / factor + padding, at / width / factor + padding);
            certain[y * tile.width + x]
                .unwrap_or_else(|| to_byte((red[at] + green[at] + blue[at]) / 3.0))
        })
        .collect())
}
