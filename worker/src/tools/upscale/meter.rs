//! The progress of an upscale.

use std::time::{Duration, Instant};

use retouch_catalog::{Count, CountUnit};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The share of the picture that is done, 0 to 1.
    pub fraction: f32,
    pub tiles: Count,
    /// The estimated time left, from the speed so far; `None` before the first tile.
    pub left: Option<Duration>,
}

/// Measures the progress and estimates the time left.
pub(super) struct Meter<P> {
    size: (u32, u32),
    progress: P,
    /// Input pixels done.
    done: u64,
    /// The tiles of finished bands, those done in the current band, and all tiles.
    tiles: (u32, u32, u32),
    /// Pixels computed, including the pixels of discarded tiles, which took time too.
    computed: u64,
    started: Instant,
}

impl<P: Fn(Progress)> Meter<P> {
    pub(super) fn new(size: (u32, u32), tiles: u32, progress: P) -> Self {
        let meter = Self {
            size,
            progress,
            done: 0,
            tiles: (0, 0, tiles),
            computed: 0,
            started: Instant::now(),
        };
        (meter.progress)(Progress { fraction: 0.0, tiles: meter.count(), left: None });
        meter
    }

    pub(super) fn advance(&mut self, width: u32, height: u32) {
        let area = u64::from(width) * u64::from(height);
        let total = u64::from(self.size.0) * u64::from(self.size.1);
        self.done = (self.done + area).min(total);
        self.tiles.1 += 1;
        self.computed += area;
        let per_pixel = self.started.elapsed().as_secs_f64() / self.computed as f64;
        (self.progress)(Progress {
            fraction: self.done as f32 / total as f32,
            tiles: self.count(),
            left: Some(Duration::from_secs_f64(per_pixel * (total - self.done) as f64)),
        });
    }

    /// Counts the current band as finished.
    pub(super) fn end_band(&mut self) {
        self.tiles = (self.tiles.0 + self.tiles.1, 0, self.tiles.2);
    }

    /// Goes back to row `top`, where the current band starts again; `tiles` remain from there.
    pub(super) fn restart_band(&mut self, top: u32, tiles: u32) {
        self.done = u64::from(self.size.0) * u64::from(top);
        self.tiles = (self.tiles.0, 0, self.tiles.0 + tiles);
    }

    fn count(&self) -> Count {
        let (finished, current, total) = self.tiles;
        Count { unit: CountUnit::Tiles, done: finished + current, total }
    }
}
