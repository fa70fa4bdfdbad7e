//! A Gaussian blur whose cost hardly depends on its width: the picture is scaled down, blurred, and scaled up again.

use image::{DynamicImage, GrayImage, RgbImage};
use retouch_resample::{FilterType, ResizeAlg, ResizeOptions};

use super::canvas::Canvas;
use crate::PixelError;
use crate::resize::convolve_image;

/// Minimum standard deviation after scaling down, in pixels. A Gaussian as wide as this loses nothing visible when it
/// is sampled once per pixel and interpolated.
const LEAST_SIGMA: f64 = 2.0;
/// The variance that scaling down by a factor of `f` adds, in units of `f²`: the variance of a triangle of width `2f`.
const VARIANCE_OF_SCALING: f64 = 1.0 / 6.0;
/// A blur with less standard deviation, in pixels, is invisible.
const INVISIBLE_SIGMA: f64 = 0.2;

/// What lies beyond the border of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    /// The picture, mirrored again and again.
    Mirrored,
    /// Zeros.
    Nothing,
}

/// A picture that is about to be blurred, scaled down.
pub(super) struct Soft {
    /// 8-bit gray or RGB.
    small: DynamicImage,
    /// Its pixels per pixel of the picture, across and down.
    scale: (f64, f64),
    /// The standard deviation of the blur that remains, in its pixels.
    sigma: f64,
}

/// Returns by how much a picture is scaled down for a blur of this standard deviation in pixels.
pub(super) fn reduction(sigma: f64) -> u32 {
    (sigma / LEAST_SIGMA).floor().max(1.0) as u32
}

impl Soft {
    /// Prepares an 8-bit gray or RGB picture for a blur of this standard deviation in pixels.
    pub fn new(picture: DynamicImage, sigma: f64) -> Result<Self, PixelError> {
        let factor = reduction(sigma);
        if factor == 1 {
            return Ok(Self { small: picture, scale: (1.0, 1.0), sigma });
        }
        let (width, height) = (picture.width(), picture.height());
        let small_size = (width.div_ceil(factor), height.div_ceil(factor));
        let small = resize(&picture, small_size, FilterType::Bilinear, None)?;
        let sigma = ((sigma / f64::from(factor)).powi(2) - VARIANCE_OF_SCALING).sqrt();
        let scale = |small: u32, side: u32| f64::from(small) / f64::from(side);
        let scale = (scale(small_size.0, width), scale(small_size.1, height));
        Ok(Self { small, scale, sigma })
    }

    /// Blurs the part of the picture that `canvas` shows.
    pub fn render(self, canvas: &Canvas, beyond: Beyond) -> Result<DynamicImage, PixelError> {
        // The blur of a pixel reaches this far, and so does its interpolation.
        let reach = (3.0 * self.sigma).ceil() as i64 + 2;
        let across = Span::new(canvas.left, canvas.width, self.scale.0, reach);
        let down = Span::new(canvas.top, canvas.height, self.scale.1, reach);
        let mut part = extended(&self.small, &across, &down, beyond)?;
        drop(self.small);
        if self.sigma >= INVISIBLE_SIGMA {
            part = part.blur(self.sigma as f32);
        }
        let crop = Some([across.start, down.start, across.length, down.length]);
        resize(&part, (canvas.width, canvas.height), FilterType::CatmullRom, crop)
    }
}

/// The pixels of the small picture along one side of a canvas.
struct Span {
    /// The first pixel; it may lie beyond the border.
    first: i64,
    count: usize,
    /// Where the canvas begins, in pixels after the first.
    start: f64,
    /// The length of the canvas.
    length: f64,
}

impl Span {
    fn new(position: i64, length: u32, scale: f64, reach: i64) -> Self {
        let start = position as f64 * scale;
        let length = f64::from(length) * scale;
        let first = start.floor() as i64 - reach;
        let end = (start + length).ceil() as i64 + reach;
        Self { first, count: (end - first) as usize, start: start - first as f64, length }
    }

    /// Returns which pixel of a side of `length` pixels is at each place; `None` beyond the border if that is empty.
    fn sources(&self, length: u32, beyond: Beyond) -> Vec<Option<usize>> {
        let length = i64::from(length);
        let source = |at: i64| match beyond {
            Beyond::Nothing => (0..length).contains(&at).then_some(at as usize),
            Beyond::Mirrored => {
                let at = at.rem_euclid(2 * length);
                Some(at.min(2 * length - 1 - at) as usize)
            }
        };
        (self.first..self.first + self.count as i64).map(source).collect()
    }
}

/// Returns a part of a picture that may extend beyond its border.
fn extended(
    picture: &DynamicImage,
    across: &Span,
    down: &Span,
    beyond: Beyond,
) -> Result<DynamicImage, PixelError> {
    let (bytes, size) = (picture.as_bytes(), picture.color().bytes_per_pixel() as usize);
    let stride = picture.width() as usize * size;
    let columns = across.sources(picture.width(), beyond);
    let mut part = vec![0; across.count * down.count * size];
    let rows = down.sources(picture.height(), beyond);
    for (to, y) in part.chunks_exact_mut(across.count * size).zip(rows) {
        let Some(y) = y else { continue };
        let row = &bytes[y * stride..][..stride];
        for (to, x) in to.chunks_exact_mut(size).zip(&columns) {
            if let Some(x) = x {
                to.copy_from_slice(&row[x * size..][..size]);
            }
        }
    }
    let (width, height) = (across.count as u32, down.count as u32);
    let part = if size == 1 {
        GrayImage::from_raw(width, height, part).map(DynamicImage::ImageLuma8)
    } else {
        RgbImage::from_raw(width, height, part).map(DynamicImage::ImageRgb8)
    };
    part.ok_or_else(|| PixelError::Internal("a picture to blur has another size".to_owned()))
}

/// Scales a picture, or a part of it: left, top, width, height.
fn resize(
    from: &DynamicImage,
    to: (u32, u32),
    filter: FilterType,
    crop: Option<[f64; 4]>,
) -> Result<DynamicImage, PixelError> {
    let mut options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter));
    if let Some([left, top, width, height]) = crop {
        options = options.crop(left, top, width, height);
    }
    convolve_image(from, to, &options)
}

#[cfg(test)]
mod tests {
    use image::Luma;

    use super::*;

    fn render(picture: &GrayImage, sigma: f64, canvas: &Canvas, beyond: Beyond) -> GrayImage {
        let soft = Soft::new(DynamicImage::ImageLuma8(picture.clone()), sigma).expect("prepared");
        soft.render(canvas, beyond).expect("rendered").into_luma8()
    }

    /// An edge from 0 to 240 at column 150 becomes the integral of a Gaussian.
    #[test]
    fn an_edge_becomes_the_integral_of_a_gaussian() {
        let edge = GrayImage::from_fn(300, 40, |x, _| Luma([if x < 150 { 0 } else { 240 }]));
        let canvas = Canvas::of_picture((300, 40));
        for sigma in [0.7, 2.0, 3.9, 4.0, 7.3, 20.0] {
            let soft = render(&edge, sigma, &canvas, Beyond::Mirrored);
            for (deviations, share) in
                [(-2.0, 0.0228), (-1.0, 0.1587), (1.0, 0.8413), (2.0, 0.9772)]
            {
                // Between pixels, linearly.
                let at = 149.5 + sigma * deviations;
                let value = |x: f64| f64::from(soft.get_pixel(x as u32, 20).0[0]);
                let part = at - at.floor();
                let made = value(at.floor()) * (1.0 - part) + value(at.ceil()) * part;
                assert!((made - 240.0 * share).abs() < 8.0, "{sigma}, {deviations}: {made}");
            }
        }
    }

    #[test]
    fn a_canvas_shows_its_part_wherever_it_begins() {
        let bump = GrayImage::from_fn(200, 120, |x, y| {
            Luma([if x.abs_diff(100) < 30 && y.abs_diff(60) < 20 { 255 } else { 0 }])
        });
        let whole = render(&bump, 9.0, &Canvas::of_picture((200, 120)), Beyond::Nothing);
        let canvas = Canvas { left: 61, top: -17, width: 60, height: 100 };
        let part = render(&bump, 9.0, &canvas, Beyond::Nothing);
        for (x, y, pixel) in part.enumerate_pixels().filter(|(_, y, _)| *y >= 17) {
            let same = whole.get_pixel(x + 61, y - 17).0[0];
            assert!(pixel.0[0].abs_diff(same) <= 2, "{x}, {y}: {pixel:?} and {same}");
        }
    }

    #[test]
    fn beyond_the_border_is_the_mirrored_picture_or_nothing() {
        let ramp = GrayImage::from_fn(4, 1, |x, _| Luma([10 + x as u8]));
        let canvas = Canvas { left: -5, top: 0, width: 14, height: 1 };
        let mirrored = render(&ramp, 0.0, &canvas, Beyond::Mirrored);
        let period = [13, 13, 12, 11, 10, 10, 11, 12, 13, 13, 12, 11, 10, 10];
        assert_eq!(mirrored.as_raw(), &period);
        let alone = render(&ramp, 0.0, &canvas, Beyond::Nothing);
        assert_eq!(alone.as_raw(), &[0, 0, 0, 0, 0, 10, 11, 12, 13, 0, 0, 0, 0, 0]);
    }
}
