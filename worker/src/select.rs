//! Click to select: takes requests from Redis, one at a time, and replies with a mask.
//!
//! It runs beside the consumer and takes no slot: a click must not wait for a job. Its memory is its own too
//! (`RETOUCH_SELECT_MEMORY_MIB`), and its inference queues up with that of jobs on the same model.

mod cache;
mod engine;
mod known;
mod pointing;

use std::sync::Arc;
use std::time::{Duration, Instant};

use retouch_core::queue::Queue;
use retouch_core::selection::{
    PendingSelection, SelectionFailure, SelectionReply, SelectionRequest,
};
use retouch_core::storage::{Storage, StorageError};
use retouch_inference::registry::Registry;
use retouch_pixels::Limits;
use retouch_pixels::decode::decode;
use retouch_pixels::select::{Marks, Point, Region, Scene};
use tokio_util::sync::CancellationToken;

use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use cache::Cache;
pub use engine::{Engine, Wanted};
pub use known::Known;

/// How often a worker announces that it selects.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);
/// The pause after Redis failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Everything needed to select.
pub struct Selector {
    pub queue: Queue,
    pub storage: Storage,
    pub registry: Arc<Registry>,
    pub pixels: PixelPool,
    pub limits: Limits,
    /// The memory for pictures, in MiB; 0 turns selecting off.
    pub memory_mib: u32,
}

impl Selector {
    /// Answers requests until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        if self.memory_mib == 0 {
            return;
        }
        let engine = Engine::new(self.registry.clone(), self.pixels.clone());
        tokio::spawn(announce(self.queue.clone(), engine.clone(), stop.clone()));
        let mut cache = Cache::new(u64::from(self.memory_mib) << 20);
        let mut requests = self.queue.selections();
        while !stop.is_cancelled() {
            cache.forget_idle();
            if !engine.is_available() {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            match requests.next().await {
                Ok(Some(pending)) => self.answer(&engine, &mut cache, pending).await,
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "Cannot read the selections; retrying");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn answer(&self, engine: &Engine, cache: &mut Cache, pending: PendingSelection) {
        let PendingSelection { request, time_left } = pending;
        let started = Instant::now();
        let is_known = cache.contains(request.image);
        let selecting = self.select(engine, cache, &request);
        let Ok(reply) = tokio::time::timeout(time_left, selecting).await else {
            tracing::warn!(image.id = %request.image, "A selection took too long");
            return;
        };
        if let Err(SelectionFailure::Failed(reason)) = &reply {
            tracing::warn!(image.id = %request.image, reason, "A selection failed");
        }
        let known = if is_known { "true" } else { "false" };
        metrics::histogram!("retouch_select_seconds", "known" => known).record(started.elapsed());
        if let Err(error) = self.queue.reply_selection(request.id, reply).await {
            tracing::warn!(%error, image.id = %request.image, "Cannot reply to a selection");
        }
    }

    async fn select(
        &self,
        engine: &Engine,
        cache: &mut Cache,
        request: &SelectionRequest,
    ) -> SelectionReply {
        let mut known = if let Some(known) = cache.take(request.image) {
            known
        } else {
            cache.make_room(Scene::memory_bytes(request.width, request.height));
            self.fetch(request).await?
        };
        let wanted = wanted(known.scene(), request);
        let selected = engine.select(&mut known, wanted).await;
        // After an error too: the picture is fine.
        cache.put(request.image, known);
        match selected {
            Ok(Some(png)) => Ok(png),
            Ok(None) => Err(SelectionFailure::NothingFound),
            Err(error) => Err(SelectionFailure::Failed(error.to_string())),
        }
    }

    /// Fetches and decodes a picture.
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

/// Announces to the API that this worker selects, as long as it has a model for it.
async fn announce(queue: Queue, engine: Engine, stop: CancellationToken) {
    while !stop.is_cancelled() {
        if engine.is_available()
            && let Err(error) = queue.announce_selector().await
        {
            tracing::debug!(%error, "Cannot announce that this worker selects");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(ANNOUNCE_INTERVAL) => {}
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
