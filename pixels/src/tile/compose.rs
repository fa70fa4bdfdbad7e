//! Takes the region of a tile out of the model's outputs, and combines those for its colors and alpha.

use ndarray::ArrayRef4;
use rayon::prelude::*;

use super::keep_colors::Correction;
use super::soft::Trust;
use super::{Alpha, OutputLayout, PaddedTile, Region, alpha};
use crate::encode::Channels;
use crate::rounding::to_byte;
use crate::{PixelError, lanczos};

/// Returns the interleaved samples of a region, from the model's output for the colors and, if alpha is mixed, for
/// alpha, bytes `[1, h, w, 3]`. The outputs get the colors and the alpha of the tile: see [`Correction`].
///
/// A gray sample is the mean of the three output channels. Transparent pixels become black, which compresses best.
///
/// # Errors
/// [`PixelError::InvalidOutput`] if an output has another shape than the tile's, or is not contiguous.
pub fn compose(
    output: &ArrayRef4<u8>,
    alpha_output: Option<&ArrayRef4<u8>>,
    tile: &PaddedTile,
    region: &Region,
    layout: OutputLayout,
    channels: Channels,
) -> Result<Vec<u8>, PixelError> {
    let (columns, rows) = layout.window(region);
    let correction = Correction::new(output, &tile.colors(), layout.scale, (columns, rows))?;
    let colors = corrected_region(&correction, region, layout);
    let alpha = match (&tile.alpha, alpha_output) {
        (Alpha::Opaque, _) if channels == Channels::Rgb => return Ok(colors),
        (Alpha::Opaque, _) => vec![u8::MAX; colors.len() / 3],
        (Alpha::Mixed(alpha), Some(output)) => mixed(alpha, output, tile, region, layout)?,
        (Alpha::Clear | Alpha::Mixed(_), _) => vec![0; colors.len() / 3],
    };
    let mut samples = Vec::with_capacity(alpha.len() * channels.count());
    for (pixel, alpha) in colors.as_chunks::<3>().0.iter().zip(alpha) {
        let pixel = if alpha > 0 { *pixel } else { [0; 3] };
        match channels {
            Channels::Gray => samples.push(mean(pixel)),
            Channels::GrayAlpha => samples.extend([mean(pixel), alpha]),
            Channels::Rgb => samples.extend(pixel),
            Channels::Rgba => {
                samples.extend(pixel);
                samples.push(alpha);
            }
        }
    }
    Ok(samples)
}

/// Returns R, G and B of every pixel of a region, corrected, and resampled from `layout.scale` to `layout.factor`. The
/// result has `region.width() * layout.factor` columns.
fn corrected_region(correction: &Correction<'_>, region: &Region, layout: OutputLayout) -> Vec<u8> {
    let ratio = (layout.scale as usize, layout.factor as usize);
    let reach = (lanczos::reach(ratio.0, ratio.1) as u32).div_ceil(layout.scale);
    let around = |length: u32| layout.padding - reach..layout.padding + length + reach;
    let samples = correction.corrected(around(region.width()), around(region.height()));
    if layout.factor == layout.scale {
        return samples;
    }
    let width = ((region.width() + 2 * reach) * layout.scale) as usize;
    let offset = (reach * layout.scale) as usize;
    let size =
        ((region.width() * layout.factor) as usize, (region.height() * layout.factor) as usize);
    let samples = samples.as_chunks::<3>().0;
    let planes: Vec<_> = (0..3)
        .into_par_iter()
        .map(|channel| {
            let plane = samples.iter().map(|pixel| f32::from(pixel[channel]) / 255.0);
            let plane: Vec<f32> = plane.collect();
            lanczos::resample(&plane, width, offset, size, ratio)
        })
        .collect();
    let [red, green, blue] = &planes[..] else { return Vec::new() };
    let pixels = red.iter().zip(green).zip(blue);
    pixels
        .flat_map(|((red, green), blue)| [red, green, blue].map(|value| to_byte(*value * 255.0)))
        .collect()
}

/// Returns R, G and B of every pixel of a region from a model's output, bytes `[1, h, w, 3]`: drops the padding, in
/// input pixels.
///
/// # Errors
/// [`PixelError::InvalidOutput`] if the output is too small or not contiguous.
pub fn region_of(
    output: &ArrayRef4<u8>,
    region: &Region,
    padding: u32,
    scale: u32,
) -> Result<Vec<u8>, PixelError> {
    let (_, height, width, channels) = output.dim();
    let needed = |length: u32| ((length + 2 * padding) * scale) as usize;
    if channels != 3 || height < needed(region.height()) || width < needed(region.width()) {
        return Err(PixelError::InvalidOutput(format!("it has the shape {:?}", output.shape())));
    }
    let samples = output
        .as_slice()
        .ok_or_else(|| PixelError::InvalidOutput("it is not contiguous".to_owned()))?;
    let [offset, columns, rows] =
        [padding, region.width(), region.height()].map(|length| (length * scale) as usize);
    let mut pixels = Vec::with_capacity(columns * rows * 3);
    for row in samples.chunks_exact(width * 3).skip(offset).take(rows) {
        pixels.extend_from_slice(&row[offset * 3..(offset + columns) * 3]);
    }
    Ok(pixels)
}

fn mixed(
    own: &[u8],
    output: &ArrayRef4<u8>,
    tile: &PaddedTile,
    region: &Region,
    layout: OutputLayout,
) -> Result<Vec<u8>, PixelError> {
    let correction = Correction::new(output, &tile.gray(own), layout.scale, layout.window(region))?;
    let computed = corrected_region(&correction, region, layout);
    let mut made: Vec<f32> =
        computed.as_chunks::<3>().0.iter().map(|pixel| f32::from(mean(*pixel))).collect();
    // A net of scale 1 is meant to change its input.
    if layout.scale > 1 {
        let trust = Trust::new(output, own, tile.width, region, layout);
        trust.keep_soft(&mut made, own, tile.width, region, layout);
    }
    let certain = alpha::certain_values(own, tile.width);
    let (factor, padding) = (layout.factor as usize, layout.padding as usize);
    let width = region.width() as usize * factor;
    let samples = made.into_iter().enumerate().map(|(at, alpha)| {
        let (x, y) = (at % width / factor + padding, at / width / factor + padding);
        certain[y * tile.width + x].unwrap_or((alpha + 0.5) as u8)
    });
    Ok(samples.collect())
}

/// Returns the mean of a pixel's samples, rounded.
fn mean(pixel: [u8; 3]) -> u8 {
    let sum: u16 = pixel.into_iter().map(u16::from).sum();
    ((sum + 1) / 3) as u8
}

#[cfg(test)]
mod tests {
    use ndarray::Array4;

    use super::*;

    const REGION: Region = Region { x: 0..2, y: 0..1 };

    fn output() -> Array4<u8> {
        Array4::from_shape_fn((1, 3, 4, 3), |(_, y, x, channel)| (y * 60 + x * 10 + channel) as u8)
    }

    #[test]
    fn a_region_is_the_output_without_its_padding() {
        let output = output();
        assert_eq!(region_of(&output, &REGION, 1, 1).unwrap(), [70, 71, 72, 80, 81, 82]);
        let small = output.slice(ndarray::s![.., .., ..3, ..]).to_owned();
        let refused = region_of(&small, &REGION, 1, 1);
        assert!(matches!(refused, Err(PixelError::InvalidOutput(_))));
    }

    #[test]
    fn a_flat_picture_stays_flat_when_it_is_resampled() {
        let layout = OutputLayout { padding: 8, scale: 4, factor: 2 };
        let flat = Array4::from_elem((1, 17 * 4, 18 * 4, 3), 77);
        let input = Array4::from_elem((1, 17, 18, 3), 77);
        let window = layout.window(&REGION);
        let correction = Correction::new(&flat, &input, 4, window).unwrap();
        assert_eq!(corrected_region(&correction, &REGION, layout), [77; 4 * 2 * 3]);
    }

    #[test]
    fn a_gray_sample_is_the_rounded_mean() {
        for (pixel, expected) in [([1, 1, 2], 1), ([1, 2, 2], 2), ([255; 3], 255), ([0, 0, 1], 0)] {
            assert_eq!(mean(pixel), expected, "{pixel:?}");
        }
    }
}
