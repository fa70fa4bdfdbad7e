//! Runs one job: fetches the image, runs the tool, stores and records the result. Otherwise it fails the job, queues a
//! retry, or hands the job back.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use retouch_catalog::{Count, Factor, FixMode, JobClass, Tool};
use retouch_core::db::{self, PgPool};
use retouch_core::jobs::{self, Cause, Claimed, Finish, JobState, Retry};
use retouch_core::queue::{JobEvent, JobProgress, ProgressStage, Queue};
use retouch_core::results::NewResult;
use retouch_core::storage::{self, OwnerError, Storage, StorageError, check_owner};
use retouch_core::telemetry;
use retouch_core::{ResultId, WorkerId};
use retouch_prompts::Prompt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::faults::Faults;
use crate::lease::{Lease, Leases};
use crate::pixel_pool::PixelPool;
use crate::storage_probe::StorageProbe;
use crate::tools::magic_fix::{FixModels, FixRequest, Fixed, ProgressFn, magic_fix};
use crate::tools::remove_background::remove_background;
use crate::tools::stage::{self, StageTimes};
use crate::tools::upscale::{self, Upscaler, upscale};
use crate::tools::{Made, Settings, ToolError};
use retouch_credentials::{CopyMark, Credentials, PngSeal};
use retouch_inference::bindings::Demand;
use retouch_inference::registry::{LoadError, ModelHandle, ModelIdentity, Registry};
use retouch_pixels::copies::EncodedCopies;
use retouch_pixels::thumbnail::THUMBNAIL_SIDE;

mod failure;
mod marking;

use failure::{Disposition, JobError, classify};
use marking::{Marker, Original};

pub struct JobRunner {
    pub pool: PgPool,
    pub queue: Queue,
    pub storage: Storage,
    pub storage_probe: StorageProbe,
    pub registry: Arc<Registry>,
    /// Checks results before anybody sees them; `None` if the operator has not configured it.
    pub safety_checker: Option<ModelHandle>,
    pub pixels: PixelPool,
    pub settings: Settings,
    pub worker: WorkerId,
    pub leases: Leases,
    /// Events to publish in order; sending never waits for Redis.
    pub events: mpsc::UnboundedSender<JobEvent>,
    /// Fires when the process must exit: running jobs are handed back.
    pub abort: CancellationToken,
    pub faults: Faults,
    /// Marks results as the operator has configured.
    pub credentials: Credentials,
}

/// A result in the object store that is not recorded yet.
struct Stored {
    /// Width and height, in pixels.
    size: (u32, u32),
    size_bytes: u64,
    stages: StageTimes,
    thumbnail_key: String,
    preview_key: Option<String>,
    /// The source type in the file's marks; `None` if it has none.
    source: Option<String>,
    /// The time from the last byte encoded to the last byte stored.
    storing: Duration,
}

impl JobRunner {
    /// Runs one attempt of a claimed job and publishes its outcome. The lease may be lost already.
    pub async fn run(&self, job: Claimed, lease: Lease) {
        let (tool, tier) = (job.tool.name(), job.tier);
        let span = tracing::info_span!("job", job.id = %job.id, job.tool = %tool, job.tier = %tier, job.attempt = job.attempt);
        telemetry::continue_trace(&span, job.traceparent.as_deref());
        let event = match self.attempt(&job, lease).instrument(span).await {
            Some(state) => JobEvent::ended(job.id, state),
            None => JobEvent::changed(job.id),
        };
        let _ = self.events.send(event);
    }

    /// Runs one attempt. Returns the job's final state if this attempt is known to have reached it.
    async fn attempt(&self, job: &Claimed, lease: Lease) -> Option<JobState> {
        let started = Instant::now();
        let _ = self.events.send(JobEvent::started(job.id));
        // Only the first attempt: on a retry, the wait would include earlier attempts.
        if job.attempt == 1 {
            metrics::histogram!("retouch_job_wait_seconds", "tier" => job.tier.as_str())
                .record(job.waited_secs);
        }
        let outcome = tokio::select! {
            biased;
            // Dropping the future skips every stage that has not started; a running stage finishes unused.
            () = lease.lost().cancelled() => { self.stop(job).await; return None }
            () = self.abort.cancelled() => { self.hand_back(job).await; return None }
            // Otherwise, a panic would look like a lost claim, and the job would return twenty times.
            outcome = AssertUnwindSafe(self.produce(job, lease.lost(), started)).catch_unwind() => {
                outcome.unwrap_or_else(|panic| Err(ToolError::of_panic(panic.as_ref()).into()))
            }
        };
        let recorded = match outcome {
            Ok(result) => {
                self.record_result(job, &result).instrument(tracing::info_span!("record")).await
            }
            Err(error) => Err(error),
        };
        let ended = match recorded {
            Ok(is_done) => is_done.then_some(JobState::Done),
            // The tool was unbound after the claim; another worker may serve it.
            Err(JobError::Model(LoadError::Unbound { .. })) => {
                self.hand_back(job).await;
                None
            }
            Err(error) => {
                self.record_failure(job, &self.cause_of(error).await).await;
                None
            }
        };
        drop(lease);
        ended
    }

    /// Fetches the image, runs the tool and stores the result; does everything except record it.
    async fn produce(
        &self,
        job: &Claimed,
        cancel: &CancellationToken,
        started: Instant,
    ) -> Result<NewResult, JobError> {
        let demand = Demand { tool: job.tool, tier: job.tier };
        self.report_stage(job, ProgressStage::Fetch);
        let fetching = Instant::now();
        let fetch = async { (self.storage.get(&job.object_key).await, fetching.elapsed()) };
        let picture_pixels =
            u64::from(job.width.unsigned_abs()) * u64::from(job.height.unsigned_abs());
        let model = self.registry.model_for_picture(demand, picture_pixels);
        let ((input, fetching), model) = tokio::join!(fetch, model);
        let (input, model) = (input?, model?);
        self.faults.inject(job.width).await;
        let original = self.marker().original(job, &input).await?;
        let (mut identity, mut is_demo) = (model.identity().clone(), false);
        let stored = match job.tool {
            Tool::RemoveBackground => self.cut_out(job, input, &model, original, cancel).await?,
            Tool::Upscale(factor) => {
                self.enlarge(job, factor, input, model, original, cancel).await?
            }
            Tool::MagicFix(mode) => {
                let fixed = self.fix(job, mode, input, model, cancel).await?;
                let Fixed { png, made, has_net, .. } = fixed;
                // The clarifier may have run instead of, or besides, the bound model.
                (identity, is_demo) = (fixed.model, fixed.is_demo);
                let seal = self.marker().seal(job.tool, &identity, has_net, original).await?;
                self.store(job, png, made, seal).await?
            }
        };
        let of_tool = stage::Stage::ALL.map(|stage| (stage.as_str(), stored.stages.get(stage)));
        let around = [("fetch", fetching), ("store", stored.storing)];
        for (stage, took) in of_tool.into_iter().chain(around) {
            metrics::histogram!("retouch_stage_seconds", "tool" => job.tool.name().as_str(), "stage" => stage)
                .record(took);
        }
        let ModelIdentity { name: model, sha256: model_sha256, device } = identity;
        Ok(NewResult {
            id: ResultId::new(),
            object_key: storage::result_key(job.id, job.attempt),
            thumbnail_key: stored.thumbnail_key,
            preview_key: stored.preview_key,
            size_bytes: stored.size_bytes as i64,
            width: stored.size.0 as i32,
            height: stored.size.1 as i32,
            model,
            model_sha256,
            device: device.to_string(),
            is_demo,
            source: stored.source,
            duration_ms: i32::try_from(started.elapsed().as_millis()).unwrap_or(i32::MAX),
        })
    }

    async fn cut_out(
        &self,
        job: &Claimed,
        input: Bytes,
        model: &ModelHandle,
        original: Option<Original>,
        cancel: &CancellationToken,
    ) -> Result<Stored, JobError> {
        let (pixels, limits) = (&self.pixels, &self.settings.limits);
        let progress = |stage| self.report_stage(job, stage_of(stage));
        let (png, made) = remove_background(input, model, pixels, limits, cancel, progress).await?;
        let seal = self.marker().seal(job.tool, model.identity(), true, original).await?;
        self.store(job, png, made, seal).await
    }

    /// Upscales and uploads the result while it is computed.
    async fn enlarge(
        &self,
        job: &Claimed,
        factor: Factor,
        input: Bytes,
        model: ModelHandle,
        original: Option<Original>,
        cancel: &CancellationToken,
    ) -> Result<Stored, JobError> {
        let seal = self.marker().seal(job.tool, model.identity(), true, original).await?;
        let net = Upscaler::new(model)?;
        let mark = seal.as_ref().map(PngSeal::copies);
        let source = marking::source(seal.as_ref());
        let (out, parts) = mpsc::channel(1);
        let upload =
            self.storage.upload(&self.pool, storage::result_key(job.id, job.attempt), "image/png");
        self.report_stage(job, ProgressStage::Decode);
        let progress = |at: upscale::Progress| {
            let done = fraction_at(ProgressStage::Store) - fraction_at(ProgressStage::Preprocess);
            self.report_progress(
                job,
                JobProgress {
                    stage: ProgressStage::Infer,
                    fraction: at.fraction.mul_add(done, fraction_at(ProgressStage::Preprocess)),
                    eta_secs: at.left.map(|left| left.as_secs_f32().ceil() as u32),
                    count: Some(at.tiles),
                },
            );
        };
        let upscaling =
            upscale(input, factor, &net, &self.pixels, &self.settings, cancel, progress, out);
        let marker = self.marker();
        // A failed upload drops the receiver and so ends the upscale as well.
        let (made, (upload, marks)) = tokio::try_join!(
            async { upscaling.await.map_err(JobError::from) },
            marker.receive(upload, seal, parts),
        )?;
        self.report_stage(job, ProgressStage::Store);
        self.store_with(job, made, mark, source, marking::finish(upload, &marks)).await
    }

    async fn fix(
        &self,
        job: &Claimed,
        mode: FixMode,
        input: Bytes,
        bound: ModelHandle,
        cancel: &CancellationToken,
    ) -> Result<Fixed, JobError> {
        let mask = db::retry(|| jobs::mask(&self.pool, job.id)).await?;
        let missing = || ToolError::Internal("the mask is no longer stored".to_owned());
        let mask = Bytes::from(mask.ok_or_else(missing)?);
        let prompt = Prompt::parse(job.prompt.as_deref().unwrap_or_default())
            .map_err(|error| ToolError::Internal(format!("the job's prompt: {error}")))?;
        let enhance = Demand { tool: Tool::MagicFix(FixMode::Enhance), tier: job.tier };
        let may_clarify = mode == FixMode::Restore && self.registry.is_served(enhance);
        let clarifier =
            if may_clarify { Some(self.registry.model_for(enhance).await?) } else { None };
        let models = FixModels { bound, clarifier, safety_checker: self.safety_checker.clone() };
        // Two jobs with the same request get different results, a retried job gets the same one.
        let seed = job.id.uuid().as_u64_pair().1;
        // Takes the mode from the job: the rules may have changed since the prompt was accepted.
        let request = FixRequest { prompt, mode, mask, is_mask_exact: job.is_mask_exact, seed };
        let (events, id, started) = (self.events.clone(), job.id, Instant::now());
        let on_progress: ProgressFn = Arc::new(move |stage, done, count: Option<Count>| {
            let stage = stage_of(stage);
            let mut progress = JobProgress { count, ..JobProgress::at(stage, fraction_at(stage)) };
            if stage == ProgressStage::Infer && done > 0.0 {
                let span =
                    fraction_at(ProgressStage::Postprocess) - fraction_at(ProgressStage::Infer);
                progress.fraction += done * span;
                let left = started.elapsed().as_secs_f32() * (1.0 - done) / done;
                progress.eta_secs = Some(left.ceil() as u32);
            }
            let _ = events.send(JobEvent::progress(id, progress));
        });
        let settings = &self.settings;
        Ok(magic_fix(input, request, &models, &self.pixels, settings, cancel, &on_progress).await?)
    }

    /// Stores a result that is in memory as a whole.
    async fn store(
        &self,
        job: &Claimed,
        png: Bytes,
        made: Made,
        seal: Option<PngSeal>,
    ) -> Result<Stored, JobError> {
        let mark = seal.as_ref().map(PngSeal::copies);
        let source = marking::source(seal.as_ref());
        let png = marking::mark(seal, png).await?;
        self.report_stage(job, ProgressStage::Store);
        let key = storage::result_key(job.id, job.attempt);
        let put = async {
            let size_bytes = png.len() as u64;
            self.storage.put(&key, "image/png", png).await?;
            Ok(size_bytes)
        };
        self.store_with(job, made, mark, source, put).await
    }

    /// Stores the copies of a result while `putting` stores the result itself and returns its size in bytes.
    async fn store_with(
        &self,
        job: &Claimed,
        made: Made,
        mark: Option<CopyMark>,
        source: Option<String>,
        putting: impl Future<Output = Result<u64, StorageError>>,
    ) -> Result<Stored, JobError> {
        let Made { copies, size, stages } = made;
        let EncodedCopies { thumbnail, preview } = marking::mark_copies(mark.as_ref(), copies)?;
        let storing = Instant::now();
        let (size_bytes, thumbnail_key, preview_key) = tokio::try_join!(
            putting,
            self.put_thumbnail(job, size, thumbnail),
            self.put_preview(job, preview),
        )?;
        Ok(Stored {
            size,
            size_bytes,
            stages,
            thumbnail_key,
            preview_key,
            source,
            storing: storing.elapsed(),
        })
    }

    fn marker(&self) -> Marker<'_> {
        Marker { credentials: &self.credentials, pool: &self.pool, pixels: &self.pixels }
    }

    /// Stores the thumbnail of a result and returns its key. A result of at most thumbnail size is its own thumbnail.
    async fn put_thumbnail(
        &self,
        job: &Claimed,
        (width, height): (u32, u32),
        thumbnail: Bytes,
    ) -> Result<String, StorageError> {
        if width.max(height) <= THUMBNAIL_SIDE {
            return Ok(storage::result_key(job.id, job.attempt));
        }
        let key = storage::result_thumbnail_key(job.id, job.attempt);
        self.storage.put(&key, "image/png", thumbnail).await?;
        Ok(key)
    }

    /// Stores the preview of a result, if it has one, and returns its key.
    async fn put_preview(
        &self,
        job: &Claimed,
        preview: Option<Bytes>,
    ) -> Result<Option<String>, StorageError> {
        let Some(preview) = preview else { return Ok(None) };
        let key = storage::result_preview_key(job.id, job.attempt);
        self.storage.put(&key, "image/webp", preview).await?;
        Ok(Some(key))
    }

    /// Records the result, retrying while the database is unavailable; recording twice has no further effect. Returns
    /// true if the result is recorded.
    ///
    /// # Errors
    /// [`JobError::Refused`].
    async fn record_result(&self, job: &Claimed, result: &NewResult) -> Result<bool, JobError> {
        let recorded = db::retry(|| jobs::finish(&self.pool, job.as_attempt(), result)).await;
        match recorded {
            Ok(Finish::Done) => {
                metrics::counter!("retouch_jobs_done_total", "tool" => job.tool.name().as_str(), "tier" => job.tier.as_str())
                    .increment(1);
                tracing::info!(
                    duration_ms = result.duration_ms,
                    model = result.model,
                    "Finished job {}",
                    job.id
                );
                Ok(true)
            }
            Ok(Finish::LeaseLost) => {
                tracing::info!("Lost the lease on job {}; discarding its result", job.id);
                Ok(false)
            }
            // Another attempt will repeat the job.
            Err(error) if db::is_unavailable(&error) => {
                tracing::error!(%error, "Cannot record the result of job {}", job.id);
                Ok(false)
            }
            Err(error) => Err(JobError::Refused(error)),
        }
    }

    /// Returns why an attempt failed. A picture that is missing in a foreign bucket may be in the right one.
    async fn cause_of(&self, error: JobError) -> JobError {
        let JobError::Storage(StorageError::Missing(_)) = error else { return error };
        match check_owner(&self.pool, &self.storage).await {
            Err(foreign @ OwnerError::Foreign { .. }) => {
                JobError::Storage(StorageError::Failed(foreign.to_string()))
            }
            _ => error,
        }
    }

    async fn record_failure(&self, job: &Claimed, error: &JobError) {
        let (disposition, failure) = classify(error);
        let outcome = match disposition {
            Disposition::Retry(cause) => {
                if matches!(error, JobError::Storage(error) if !error.is_of_database()) {
                    self.storage_probe.doubt();
                }
                // Whatever ran on a lost device fails, with all kinds of errors.
                let is_lost = self.registry.runs().device_lost().is_some();
                let cause =
                    if is_lost && cause == Cause::Fault { Cause::DeviceLost } else { cause };
                db::retry(|| jobs::retry(&self.pool, job, cause, &failure)).await
            }
            Disposition::Fail => db::retry(|| jobs::fail(&self.pool, job.as_attempt(), &failure))
                .await
                .map(|ours| if ours { Retry::Failed } else { Retry::LeaseLost }),
        };
        match outcome {
            Ok(Retry::Queued) => {
                tracing::warn!("Attempt {} failed and will be retried: {error}", job.attempt);
            }
            Ok(Retry::Failed) => {
                metrics::counter!("retouch_jobs_failed_total", "code" => failure.code.clone())
                    .increment(1);
                tracing::warn!("Job {} failed: {error}", job.id);
            }
            Ok(Retry::LeaseLost) => tracing::info!("Lost the lease on job {}", job.id),
            Err(database) => {
                tracing::error!(error = %database, "Cannot record that job {} failed", job.id);
            }
        }
        self.doom_objects(job).await;
    }

    /// Stops a job that was canceled or that another worker has.
    async fn stop(&self, job: &Claimed) {
        tracing::info!("Lost the lease on job {}; stopped it", job.id);
        self.doom_objects(job).await;
    }

    async fn hand_back(&self, job: &Claimed) {
        match db::retry(|| jobs::hand_back(&self.pool, job.as_attempt())).await {
            Ok(true) => tracing::info!("Handed job {} back", job.id),
            Ok(false) => tracing::info!("Lost the lease on job {}", job.id),
            Err(error) => tracing::error!(%error, "Cannot hand job {} back", job.id),
        }
        let class = JobClass { tier: job.tier, tool: job.tool.name() };
        if let Err(error) = self.queue.ring(class, job.id).await {
            tracing::warn!(%error, "Cannot ring the doorbell for job {}", job.id);
        }
        self.doom_objects(job).await;
    }

    async fn doom_objects(&self, job: &Claimed) {
        if let Err(error) = db::within(storage::doom_attempt(&self.pool, job.id, job.attempt)).await
        {
            tracing::warn!(%error, "Cannot doom the objects that job {} left in the store", job.id);
        }
    }

    fn report_stage(&self, job: &Claimed, stage: ProgressStage) {
        self.report_progress(job, JobProgress::at(stage, fraction_at(stage)));
    }

    fn report_progress(&self, job: &Claimed, progress: JobProgress) {
        let _ = self.events.send(JobEvent::progress(job.id, progress));
    }
}

/// Returns the share of a typical run that is done when a stage starts, 0 to 1. The model takes most of the time.
const fn fraction_at(stage: ProgressStage) -> f32 {
    match stage {
        ProgressStage::Fetch => 0.02,
        ProgressStage::Decode => 0.06,
        ProgressStage::Preprocess => 0.12,
        ProgressStage::Infer => 0.18,
        ProgressStage::Postprocess => 0.76,
        ProgressStage::Encode => 0.86,
        ProgressStage::Store => 0.94,
    }
}

const fn stage_of(stage: stage::Stage) -> ProgressStage {
    use stage::Stage as Step;
    match stage {
        Step::Decode => ProgressStage::Decode,
        Step::Preprocess => ProgressStage::Preprocess,
        Step::Infer => ProgressStage::Infer,
        Step::Postprocess | Step::Foreground => ProgressStage::Postprocess,
        Step::Encode => ProgressStage::Encode,
    }
}
