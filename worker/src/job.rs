//! One job: fetch the picture, run the tool, store the result, finish. Or fail, try again, hand back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use retouch_catalog::{Count, Factor, FixMode, JobClass, Tool};
use retouch_core::db::{DatabaseError, PgPool};
use retouch_core::jobs::{self, Claimed, Finish, JobState, Retry};
use retouch_core::magic_fix::Prompt;
use retouch_core::queue::{JobNews, Progress, Queue, Stage};
use retouch_core::results::NewResult;
use retouch_core::storage::{self, Storage, StorageError, Upload};
use retouch_core::telemetry;
use retouch_core::{ResultId, WorkerId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::faults::Faults;
use crate::lease::Leases;
use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use crate::tools::magic_fix::{Engines, Fixed, Tell, Wish, magic_fix};
use crate::tools::remove_background::{Cutout, remove_background};
use crate::tools::stage::{self, StageTimes};
use crate::tools::upscale::{self, Settings, Upscaler, upscale};
use retouch_inference::bindings::Demand;
use retouch_inference::registry::{LoadError, ModelHandle, ModelIdentity, Registry};
use retouch_pixels::thumbnail::THUMBNAIL_SIDE;

mod failure;

use failure::{JobError, Verdict, judge};

/// How long a finished job keeps trying to be recorded while the database does not answer.
const RECORD_FOR: Duration = Duration::from_mins(1);

/// What running a job takes.
pub struct JobRunner {
    pub pool: PgPool,
    pub queue: Queue,
    pub storage: Storage,
    pub registry: Arc<Registry>,
    /// What judges results before anybody sees them, if the operator wants that.
    pub judge: Option<ModelHandle>,
    pub pixels: PixelPool,
    pub settings: Settings,
    pub worker: WorkerId,
    pub leases: Leases,
    /// News to tell, in order, without waiting for Redis.
    pub news: mpsc::UnboundedSender<JobNews>,
    /// Fires when the process must end: what still runs is handed back.
    pub hurry: CancellationToken,
    pub faults: Faults,
}

/// A result in the store, whose objects nobody knows of yet.
struct Stored {
    width: u32,
    height: u32,
    size_bytes: u64,
    stages: StageTimes,
    thumbnail_key: String,
    /// From the last byte made to the last byte stored.
    storing: Duration,
}

impl JobRunner {
    /// Runs a claimed job to its end, whatever that is.
    pub async fn run(&self, job: Claimed) {
        let (tool, tier) = (job.tool.name(), job.tier);
        let span = tracing::info_span!("job", job.id = %job.id, job.tool = %tool, job.tier = %tier, job.attempt = job.attempt);
        telemetry::continue_trace(&span, job.traceparent.as_deref());
        let news = match self.attempt(&job).instrument(span).await {
            Some(state) => JobNews::ended(job.id, state),
            None => JobNews::changed(job.id),
        };
        let _ = self.news.send(news);
    }

    /// One attempt; how the job ended, if that is known to be its end.
    async fn attempt(&self, job: &Claimed) -> Option<JobState> {
        let started = Instant::now();
        let lease = self.leases.hold(job.id);
        let _ = self.news.send(JobNews::started(job.id));
        metrics::histogram!("retouch_job_wait_seconds", "tier" => job.tier.as_str())
            .record(job.waited_secs);
        let made = tokio::select! {
            biased;
            // Dropping the work ends what waits; a stage that already runs ends by itself, unheard.
            () = lease.lost().cancelled() => { self.let_go(job).await; return None }
            () = self.hurry.cancelled() => { self.hand_back(job).await; return None }
            made = self.make(job, lease.lost(), started) => made,
        };
        let ended = match made {
            Ok(made) => {
                let is_done =
                    self.finish(job, &made).instrument(tracing::info_span!("record")).await;
                is_done.then_some(JobState::Done)
            }
            // The tool was unbound between the claim and now; another worker may serve it.
            Err(JobError::Model(LoadError::Unbound { .. })) => {
                self.hand_back(job).await;
                None
            }
            Err(error) => {
                self.give_up(job, &error).await;
                None
            }
        };
        drop(lease);
        ended
    }

    /// Everything but the recording: picture in, objects out.
    async fn make(
        &self,
        job: &Claimed,
        cancel: &CancellationToken,
        started: Instant,
    ) -> Result<NewResult, JobError> {
        let demand = Demand { tool: job.tool, tier: job.tier };
        self.tell(job, Stage::Fetch);
        let fetching = Instant::now();
        let fetch = async { (self.storage.get(&job.object_key).await, fetching.elapsed()) };
        let ((input, fetching), model) = tokio::join!(fetch, self.registry.model_for(demand));
        let (input, model) = (input?, model?);
        self.faults.strike(job.width).await;
        let (mut identity, mut is_demo) = (model.identity().clone(), false);
        let stored = match job.tool {
            Tool::RemoveBackground => self.cut_out(job, input, &model, cancel).await?,
            Tool::Upscale(factor) => self.enlarge(job, factor, input, model, cancel).await?,
            Tool::MagicFix(mode) => {
                let fixed = self.fix(job, mode, input, model, cancel).await?;
                // What ran may be another model than the bound one.
                identity = fixed.model.clone();
                is_demo = fixed.is_demo;
                let Fixed { png, thumbnail, width, height, stages, .. } = fixed;
                self.store(job, (png, thumbnail), (width, height), stages).await?
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
            size_bytes: stored.size_bytes as i64,
            width: stored.width as i32,
            height: stored.height as i32,
            model,
            model_sha256,
            device: device.to_string(),
            is_demo,
            duration_ms: i32::try_from(started.elapsed().as_millis()).unwrap_or(i32::MAX),
        })
    }

    async fn cut_out(
        &self,
        job: &Claimed,
        input: Bytes,
        model: &ModelHandle,
        cancel: &CancellationToken,
    ) -> Result<Stored, JobError> {
        let (pixels, limits) = (&self.pixels, &self.settings.limits);
        let progress = |stage| self.tell(job, stage_of(stage));
        let cutout = remove_background(input, model, pixels, limits, cancel, progress).await?;
        let Cutout { png, thumbnail, width, height, stages, .. } = cutout;
        self.store(job, (png, thumbnail), (width, height), stages).await
    }

    /// The result goes to the store while it is being made.
    async fn enlarge(
        &self,
        job: &Claimed,
        factor: Factor,
        input: Bytes,
        model: ModelHandle,
        cancel: &CancellationToken,
    ) -> Result<Stored, JobError> {
        let net = Upscaler::new(model)?;
        let (out, parts) = mpsc::channel(1);
        let upload =
            self.storage.upload(&self.pool, storage::result_key(job.id, job.attempt), "image/png");
        self.tell(job, Stage::Decode);
        let progress = |at: upscale::Progress| {
            let done = fraction_at(Stage::Store) - fraction_at(Stage::Preprocess);
            self.tell_progress(
                job,
                Progress {
                    stage: Stage::Infer,
                    fraction: at.fraction.mul_add(done, fraction_at(Stage::Preprocess)),
                    eta_secs: at.left.map(|left| left.as_secs_f32().ceil() as u32),
                    count: Some(at.tiles),
                },
            );
        };
        let making =
            upscale(input, factor, &net, &self.pixels, &self.settings, cancel, progress, out);
        // A store that refuses ends the making too: nobody takes its bytes any more.
        let (made, upload) =
            tokio::try_join!(async { making.await.map_err(JobError::from) }, async {
                receive(upload, parts).await.map_err(JobError::from)
            },)?;
        self.tell(job, Stage::Store);
        let upscale::Upscaled { thumbnail, width, height, stages } = made;
        let storing = Instant::now();
        let (size_bytes, thumbnail_key) =
            tokio::try_join!(upload.finish(), self.put_thumbnail(job, (width, height), thumbnail))?;
        let storing = storing.elapsed();
        Ok(Stored { width, height, size_bytes, stages, thumbnail_key, storing })
    }

    async fn fix(
        &self,
        job: &Claimed,
        mode: FixMode,
        input: Bytes,
        bound: ModelHandle,
        cancel: &CancellationToken,
    ) -> Result<Fixed, JobError> {
        let mask = persist(|| jobs::mask(&self.pool, job.id)).await?;
        let gone = || ToolError::Internal("the mask is no longer stored".to_owned());
        let mask = Bytes::from(mask.ok_or_else(gone)?);
        let prompt = Prompt::read(job.prompt.as_deref().unwrap_or_default())
            .map_err(|error| ToolError::Internal(format!("the job's prompt: {error}")))?;
        let enhance = Demand { tool: Tool::MagicFix(FixMode::Enhance), tier: job.tier };
        let may_clarify = mode == FixMode::Restore && self.registry.is_served(enhance);
        let clarifier =
            if may_clarify { Some(self.registry.model_for(enhance).await?) } else { None };
        let engines = Engines { bound, clarifier, judge: self.judge.clone() };
        // Two runs of the same wish differ, and a run that is repeated after a loss does not.
        let seed = job.id.uuid().as_u64_pair().1;
        // The table may be another by now than when the words were accepted.
        let wish = Wish { prompt, mode, mask, seed };
        let (news, id, started) = (self.news.clone(), job.id, Instant::now());
        let tell: Tell = Arc::new(move |stage, done, count: Option<Count>| {
            let stage = stage_of(stage);
            let mut progress = Progress { count, ..Progress::at(stage, fraction_at(stage)) };
            if stage == Stage::Infer && done > 0.0 {
                let span = fraction_at(Stage::Postprocess) - fraction_at(Stage::Infer);
                progress.fraction += done * span;
                let left = started.elapsed().as_secs_f32() * (1.0 - done) / done;
                progress.eta_secs = Some(left.ceil() as u32);
            }
            let _ = news.send(JobNews::progress(id, progress));
        });
        let limits = &self.settings.limits;
        Ok(magic_fix(input, wish, &engines, &self.pixels, limits, cancel, &tell).await?)
    }

    /// Stores a result that was made in one piece.
    async fn store(
        &self,
        job: &Claimed,
        (png, thumbnail): (Bytes, Bytes),
        (width, height): (u32, u32),
        stages: StageTimes,
    ) -> Result<Stored, JobError> {
        self.tell(job, Stage::Store);
        let size_bytes = png.len() as u64;
        let key = storage::result_key(job.id, job.attempt);
        let storing = Instant::now();
        let ((), thumbnail_key) = tokio::try_join!(
            self.storage.put(&key, "image/png", png),
            self.put_thumbnail(job, (width, height), thumbnail),
        )?;
        let storing = storing.elapsed();
        Ok(Stored { width, height, size_bytes, stages, thumbnail_key, storing })
    }

    /// Stores the small copy of a result; returns its key. A result that is no larger is its own small copy.
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

    /// Records the result. The work is done: a database that is away for a moment must not waste it, and
    /// recording twice records once. True when it is recorded.
    async fn finish(&self, job: &Claimed, made: &NewResult) -> bool {
        let recorded = persist(|| jobs::finish(&self.pool, self.worker, job.id, made)).await;
        match recorded {
            Ok(Finish::Done) => {
                metrics::counter!("retouch_jobs_done_total", "tool" => job.tool.name().as_str(), "tier" => job.tier.as_str())
                    .increment(1);
                tracing::info!(
                    duration_ms = made.duration_ms,
                    model = made.model,
                    "Finished job {}",
                    job.id
                );
                return true;
            }
            Ok(Finish::NotOurs) => {
                tracing::info!("Job {} was no longer ours; its result is thrown away", job.id);
            }
            // The lease runs out, and another attempt makes the result again.
            Err(error) => tracing::error!(%error, "Could not record the result of job {}", job.id),
        }
        false
    }

    async fn give_up(&self, job: &Claimed, error: &JobError) {
        let (verdict, failure) = judge(error);
        let outcome = match verdict {
            Verdict::Retry => {
                persist(|| jobs::retry(&self.pool, self.worker, job.id, &failure)).await
            }
            Verdict::Fail => persist(|| jobs::fail(&self.pool, self.worker, job.id, &failure))
                .await
                .map(|ours| if ours { Retry::Failed } else { Retry::NotOurs }),
        };
        match outcome {
            Ok(Retry::Queued) => {
                tracing::warn!("Attempt {} failed and will be repeated: {error}", job.attempt);
            }
            Ok(Retry::Failed) => {
                metrics::counter!("retouch_jobs_failed_total", "code" => failure.code.clone())
                    .increment(1);
                tracing::warn!("Job {} failed: {error}", job.id);
            }
            Ok(Retry::NotOurs) => tracing::info!("Job {} was no longer ours", job.id),
            Err(database) => {
                tracing::error!(error = %database, "Could not record that job {} failed", job.id);
            }
        }
        self.doom(job).await;
    }

    /// The job was cancelled, or another worker has it.
    async fn let_go(&self, job: &Claimed) {
        tracing::info!("Stopped job {}: it is no longer ours", job.id);
        self.doom(job).await;
    }

    /// The process must end before the job does.
    async fn hand_back(&self, job: &Claimed) {
        match persist(|| jobs::hand_back(&self.pool, self.worker, job.id)).await {
            Ok(true) => tracing::info!("Handed job {} back", job.id),
            Ok(false) => tracing::info!("Job {} was no longer ours", job.id),
            Err(error) => tracing::error!(%error, "Could not hand job {} back", job.id),
        }
        let class = JobClass { tier: job.tier, tool: job.tool.name() };
        if let Err(error) = self.queue.ring(class, job.id).await {
            tracing::warn!(%error, "Could not ring for job {}", job.id);
        }
    }

    async fn doom(&self, job: &Claimed) {
        if let Err(error) = storage::doom_attempt(&self.pool, job.id, job.attempt).await {
            tracing::warn!(%error, "Could not doom what job {} left in the store", job.id);
        }
    }

    fn tell(&self, job: &Claimed, stage: Stage) {
        self.tell_progress(job, Progress::at(stage, fraction_at(stage)));
    }

    fn tell_progress(&self, job: &Claimed, progress: Progress) {
        let _ = self.news.send(JobNews::progress(job.id, progress));
    }
}

/// Passes bytes on to the store until the sender is done.
async fn receive(
    mut upload: Upload,
    mut parts: mpsc::Receiver<Bytes>,
) -> Result<Upload, StorageError> {
    while let Some(bytes) = parts.recv().await {
        upload.push(&bytes).await?;
    }
    Ok(upload)
}

/// How much of a run is usually behind it when a stage begins, from 0 to 1; the model takes most of it.
const fn fraction_at(stage: Stage) -> f32 {
    match stage {
        Stage::Fetch => 0.02,
        Stage::Decode => 0.06,
        Stage::Preprocess => 0.12,
        Stage::Infer => 0.18,
        Stage::Postprocess => 0.76,
        Stage::Encode => 0.86,
        Stage::Store => 0.94,
    }
}

const fn stage_of(stage: stage::Stage) -> Stage {
    use stage::Stage as Step;
    match stage {
        Step::Decode => Stage::Decode,
        Step::Preprocess => Stage::Preprocess,
        Step::Infer => Stage::Infer,
        Step::Postprocess | Step::Foreground => Stage::Postprocess,
        Step::Encode => Stage::Encode,
    }
}

/// Asks the database again until it answers, for a while. Only for questions that are safe to repeat.
async fn persist<T, F>(ask: impl Fn() -> F) -> Result<T, DatabaseError>
where
    F: Future<Output = Result<T, DatabaseError>>,
{
    let deadline = Instant::now() + RECORD_FOR;
    let mut pause = Duration::from_millis(100);
    loop {
        match ask().await {
            Err(error) if Instant::now() < deadline => {
                tracing::warn!(%error, "The database did not answer; asking again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(5));
            }
            answer => return answer,
        }
    }
}
