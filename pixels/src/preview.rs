//! Previews: copies for the screen, of at most [`PREVIEW_SIDE`] pixels per side, as lossy WebP files.
//!
//! Each pixel is the average of the area that it covers, colors weighted by alpha. Rows are summed up as they come, so
//! a preview needs memory for its own pixels only.

use std::ops::Range;

use bytes::Bytes;
use pulp::{Arch, NullaryFnOnce};

use crate::encode::{Channels, Effort, Rgba, interleave, lossy_webp};
use crate::span::span;
use crate::thumbnail::{Thumbnail, small_profile};
use crate::{Picture, PixelError, icc};

/// Maximum, in pixels.
pub const PREVIEW_SIDE: u32 = 1600;
/// 1 to 100.
const PREVIEW_QUALITY: u8 = 78;
/// The quality of a preview's alpha, 1 to 100. Without loss, soft alpha would take twice as long to encode.
const PREVIEW_ALPHA_QUALITY: u8 = 80;
/// Peak memory per pixel of a preview, in bytes: the sample and the encoder's copies of it.
const BYTES_PER_PIXEL: u64 = 20;

/// Returns the peak memory for making the preview of a picture, in bytes.
pub fn memory_bytes(width: u32, height: u32) -> u64 {
    match out_size((width, height)) {
        Some((width, height)) => u64::from(width) * u64::from(height) * BYTES_PER_PIXEL,
        None => 0,
    }
}

/// Returns the width and height of the preview; `None` if the picture is small enough to be its own.
fn out_size((width, height): (u32, u32)) -> Option<(u32, u32)> {
    let longest = width.max(height);
    let side = |side: u32| {
        let scaled = u64::from(side) * u64::from(PREVIEW_SIDE) + u64::from(longest) / 2;
        ((scaled / u64::from(longest)) as u32).max(1)
    };
    (longest > PREVIEW_SIDE).then(|| (side(width), side(height)))
}

pub struct Preview {
    size: (u32, u32),
    channels: Channels,
    /// Width and height of the preview, in pixels.
    out: (u32, u32),
    /// The source rows of the row in the making: premultiplied R, G, B and alpha, 0 to 255, or fewer channels.
    sums: Vec<f32>,
    /// The part of `sums` outside which nothing was added.
    span: Range<usize>,
    /// The next source row.
    row: u32,
    /// The source columns of each column.
    columns: Vec<Columns>,
    /// R, G, B, A of the finished rows.
    pixels: Vec<u8>,
}

impl Preview {
    /// Creates an empty preview for a picture of `size` (width, height); `None` if the picture is small enough to be its
    /// own.
    pub fn new(size: (u32, u32), channels: Channels) -> Option<Self> {
        let out = out_size(size)?;
        let sums = vec![0.0; size.0 as usize * channels.count()];
        let columns = (0..out.0).map(|x| Columns::of(x, size.0, out.0)).collect();
        let pixels = Vec::with_capacity(out.0 as usize * out.1 as usize * 4);
        Some(Self { size, channels, out, sums, span: 0..0, row: 0, columns, pixels })
    }

    /// Encodes the preview of a whole picture; `None` if the picture is small enough to be its own.
    ///
    /// # Errors
    /// Same as [`Self::encode`].
    pub fn of(picture: &Picture) -> Result<Option<Bytes>, PixelError> {
        let channels = Channels::of(picture.gray, picture.alpha.is_some());
        let Some(mut preview) = Self::new((picture.width, picture.height), channels) else {
            return Ok(None);
        };
        let mut line = Vec::new();
        for y in 0..picture.height as usize {
            interleave(picture, y, &mut line);
            preview.push(&line);
        }
        preview.encode(picture.icc.as_deref().and_then(icc::of_rgb).as_deref()).map(Some)
    }

    /// Adds whole rows of interleaved samples.
    pub fn push(&mut self, rows: &[u8]) {
        for row in rows.chunks_exact(self.sums.len()) {
            let (height, out) = (u64::from(self.size.1), u64::from(self.out.1));
            // In units of 1 / out.1 source rows: the row covers `top..top + out.1`, an output row `size.1` of them.
            let top = u64::from(self.row) * out;
            let edge = (top / height + 1) * height;
            if top + out < edge {
                self.add(row, out);
            } else {
                self.add(row, edge - top);
                self.close_row();
                self.add(row, top + out - edge);
            }
            self.row += 1;
        }
    }

    /// Adds a share of a source row, in units of 1 / `out.1`.
    fn add(&mut self, row: &[u8], share: u64) {
        if share == 0 {
            return;
        }
        let weight = share as f32 / self.out.1 as f32;
        // Transparent black adds nothing.
        let span = span(row);
        self.span = match (self.span.is_empty(), span.is_empty()) {
            (_, true) => self.span.clone(),
            (true, false) => span.clone(),
            (false, false) => self.span.start.min(span.start)..self.span.end.max(span.end),
        };
        let (sums, row) = (&mut self.sums[span.clone()], &row[span]);
        match self.channels {
            Channels::Gray | Channels::Rgb => Arch::new().dispatch(Add { sums, row, weight }),
            Channels::GrayAlpha => Arch::new().dispatch(AddWeighted::<2> { sums, row, weight }),
            Channels::Rgba => Arch::new().dispatch(AddWeighted::<4> { sums, row, weight }),
        }
    }

    /// Averages the summed rows horizontally, and starts the next row.
    fn close_row(&mut self) {
        let rows = self.size.1 as f32 / self.out.1 as f32;
        match self.channels {
            Channels::Gray => self.shrink::<1>(|[v]| [v, v, v, 255.0 * rows]),
            Channels::Rgb => self.shrink::<3>(|[r, g, b]| [r, g, b, 255.0 * rows]),
            Channels::GrayAlpha => self.shrink::<2>(|[v, a]| [v, v, v, a]),
            Channels::Rgba => self.shrink::<4>(|rgba| rgba),
        }
        self.sums[self.span.clone()].fill(0.0);
        self.span = 0..0;
    }

    fn shrink<const N: usize>(&mut self, rgba: impl Fn([f32; N]) -> [f32; 4]) {
        let is_opaque = matches!(self.channels, Channels::Gray | Channels::Rgb);
        let area =
            self.size.0 as f32 / self.out.0 as f32 * (self.size.1 as f32 / self.out.1 as f32);
        let sums = self.sums.as_chunks::<N>().0;
        let span = self.span.start / N..self.span.end.div_ceil(N);
        for columns in &self.columns {
            if !is_opaque && (columns.end <= span.start || columns.first >= span.end) {
                self.pixels.extend([0; 4]);
                continue;
            }
            let mut sum = [0.0; N];
            let mut add = |column: &[f32; N], weight: f32| {
                for (sum, value) in sum.iter_mut().zip(column) {
                    *sum += value * weight;
                }
            };
            if let [first, between @ .., last] = &sums[columns.first..columns.end] {
                add(first, columns.of_first);
                for column in between {
                    add(column, 1.0);
                }
                add(last, columns.of_last);
            } else {
                add(&sums[columns.first], columns.of_first);
            }
            let [r, g, b, alpha] = rgba(sum);
            // Opaque samples were not weighted by alpha.
            let (scale, alpha) = if is_opaque {
                (1.0 / area, 255.0)
            } else {
                (255.0 / alpha.max(1e-6), alpha / area)
            };
            let alpha = (alpha + 0.5) as u8;
            let color = |sum: f32| if alpha == 0 { 0 } else { (sum * scale + 0.5) as u8 };
            self.pixels.extend([color(r), color(g), color(b), alpha]);
        }
    }

    /// Encodes the preview; `icc` is the profile to embed unless it is large.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if rows are missing or the encoder fails.
    pub fn encode(&self, icc: Option<&[u8]>) -> Result<Bytes, PixelError> {
        let (width, height) = self.out;
        let picture = Rgba { width, height, pixels: &self.pixels, icc: small_profile(icc) };
        lossy_webp(picture, PREVIEW_QUALITY, PREVIEW_ALPHA_QUALITY, Effort::Least)
    }

    /// Reduces the preview of a whole picture to the picture's thumbnail.
    pub fn into_thumbnail(self) -> Thumbnail {
        Thumbnail::of_reduced(self.size, self.out.0, self.pixels)
    }
}

/// The source columns that a column of a preview covers.
struct Columns {
    first: usize,
    end: usize,
    /// The covered share of the first column.
    of_first: f32,
    /// The covered share of the last column; for a single column, `of_first` is its share.
    of_last: f32,
}

impl Columns {
    fn of(x: u32, width: u32, out: u32) -> Self {
        let (x, width, out) = (u64::from(x), u64::from(width), u64::from(out));
        // In units of 1 / out source columns, as for rows.
        let (left, right) = (x * width, (x + 1) * width);
        let (first, end) = (left / out, right.div_ceil(out));
        let share = |covered: u64| covered as f32 / out as f32;
        Self {
            first: first as usize,
            end: end as usize,
            of_first: share(right.min((first + 1) * out) - left),
            of_last: share(right - (end - 1) * out),
        }
    }
}

struct Add<'a> {
    sums: &'a mut [f32],
    row: &'a [u8],
    weight: f32,
}

impl NullaryFnOnce for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (sum, value) in self.sums.iter_mut().zip(self.row) {
            *sum += f32::from(*value) * self.weight;
        }
    }
}

/// Adds samples, colors weighted by the alpha that comes last.
struct AddWeighted<'a, const N: usize> {
    sums: &'a mut [f32],
    row: &'a [u8],
    weight: f32,
}

impl<const N: usize> NullaryFnOnce for AddWeighted<'_, N> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { sums, row, weight } = self;
        let share = weight / 255.0;
        for (sum, sample) in sums.as_chunks_mut::<N>().0.iter_mut().zip(row.as_chunks::<N>().0) {
            // The same work for every channel compiles to vector instructions.
            let sample = sample.map(f32::from);
            let mut weights = [sample[N - 1] * share; N];
            weights[N - 1] = weight;
            for channel in 0..N {
                sum[channel] += sample[channel] * weights[channel];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(webp: &Bytes) -> image::RgbaImage {
        image::load_from_memory(webp).expect("our own WebP decodes").into_rgba8()
    }

    fn of_rgba(width: u32, height: u32, pixels: &[u8]) -> Option<image::RgbaImage> {
        let mut preview = Preview::new((width, height), Channels::Rgba)?;
        preview.push(pixels);
        Some(decoded(&preview.encode(None).expect("it encodes")))
    }

    #[test]
    fn only_a_large_picture_has_a_preview() {
        assert!(of_rgba(1600, 2, &[200; 1600 * 2 * 4]).is_none());
        let wide = of_rgba(1601, 3, &vec![200; 1601 * 3 * 4]).expect("a preview");
        assert_eq!(wide.dimensions(), (1600, 3));
        let strip = of_rgba(1, 9000, &vec![200; 9000 * 4]).expect("a preview");
        assert_eq!(strip.dimensions(), (1, 1600));
    }

    #[test]
    fn a_preview_looks_like_its_picture() {
        let (width, height) = (2311, 1733);
        let gradient = |x: u32, y: u32| [(x * 255 / width) as u8, (y * 255 / height) as u8, 90];
        let at = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let rgb: Vec<u8> = at.clone().flat_map(|(x, y)| gradient(x, y)).collect();
        let picture = Picture { width, height, rgb, alpha: None, gray: false, icc: None };
        let webp = Preview::of(&picture).expect("it encodes").expect("it is large");
        let small = decoded(&webp);
        assert_eq!(small.dimensions(), (1600, 1200));
        for (x, y, pixel) in small.enumerate_pixels() {
            let [r, g, b] = gradient(x * width / 1600, y * height / 1200);
            let is_close = [r, g, b].iter().zip(pixel.0).all(|(a, b)| a.abs_diff(b) <= 8);
            assert!(is_close && pixel[3] == 255, "{pixel:?} at {x}, {y}");
        }
    }

    #[test]
    fn a_gray_picture_stays_gray_and_a_transparent_edge_keeps_its_color() {
        let gray = Picture {
            width: 3300,
            height: 10,
            rgb: vec![77; 3300 * 10 * 3],
            alpha: Some(vec![255; 3300 * 10]),
            gray: true,
            icc: None,
        };
        let small = decoded(&Preview::of(&gray).expect("it encodes").expect("it is large"));
        assert!(small.pixels().all(|pixel| pixel.0[..3].iter().all(|v| v.abs_diff(77) <= 2)));

        let (width, height) = (2600_u32, 1300_u32);
        let pixels: Vec<u8> = (0..width * height)
            .flat_map(|i| if i % width < 1301 { [250, 10, 10, 255] } else { [0; 4] })
            .collect();
        let small = of_rgba(width, height, &pixels).expect("a preview");
        assert_eq!((small.get_pixel(10, 10)[3], small.get_pixel(1500, 700)[3]), (255, 0));
        assert!(small.pixels().filter(|pixel| pixel[3] > 8).all(|pixel| pixel[0] > 225));
    }
}
