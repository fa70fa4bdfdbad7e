//! Resizes interleaved 8-bit samples.
//!
//! `fast_image_resize` is generic over pixels and images, so the crate that calls it compiles every filter, at every change
//! and again for its unit tests. This crate calls it for three types of pixels and nothing else.

use std::error::Error;

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3, U8x4};
use fast_image_resize::{PixelTrait, Resizer};

pub use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions};

/// Resizes samples of 1, 3 or 4 channels from one size (width, height) to another. With four channels, the last one is
/// alpha.
///
/// # Errors
/// For another number of channels, or if the number of samples does not match `from`.
pub fn resample(
    samples: &[u8],
    channels: usize,
    from: (u32, u32),
    to: (u32, u32),
    options: &ResizeOptions,
) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    match channels {
        1 => convolve::<U8>(samples, from, to, options),
        3 => convolve::<U8x3>(samples, from, to, options),
        4 => convolve::<U8x4>(samples, from, to, options),
        _ => Err(format!("{channels} channels").into()),
    }
}

fn convolve<P: PixelTrait>(
    samples: &[u8],
    from: (u32, u32),
    to: (u32, u32),
    options: &ResizeOptions,
) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let mut made = vec![0; to.0 as usize * to.1 as usize * size_of::<P>()];
    let source = TypedImageRef::<P>::from_buffer(from.0, from.1, samples)?;
    let mut target = TypedImage::<P>::from_buffer(to.0, to.1, &mut made)?;
    Resizer::new().resize_typed(&source, &mut target, Some(options))?;
    Ok(made)
}
