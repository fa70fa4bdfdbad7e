//! Converts a picture to the input of a model.

use ndarray::Array4;

use crate::Picture;
use crate::framing::Framing;
use crate::resize::resize_rgb;

/// The divisor of samples before normalization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Divisor {
    /// The largest sample of the resized picture with its border, over all channels; at least 1.
    Max,
    /// A constant above 0.
    Constant(f32),
}

/// Normalizes each channel: `(sample / divide_by - mean) / std`, with samples 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalization {
    pub divide_by: Divisor,
    /// The mean of R, G and B after the first division.
    pub mean: [f32; 3],
    /// The standard deviation of R, G and B, above 0.
    pub std: [f32; 3],
}

impl Normalization {
    /// Leaves samples as they are.
    pub const NONE: Self =
        Self { divide_by: Divisor::Constant(1.0), mean: [0.0; 3], std: [1.0; 3] };
}

/// Resizes a picture to `size` (width, height) as `framing` says, to bytes `[1, height, width, 3]`. Ignores alpha: see
/// [`Picture::on_gray`].
pub fn to_bytes(picture: &Picture, size: (u32, u32), framing: Framing) -> Array4<u8> {
    let shape = (1, size.1 as usize, size.0 as usize, 3);
    Array4::from_shape_vec(shape, framed(picture, size, framing)).expect("three bytes per pixel")
}

/// Resizes a picture to `size` (width, height) as `framing` says, and normalizes it to f32 `[1, 3, height, width]`.
/// Ignores alpha: see [`Picture::on_gray`].
pub fn to_tensor(
    picture: &Picture,
    size: (u32, u32),
    framing: Framing,
    normalization: &Normalization,
) -> Array4<f32> {
    let (width, height) = (size.0 as usize, size.1 as usize);
    let Normalization { divide_by, mean, std: deviation } = normalization;
    let resized = framed(picture, size, framing);
    let divide_by = match divide_by {
        Divisor::Constant(constant) => *constant,
        // At least 1, so that a black picture stays black.
        Divisor::Max => f32::from(resized.iter().copied().max().unwrap_or(1).max(1)),
    };
    let mut tensor = Array4::zeros((1, 3, height, width));
    for channel in 0..3 {
        let table: [f32; 256] = std::array::from_fn(|sample| {
            (sample as f32 / divide_by - mean[channel]) / deviation[channel]
        });
        let plane = tensor.slice_mut(ndarray::s![0, channel, .., ..]);
        for (value, pixel) in plane.into_iter().zip(resized.chunks_exact(3)) {
            *value = table[usize::from(pixel[channel])];
        }
    }
    tensor
}

/// Resizes a picture to `size` and returns R, G, B, with the border of a letterbox.
fn framed(picture: &Picture, size: (u32, u32), framing: Framing) -> Vec<u8> {
    let from = (picture.width as usize, picture.height as usize);
    let frame = framing.frame((picture.width, picture.height), size);
    let content = frame.content();
    let resized = resize_rgb(&picture.rgb, from, (content.0 as usize, content.1 as usize));
    let color = match framing {
        Framing::Letterbox { color, .. } if !frame.is_full() => color,
        Framing::Letterbox { .. } | Framing::Stretch => return resized,
    };
    let mut out = color.repeat(size.0 as usize * size.1 as usize);
    let (left, stride) = (frame.x.start as usize * 3, content.0 as usize * 3);
    let rows = out.chunks_exact_mut(size.0 as usize * 3).skip(frame.y.start as usize);
    for (row, resized) in rows.zip(resized.chunks_exact(stride)) {
        row[left..left + stride].copy_from_slice(resized);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Align;

    fn tensor(rgb: [u8; 6]) -> Array4<f32> {
        let picture =
            Picture { width: 2, height: 1, rgb: rgb.to_vec(), alpha: None, gray: false, icc: None };
        let (mean, std) = ([0.5, 0.0, 0.0], [0.5, 1.0, 2.0]);
        let normalization = Normalization { divide_by: Divisor::Max, mean, std };
        to_tensor(&picture, (2, 1), Framing::Stretch, &normalization)
    }

    #[test]
    fn a_letterbox_keeps_the_aspect_ratio_and_has_a_border() {
        let picture =
            Picture { width: 2, height: 1, rgb: vec![9; 6], alpha: None, gray: false, icc: None };
        let framing = Framing::Letterbox { color: [1, 2, 3], align: Align::Center };
        let tensor = to_tensor(&picture, (4, 4), framing, &Normalization::NONE);
        let bytes = to_bytes(&picture, (4, 4), framing);
        let floats = bytes.permuted_axes([0, 3, 1, 2]).mapv(f32::from);
        assert_eq!(tensor, floats);
        for (channel, border) in [(0, 1.0), (1, 2.0), (2, 3.0)] {
            let plane = tensor.slice(ndarray::s![0, channel, .., 0]);
            assert_eq!(plane.to_vec(), [border, 9.0, 9.0, border]);
        }
    }

    #[test]
    fn each_channel_is_normalized() {
        let tensor = tensor([200, 100, 0, 0, 0, 50]);
        assert_eq!(tensor.shape(), [1, 3, 1, 2]);
        assert_eq!(tensor.into_raw_vec_and_offset().0, [1.0, -1.0, 0.5, 0.0, 0.0, 0.125]);
    }

    #[test]
    fn a_black_picture_is_finite() {
        let tensor = tensor([0; 6]);
        assert!(tensor.iter().all(|value| value.is_finite()));
    }
}
