//! Converts pictures and masks to tensors and back.

use ndarray::{Array2, Array3, Array4, ArrayView2, ArrayViewD, Ix4, s};

use super::error::DiffusionError;
use super::net::{Input, Net, Port};
use super::request::MaskToLatents;

/// Converts sRGB samples to `[1, 3, height, width]` in -1..=1.
pub fn to_tensor(image: &Array3<u8>) -> Array4<f32> {
    let (height, width, _) = image.dim();
    Array4::from_shape_fn((1, 3, height, width), |(_, channel, y, x)| {
        f32::from(image[(y, x, channel)]) / 255.0 * 2.0 - 1.0
    })
}

/// Returns the picture with masked pixels set to mid-gray, which is 0.
pub fn without_masked(tensor: &Array4<f32>, mask: &Array2<bool>) -> Array4<f32> {
    let mut kept = tensor.clone();
    for mut plane in kept.slice_mut(s![0, .., .., ..]).outer_iter_mut() {
        plane.zip_mut_with(mask, |value, masked| {
            if *masked {
                *value = 0.0;
            }
        });
    }
    kept
}

/// Reduces the mask to the size of the latents, `[1, 1, height / scale, width / scale]`; 1 marks latents to repaint.
pub fn mask_to_latents(mask: &Array2<bool>, scale: usize, method: MaskToLatents) -> Array4<f32> {
    let (height, width) = mask.dim();
    Array4::from_shape_fn((1, 1, height / scale, width / scale), |(_, _, y, x)| {
        let block: ArrayView2<'_, bool> =
            mask.slice(s![y * scale..(y + 1) * scale, x * scale..(x + 1) * scale]);
        let is_on = match method {
            MaskToLatents::Nearest => block[(0, 0)],
            MaskToLatents::MaxPool => block.iter().any(|on| *on),
        };
        f32::from(u8::from(is_on))
    })
}

/// Shrinks the mask with soft edges, as torch's `interpolate(mode="bilinear")`: bilinear, pixel centers aligned, no
/// antialiasing.
pub fn shrink_softly(mask: &Array2<bool>, height: usize, width: usize) -> Array2<f32> {
    let (rows, columns) = mask.dim();
    let (vertical, horizontal) = (taps(height, rows), taps(width, columns));
    let at = |y: usize, x: usize| f32::from(u8::from(mask[(y, x)]));
    Array2::from_shape_fn((height, width), |(y, x)| {
        let ((y0, y1, fy), (x0, x1, fx)) = (vertical[y], horizontal[x]);
        let above = at(y0, x0) * (1.0 - fx) + at(y0, x1) * fx;
        let below = at(y1, x0) * (1.0 - fx) + at(y1, x1) * fx;
        above * (1.0 - fy) + below * fy
    })
}

/// Returns, for every target index, two source indices and the weight of the second.
fn taps(target: usize, source: usize) -> Vec<(usize, usize, f32)> {
    let ratio = source as f64 / target as f64;
    (0..target)
        .map(|index| {
            let position = ((index as f64 + 0.5) * ratio - 0.5).max(0.0);
            let first = (position.floor() as usize).min(source - 1);
            (first, (first + 1).min(source - 1), (position - position.floor()) as f32)
        })
        .collect()
}

/// Converts a decoder's output, `[1, 3, height, width]` in -1..=1, to `[height, width, 3]` in 0..=1; `None` if it has
/// another shape.
fn from_tensor(decoded: ArrayViewD<'_, f32>) -> Option<Array3<f32>> {
    let planes = decoded.into_dimensionality::<Ix4>().ok()?;
    let (1, 3, height, width) = planes.dim() else { return None };
    Some(Array3::from_shape_fn((height, width, 3), |(y, x, channel)| {
        (planes[(0, channel, y, x)] / 2.0 + 0.5).clamp(0.0, 1.0)
    }))
}

/// Runs a VAE decoder on latents and returns R, G and B of `[height, width, 3]` in 0..=1.
///
/// # Errors
/// [`DiffusionError::Unsupported`] if the output is not a picture, and the errors of [`Net::run`].
pub fn decode(
    decoder: &mut Net,
    input: &Port,
    output: &Port,
    latents: &Array4<f32>,
) -> Result<Array3<f32>, DiffusionError> {
    let made = decoder.run(&[(input, Input::Floats(latents.view().into_dyn()))], output)?;
    from_tensor(made.view()).ok_or_else(|| {
        let reason = format!("returned shape {:?}, which is not a picture", made.shape());
        DiffusionError::unsupported(decoder.part(), reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thin_stroke_survives_max_pooling_but_not_nearest() {
        let mut mask = Array2::from_elem((16, 16), false);
        mask[(3, 11)] = true;
        let pooled = mask_to_latents(&mask, 8, MaskToLatents::MaxPool);
        assert_eq!(pooled.into_raw_vec_and_offset().0, [0.0, 1.0, 0.0, 0.0]);
        let nearest = mask_to_latents(&mask, 8, MaskToLatents::Nearest);
        assert!(nearest.iter().all(|value| *value == 0.0));
    }

    #[test]
    fn a_shrunken_mask_has_soft_edges() {
        let mask = Array2::from_shape_fn((4, 8), |(_, x)| x >= 4);
        let soft = shrink_softly(&mask, 2, 3);
        assert_eq!(soft.row(0).to_vec(), [0.0, 0.5, 1.0]);
    }

    #[test]
    fn masked_pixels_become_mid_gray() {
        let image = Array3::from_elem((1, 2, 3), 255);
        let kept =
            without_masked(&to_tensor(&image), &Array2::from_shape_fn((1, 2), |(_, x)| x == 1));
        assert_eq!(kept.into_raw_vec_and_offset().0, [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    }
}
