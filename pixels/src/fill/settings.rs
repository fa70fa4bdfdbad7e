//! The settings of a fill.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The seed of the random search: equal seeds give equal bytes.
    pub seed: u64,
    /// The most pixels to search, at least 1. A larger region is searched at half the size, a quarter and so on, and
    /// copied from at full size. The seams of a hole with more pixels are placed at a smaller size, too.
    pub max_pixels: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { seed: 0, max_pixels: 1 << 21 }
    }
}

impl Settings {
    /// Returns how often a region is halved before it is searched.
    pub(super) fn halvings(&self, width: usize, height: usize) -> usize {
        let pixels_at =
            |halvings: usize| width.div_ceil(1 << halvings) * height.div_ceil(1 << halvings);
        let mut halvings = 0;
        while pixels_at(halvings) > self.max_pixels.max(1) {
            halvings += 1;
        }
        halvings
    }
}
