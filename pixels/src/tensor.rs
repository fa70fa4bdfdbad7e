//! Converts a picture to the input tensor of a model.

use ndarray::Array4;

use crate::Picture;
use crate::resize::resize_rgb;

/// The divisor of samples before normalization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Divisor {
    /// The largest sample of the resized picture, over all channels; at least 1.
    Max,
    /// A constant above 0.
    Constant(f32),
}

/// Normalizes each channel: `(sample / divide_by - mean) / std`, with samples 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalization {
    /// The first divisor, above 0.
    pub divide_by: f32,
    /// The mean of R, G and B after the first division.
    pub mean: [f32; 3],
    /// The standard deviation of R, G and B, above 0.
    pub std: [f32; 3],
}

impl Normalization {
    /// Returns the normalized value of each 8-bit sample of a channel.
    pub(crate) fn table(&self, channel: usize) -> [f32; 256] {
        std::array::from_fn(|sample| {
            (sample as f32 / self.divide_by - self.mean[channel]) / self.std[channel]
        })
    }
}

/// Resizes a picture to `size` (width, height) without keeping its aspect ratio, and normalizes it to f32
/// `[1, 3, height, width]`. Ignores alpha.
pub fn to_tensor(
    picture: &Picture,
    size: (u32, u32),
    divide_by: Divisor,
    mean: [f32; 3],
    std: [f32; 3],
) -> Array4<f32> {
    let (width, height) = (size.0 as usize, size.1 as usize);
    let resized = resize_rgb(
        &picture.rgb,
        (picture.width as usize, picture.height as usize),
        (width, height),
    );
    let divide_by = match divide_by {
        Divisor::Constant(constant) => constant,
        // At least 1, so that a black picture stays black.
        Divisor::Max => f32::from(resized.iter().copied().max().unwrap_or(1).max(1)),
    };
    let normalization = Normalization { divide_by, mean, std };
    let mut tensor = Array4::zeros((1, 3, height, width));
    for channel in 0..3 {
        let table = normalization.table(channel);
        let plane = tensor.slice_mut(ndarray::s![0, channel, .., ..]);
        for (value, pixel) in plane.into_iter().zip(resized.chunks_exact(3)) {
            *value = table[usize::from(pixel[channel])];
        }
    }
    tensor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(rgb: [u8; 6]) -> Array4<f32> {
        let picture =
            Picture { width: 2, height: 1, rgb: rgb.to_vec(), alpha: None, gray: false, icc: None };
        to_tensor(&picture, (2, 1), Divisor::Max, [0.5, 0.0, 0.0], [0.5, 1.0, 2.0])
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
