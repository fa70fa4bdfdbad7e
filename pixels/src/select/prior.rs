//! How probably each pixel of the reduced copy is selected, before its edges are found.

use super::flood;
use super::region::{Point, Region};
use super::scene::Scene;
use super::subject::{HALF, Subject};

/// The probability of each pixel of the reduced copy, 0 to 255.
#[derive(Clone, Debug)]
pub struct Prior {
    pub(super) width: usize,
    pub(super) values: Vec<u8>,
}

impl Prior {
    /// Creates a prior in which nothing is selected.
    pub fn new(scene: &Scene) -> Self {
        let (width, height) = scene.reduced_size();
        Self { width: width as usize, values: vec![0; width as usize * height as usize] }
    }

    pub fn add(&mut self, subject: &Subject) {
        let Region { left, top, width, .. } = subject.region;
        for (y, row) in subject.values.chunks_exact(width as usize).enumerate() {
            let start = (top as usize + y) * self.width + left as usize;
            for (value, added) in self.values[start..].iter_mut().zip(row) {
                *value = (*value).max(*added);
            }
        }
    }

    /// Adds the pixels around a click that have its color, for a click where no subject was found.
    pub fn add_color_at(&mut self, scene: &Scene, click: Point) {
        for at in flood::like(scene.reduced(), click) {
            self.values[at] = 255;
        }
    }

    pub fn is_empty(&self) -> bool {
        !self.values.iter().any(|value| *value >= HALF)
    }
}
