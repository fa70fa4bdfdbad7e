//! A picture to the tensor that a model takes, as its manifest says.

use ndarray::Array4;

use super::Picture;
use super::shrink::resize_rgb;
use crate::models::manifest::{Divisor, Layout, PictureInput, Resize};

/// Resizes a picture to the model's size, without keeping its aspect, and normalises it to f32
/// `[1, 3, height, width]`. The picture's own alpha is not looked at.
pub fn to_tensor(picture: &Picture, input: &PictureInput) -> Array4<f32> {
    let Resize::Bilinear = input.resize;
    let size = (picture.width as usize, picture.height as usize);
    let resized = resize_rgb(&picture.rgb, size, (input.width as usize, input.height as usize));
    let divisor = match input.divide_by {
        Divisor::Constant(constant) => constant,
        // A black picture stays black.
        Divisor::Max => f32::from(resized.iter().copied().max().unwrap_or(1).max(1)),
    };
    match input.layout {
        Layout::Nchw => normalise(&resized, divisor, input),
    }
}

fn normalise(rgb: &[u8], divisor: f32, input: &PictureInput) -> Array4<f32> {
    let (width, height) = (input.width as usize, input.height as usize);
    let mut tensor = Array4::zeros((1, 3, height, width));
    for channel in 0..3 {
        let table: [f32; 256] = std::array::from_fn(|sample| {
            (sample as f32 / divisor - input.mean[channel]) / input.std[channel]
        });
        let plane = tensor.slice_mut(ndarray::s![0, channel, .., ..]);
        for (value, pixel) in plane.into_iter().zip(rgb.chunks_exact(3)) {
            *value = table[usize::from(pixel[channel])];
        }
    }
    tensor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::manifest::Element;

    fn input(divide_by: Divisor) -> PictureInput {
        PictureInput {
            name: "input".to_owned(),
            layout: Layout::Nchw,
            width: 2,
            height: 1,
            element: Element::F32,
            resize: Resize::Bilinear,
            divide_by,
            mean: [0.5, 0.0, 0.0],
            std: [0.5, 1.0, 2.0],
        }
    }

    fn picture(rgb: [u8; 6]) -> Picture {
        Picture { width: 2, height: 1, rgb: rgb.to_vec(), alpha: None, gray: false, icc: None }
    }

    #[test]
    fn samples_are_divided_shifted_and_scaled_by_channel() {
        let tensor = to_tensor(&picture([200, 100, 0, 0, 0, 50]), &input(Divisor::Max));
        assert_eq!(tensor.shape(), [1, 3, 1, 2]);
        assert_eq!(tensor.into_raw_vec_and_offset().0, [1.0, -1.0, 0.5, 0.0, 0.0, 0.125]);
    }

    #[test]
    fn a_black_picture_is_finite() {
        let tensor = to_tensor(&picture([0; 6]), &input(Divisor::Max));
        assert!(tensor.iter().all(|value| value.is_finite()));
    }
}
