//! What the model made of a tile's colours, and of its alpha, put together as samples.

use ndarray::Array4;

use super::{Alpha, Cut, Region, Trim, alpha, planes, to_byte};
use crate::PixelError;
use crate::encode::Channels;

/// The interleaved samples of a region. `alpha_output` is what the model made of an alpha that is mixed.
///
/// Gray is the mean of what the model made of three equal channels. What is transparent is black, as PNGs
/// want it.
///
/// # Errors
/// [`PixelError::InvalidOutput`] when an output has another size than it must or holds what is no number.
pub fn compose(
    output: &Array4<f32>,
    alpha_output: Option<&Array4<f32>>,
    cut: &Cut,
    region: &Region,
    trim: Trim,
    channels: Channels,
) -> Result<Vec<u8>, PixelError> {
    let [red, green, blue] = planes(output, region, trim)?;
    let count = red.len();
    let alpha = match (&cut.alpha, alpha_output) {
        (Alpha::Opaque, _) => vec![u8::MAX; count],
        (Alpha::Mixed(alpha), Some(output)) => mixed(alpha, output, cut, region, trim)?,
        (Alpha::Clear | Alpha::Mixed(_), _) => vec![0; count],
    };
    let mean = |at: usize| (red[at] + green[at] + blue[at]) / 3.0;
    let mut samples = Vec::with_capacity(count * channels.count());
    for at in 0..count {
        let seen = alpha[at] > 0;
        let byte = |value: f32| if seen { to_byte(value) } else { 0 };
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
    cut: &Cut,
    region: &Region,
    trim: Trim,
) -> Result<Vec<u8>, PixelError> {
    let [red, green, blue] = planes(output, region, trim)?;
    let sure = alpha::certainties(own, cut.width);
    let (factor, padding) = (trim.factor() as usize, trim.padding as usize);
    let width = region.width() as usize * factor;
    Ok((0..red.len())
        .map(|at| {
            let (x, y) = (at % width / factor + padding, at / width / factor + padding);
            sure[y * cut.width + x]
                .unwrap_or_else(|| to_byte((red[at] + green[at] + blue[at]) / 3.0))
        })
        .collect())
}
