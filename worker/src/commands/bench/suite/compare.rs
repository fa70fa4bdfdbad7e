//! Compares the results of a model under different settings.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use image::RgbaImage;

/// Maximum mean difference, on a scale of 255, of a correct cutout or upscale: TF32 and f16 round, but invisibly.
pub const PICTURE: f64 = 0.5;

/// The same for paintings, whose steps multiply small differences.
pub const PAINTING: f64 = 4.0;

/// The samples of a result, premultiplied: R, G, B, and alpha of every pixel.
pub struct Samples(RgbaImage);

impl Samples {
    /// Decodes a tool's PNG and premultiplies it.
    pub fn of_png(png: &[u8]) -> anyhow::Result<Self> {
        let mut picture = image::load_from_memory(png).context("decoding a result")?.into_rgba8();
        for pixel in picture.pixels_mut() {
            let [r, g, b, a] = pixel.0;
            let seen = |sample: u8| (u16::from(sample) * u16::from(a) / 255) as u8;
            pixel.0 = [seen(r), seen(g), seen(b), a];
        }
        Ok(Self(picture))
    }

    /// Takes R, G, B of every pixel of a picture of `size`.
    pub fn of_rgb(size: (u32, u32), rgb: Vec<u8>) -> Self {
        let picture = image::RgbImage::from_raw(size.0, size.1, rgb).unwrap_or_default();
        Self(image::DynamicImage::ImageRgb8(picture).into_rgba8())
    }

    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let picture = image::open(file).with_context(|| file.display().to_string())?;
        Ok(Self(picture.into_rgba8()))
    }

    pub fn write(&self, file: &Path) -> anyhow::Result<()> {
        let written = file.parent().map_or(Ok(()), fs::create_dir_all);
        written.with_context(|| file.display().to_string())?;
        self.0.save(file).with_context(|| file.display().to_string())
    }

    /// Returns the largest and the mean difference of a sample, on a scale of 255.
    ///
    /// # Errors
    /// If the sizes differ.
    pub fn difference(&self, other: &Self) -> anyhow::Result<(u8, f64)> {
        ensure!(
            self.0.dimensions() == other.0.dimensions(),
            "the results are {:?} and {:?} pixels",
            self.0.dimensions(),
            other.0.dimensions()
        );
        let pairs = self.0.as_raw().iter().zip(other.0.as_raw());
        let (mut largest, mut sum) = (0, 0_u64);
        for (one, other) in pairs {
            let difference = one.abs_diff(*other);
            largest = largest.max(difference);
            sum += u64::from(difference);
        }
        Ok((largest, sum as f64 / self.0.as_raw().len().max(1) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_differ_by_what_is_seen() {
        let one = Samples::of_rgb((2, 1), vec![10, 20, 30, 40, 50, 60]);
        let other = Samples::of_rgb((2, 1), vec![10, 20, 30, 40, 50, 68]);
        assert_eq!(one.difference(&one).unwrap(), (0, 0.0));
        assert_eq!(one.difference(&other).unwrap(), (8, 1.0));
        assert!(one.difference(&Samples::of_rgb((1, 1), vec![0; 3])).is_err());
        let png = |color: [u8; 4]| {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("result.png");
            RgbaImage::from_pixel(3, 3, image::Rgba(color)).save(&file).unwrap();
            Samples::of_png(&fs::read(&file).unwrap()).unwrap()
        };
        let folder = tempfile::tempdir().unwrap();
        let (soft, file) = (png([200, 100, 0, 90]), folder.path().join("new/soft.png"));
        soft.write(&file).unwrap();
        assert_eq!(soft.difference(&Samples::read(&file).unwrap()).unwrap(), (0, 0.0));
        // The color of a transparent pixel is invisible.
        assert_eq!(png([200, 0, 0, 0]).difference(&png([0, 90, 0, 0])).unwrap(), (0, 0.0));
    }
}
