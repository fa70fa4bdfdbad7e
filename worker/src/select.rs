//! Click to select: replies with a mask.
//!
//! It has its own memory (`RETOUCH_SELECT_MEMORY_MIB`), and its inference shares a queue with the jobs on the same
//! model.

mod cache;
mod known;
mod models;
mod pointing;

use std::sync::Arc;
use std::time::Instant;

use retouch_core::queue::Queue;
use retouch_core::selection::{SelectionFailure, SelectionReply, SelectionRequest};
use retouch_core::storage::{Storage, StorageError};
use retouch_inference::registry::Registry;
use retouch_pixels::Limits;
use retouch_pixels::decode::decode;
use retouch_pixels::select::{Marks, Point, Region, Scene};
use tokio_util::sync::CancellationToken;

use crate::pixel_pool::PixelPool;
use crate::requests::{self, Answerer};
use crate::tools::ToolError;
use cache::Cache;
pub use known::Known;
pub use models::{Models, Wanted};

pub struct Selector {
    pub storage: Storage,
    pub registry: Arc<Registry>,
    pub pixels: PixelPool,
    pub limits: Limits,
    /// The memory for pictures, in MiB; 0 turns selecting off.
    pub memory_mib: u32,
}

impl Selector {
    /// Answers requests until `stop`.
    pub async fn run(self, queue: Queue, stop: CancellationToken) {
        if self.memory_mib == 0 {
            return;
        }
        let models = Models::new(self.registry.clone(), self.pixels.clone());
        let served = models.clone();
        let cache = Cache::new(u64::from(self.memory_mib) << 20);
        let selecting = Selecting {
            storage: self.storage,
            pixels: self.pixels,
            limits: self.limits,
            models,
            cache,
        };
        requests::answer(selecting, queue, move || served.is_available(), stop).await;
    }
}

struct Selecting {
    storage: Storage,
    pixels: PixelPool,
    limits: Limits,
    models: Models,
    cache: Cache,
}

impl Answerer for Selecting {
    type To = SelectionRequest;

    /// The next click finds the picture, and what models found in it.
    const FINISHES_LATE: bool = true;

    fn tidy(&mut self) {
        self.cache.forget_idle();
    }

    async fn answer(&mut self, request: &SelectionRequest) -> SelectionReply {
        let started = Instant::now();
        let known = if self.cache.contains(request.image) { "true" } else { "false" };
        let reply = self.select(request).await;
        if let Err(SelectionFailure::Failed(reason)) = &reply {
            tracing::warn!(image.id = %request.image, reason, "A selection failed");
        }
        metrics::histogram!("retouch_select_seconds", "known" => known).record(started.elapsed());
        reply
    }
}

impl Selecting {
    async fn select(&mut self, request: &SelectionRequest) -> SelectionReply {
        let mut known = if let Some(known) = self.cache.take(request.image) {
            known
        } else {
            self.cache.make_room(Scene::memory_bytes(request.width, request.height));
            self.fetch(request).await?
        };
        let wanted = wanted(known.scene(), request);
        let selected = self.models.select(&mut known, wanted).await;
        // After an error too: the picture is fine.
        self.cache.put(request.image, known);
        match selected {
            Ok(Some(png)) => Ok(png),
            Ok(None) => Err(SelectionFailure::NothingFound),
            Err(error) => Err(SelectionFailure::Failed(error.to_string())),
        }
    }

    async fn fetch(&self, request: &SelectionRequest) -> Result<Known, SelectionFailure> {
        let bytes = self.storage.get(&request.object_key).await.map_err(|error| match error {
            StorageError::Missing(_) => SelectionFailure::ImageMissing,
            _ => SelectionFailure::StorageUnavailable,
        })?;
        let limits = self.limits;
        let read = move || Ok::<_, ToolError>(Scene::new(decode(&bytes, &limits)?));
        match self.pixels.run(read).await {
            Ok(Ok(scene)) if scene.size() == (request.width, request.height) => {
                Ok(Known::new(scene))
            }
            Ok(Ok(_) | Err(ToolError::Pixels(_))) => Err(SelectionFailure::ImageUnreadable),
            Ok(Err(error)) | Err(error) => Err(SelectionFailure::Failed(error.to_string())),
        }
    }
}

/// Translates a request to pixels of the reduced copy.
fn wanted(scene: &Scene, request: &SelectionRequest) -> Wanted {
    let clicks = &request.clicks;
    let points = |points: &[retouch_core::selection::ImagePoint]| {
        points.iter().map(|at| scene.reduce_point(Point { x: at.x, y: at.y })).collect()
    };
    let area = clicks.area.map(|area| Region {
        left: area.x,
        top: area.y,
        width: area.width,
        height: area.height,
    });
    Wanted {
        marks: Marks {
            positive: points(&clicks.positive),
            negative: points(&clicks.negative),
            area: area.map(|area| scene.reduce_region(area)),
        },
        clip: area,
        subject: clicks.subject,
    }
}
