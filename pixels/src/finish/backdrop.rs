//! Puts a background and a shadow behind a cutout.

use bytes::Bytes;
use image::{DynamicImage, GrayImage, RgbImage, RgbaImage};
use retouch_resample::{FilterType, ResizeAlg, ResizeOptions};

use super::canvas::Canvas;
use super::error::FinishError;
use super::gradient::Gradient;
use super::options::Background;
use super::soft::{Beyond, Soft};
use crate::over::over;
use crate::resize::convolve_image;
use crate::{Limits, Picture, PixelError, decode, icc};

/// A background, ready to be put behind a canvas.
pub(super) enum Backdrop {
    Nothing,
    Color([u8; 3]),
    Gradient(Gradient),
    /// A picture of the canvas's size.
    Opaque(RgbImage),
    /// A picture of the canvas's size.
    Translucent(RgbaImage),
}

impl Backdrop {
    /// Prepares a background in the color space of `profile`, which describes the result. `original` is the picture that the
    /// result was made from.
    pub fn prepare(
        background: &Background,
        original: Option<Picture>,
        canvas: &Canvas,
        limits: Limits,
        profile: Option<&[u8]>,
    ) -> Result<Self, FinishError> {
        let converted = |mut color: [u8; 3]| {
            icc::convert(&mut color, None, profile);
            color
        };
        Ok(match background {
            Background::Color(color) => Self::Color(converted(*color)),
            Background::Gradient(Gradient { from, to, angle }) => Self::Gradient(Gradient {
                from: converted(*from),
                to: converted(*to),
                angle: *angle,
            }),
            Background::Blur { percent } => {
                let original = original.ok_or_else(|| internal("there is no picture to blur"))?;
                let longer = original.width.max(original.height);
                let sigma = f64::from(longer) * percent / 100.0;
                let seen = DynamicImage::ImageRgb8(without_alpha(original.on_gray())?);
                let soft = Soft::new(seen, sigma)?;
                Self::Opaque(soft.render(canvas, Beyond::Mirrored)?.into_rgb8())
            }
            Background::Picture(file) => {
                drop(original);
                let picture = read(file, limits, profile)?;
                match cover(&picture, (canvas.width, canvas.height))? {
                    DynamicImage::ImageRgb8(opaque) => Self::Opaque(opaque),
                    translucent => Self::Translucent(translucent.into_rgba8()),
                }
            }
        })
    }
}

/// Composites `picture` over its shadow over the background. The shadow has the picture's size.
pub(super) fn compose(picture: &mut RgbaImage, backdrop: &Backdrop, shadow: Option<&GrayImage>) {
    match backdrop {
        Backdrop::Nothing if shadow.is_none() => {}
        Backdrop::Nothing => put_over(picture, shadow, |_, _| [0; 4]),
        Backdrop::Color(color) => put_over(picture, shadow, |_, _| opaque(*color)),
        Backdrop::Gradient(gradient) => {
            let colors = gradient.colors(picture.dimensions());
            put_over(picture, shadow, |x, y| opaque(colors(x, y)));
        }
        Backdrop::Opaque(behind) => {
            put_over(picture, shadow, |x, y| opaque(behind.get_pixel(x, y).0));
        }
        Backdrop::Translucent(behind) => {
            put_over(picture, shadow, |x, y| behind.get_pixel(x, y).0);
        }
    }
}

fn put_over(
    picture: &mut RgbaImage,
    shadow: Option<&GrayImage>,
    behind: impl Fn(u32, u32) -> [u8; 4],
) {
    let width = picture.width() as usize;
    for (y, row) in picture.chunks_exact_mut(width * 4).enumerate() {
        let shadow = shadow.map(|shadow| &shadow.as_raw()[y * width..(y + 1) * width]);
        for (x, pixel) in row.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            // Most pixels are opaque or show nothing but the background.
            if pixel[3] == u8::MAX {
                continue;
            }
            let mut below = behind(x as u32, y as u32);
            if let Some(shadow) = shadow {
                below = over([0, 0, 0, shadow[x]], below);
            }
            *pixel = over(*pixel, below);
        }
    }
}

const fn opaque([r, g, b]: [u8; 3]) -> [u8; 4] {
    [r, g, b, u8::MAX]
}

fn read(file: &Bytes, limits: Limits, profile: Option<&[u8]>) -> Result<DynamicImage, FinishError> {
    let mut picture = decode::decode(file, &limits).map_err(FinishError::Background)?;
    icc::convert(&mut picture.rgb, picture.icc.as_deref(), profile);
    let Some(alpha) = picture.alpha.take() else {
        return Ok(DynamicImage::ImageRgb8(without_alpha(picture)?));
    };
    let pixels = picture.rgb.as_chunks::<3>().0.iter().zip(alpha);
    let rgba = pixels.flat_map(|([r, g, b], alpha)| [*r, *g, *b, alpha]).collect();
    let picture = RgbaImage::from_raw(picture.width, picture.height, rgba);
    Ok(DynamicImage::ImageRgba8(picture.ok_or_else(|| internal("a background has another size"))?))
}

fn without_alpha(picture: Picture) -> Result<RgbImage, PixelError> {
    RgbImage::from_raw(picture.width, picture.height, picture.rgb)
        .ok_or_else(|| internal("a picture has another size"))
}

/// Scales a picture so that it covers a canvas of this size, and cuts off what is left over on both sides.
fn cover(picture: &DynamicImage, (width, height): (u32, u32)) -> Result<DynamicImage, PixelError> {
    let shrinks = picture.width() > width && picture.height() > height;
    let filter = if shrinks { FilterType::Lanczos3 } else { FilterType::CatmullRom };
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(filter))
        .fit_into_destination(Some((0.5, 0.5)));
    convolve_image(picture, (width, height), &options)
}

fn internal(text: &str) -> PixelError {
    PixelError::Internal(text.to_owned())
}
