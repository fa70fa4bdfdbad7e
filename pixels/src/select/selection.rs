//! The selected pixels of a picture, and their file.

use bytes::Bytes;
use png::{BitDepth, ColorType, Compression, Encoder};

use super::prior::Prior;
use super::region::Region;
use super::scene::Scene;
use super::{Marks, band, carve, edge};
use crate::PixelError;

/// The selected pixels of a picture; at least one is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    width: usize,
    /// One flag per pixel, rows from the top.
    on: Vec<bool>,
}

impl Scene {
    /// Finds the edges of what `prior` and `marks` select; `None` if nothing is left.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if the prior belongs to a picture of another size.
    pub fn select(&self, mut prior: Prior, marks: &Marks) -> Result<Option<Selection>, PixelError> {
        let reduced = self.reduced();
        if prior.values.len() != reduced.width * reduced.height {
            return Err(PixelError::Internal("the prior has another size".to_owned()));
        }
        if let Some(area) = marks.area {
            area.clear_outside(&mut prior.values, prior.width);
        }
        let mut inside = edge::find(reduced, &prior, marks);
        carve::take_away(reduced, &mut inside, marks);
        if let Some(area) = marks.area {
            area.clear_outside(&mut inside, reduced.width);
        }
        Ok(Selection::at_full_size(self, inside))
    }
}

impl Selection {
    /// Creates the selection at full size from the selection of the reduced copy; `None` if nothing is selected.
    fn at_full_size(scene: &Scene, inside: Vec<bool>) -> Option<Self> {
        if !inside.contains(&true) {
            return None;
        }
        let on = if scene.is_reduced() { band::refine(scene, &inside) } else { inside };
        on.contains(&true).then_some(Self { width: scene.full.width, on })
    }

    /// Keeps only the part inside a region of the picture. Returns whether anything is left.
    pub fn clip(&mut self, region: Region) -> bool {
        region.clear_outside(&mut self.on, self.width);
        self.on.contains(&true)
    }

    /// Returns one flag per pixel, rows from the top.
    pub fn pixels(&self) -> &[bool] {
        &self.on
    }

    /// Encodes the selection as a PNG of one bit per pixel: white is selected, black is not.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if the encoder fails.
    pub fn to_png(&self) -> Result<Bytes, PixelError> {
        let failed = |error: png::EncodingError| {
            PixelError::Internal(format!("encoding the selection: {error}"))
        };
        let height = self.on.len() / self.width;
        let mut packed = Vec::with_capacity(self.width.div_ceil(8) * height);
        for row in self.on.chunks_exact(self.width) {
            packed.extend(row.chunks(8).map(|pixels| {
                let bits = pixels.iter().fold(0_u8, |bits, on| (bits << 1) | u8::from(*on));
                bits << (8 - pixels.len())
            }));
        }
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, self.width as u32, height as u32);
        encoder.set_color(ColorType::Grayscale);
        encoder.set_depth(BitDepth::One);
        encoder.set_compression(Compression::Fast);
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(&packed).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(file.into())
    }
}
