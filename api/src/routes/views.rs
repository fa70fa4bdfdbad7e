//! The JSON that leaves the API.

use chrono::{DateTime, Utc};
use retouch_catalog::{Count, CountUnit, FixMode, Tier, ToolName};
use retouch_core::images::Image;
use retouch_core::jobs::{Failure, Forecast, Job, JobState};
use retouch_core::queue::{Progress, Stage};
use retouch_core::results::ResultImage;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::signing::{File, UrlSigner};

/// The person whose token was sent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = User)]
pub struct UserView {
    pub id: Uuid,
    pub email: Option<String>,
    /// What they own, holds included.
    #[schema(example = 20)]
    pub credits: i32,
    /// What of it is held for runs that have not ended.
    #[schema(example = 0)]
    pub reserved: i32,
}

/// Which free runs of a picture are used up.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FreeRuns)]
pub struct FreeRunsView {
    pub remove_background: bool,
    pub upscale: bool,
}

/// An uploaded picture.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Image)]
pub struct ImageView {
    pub id: Uuid,
    /// The same as `id`.
    pub image_id: Uuid,
    /// Works without a token for an hour at least.
    pub url: String,
    pub thumbnail_url: String,
    /// Width in pixels.
    #[schema(example = 1024)]
    pub x: i32,
    /// Height in pixels.
    #[schema(example = 768)]
    pub y: i32,
    pub size_bytes: i64,
    pub created_at: DateTime<Utc>,
    pub free_runs: FreeRunsView,
}

impl ImageView {
    pub fn new(image: &Image, signer: &UrlSigner) -> Self {
        Self {
            id: image.id.uuid(),
            image_id: image.id.uuid(),
            url: signer.sign(File::Image(image.id)),
            thumbnail_url: signer.sign(File::ImageThumbnail(image.id)),
            x: image.width,
            y: image.height,
            size_bytes: image.size_bytes,
            created_at: image.created_at,
            free_runs: FreeRunsView {
                remove_background: image.free_remove_background_used,
                upscale: image.free_upscale_used,
            },
        }
    }
}

/// All pictures of a user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImageList)]
pub struct ImageListView {
    pub images: Vec<ImageView>,
}

/// For whom a run was.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Tier)]
pub enum TierView {
    Paid,
    Free,
    Visitor,
}

impl From<Tier> for TierView {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Paid => Self::Paid,
            Tier::Free => Self::Free,
            Tier::Visitor => Self::Visitor,
        }
    }
}

/// A tool.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Tool)]
pub enum ToolView {
    RemoveBackground,
    Upscale,
    MagicFix,
}

impl From<ToolName> for ToolView {
    fn from(tool: ToolName) -> Self {
        match tool {
            ToolName::RemoveBackground => Self::RemoveBackground,
            ToolName::Upscale => Self::Upscale,
            ToolName::MagicFix => Self::MagicFix,
        }
    }
}

/// What a Magic Fix does to the masked area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = FixMode)]
pub enum ModeView {
    Edit,
    Restore,
    Remove,
    Enhance,
    Add,
}

impl From<FixMode> for ModeView {
    fn from(mode: FixMode) -> Self {
        match mode {
            FixMode::Edit => Self::Edit,
            FixMode::Restore => Self::Restore,
            FixMode::Remove => Self::Remove,
            FixMode::Enhance => Self::Enhance,
            FixMode::Add => Self::Add,
        }
    }
}

/// A picture that a run made.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Result)]
pub struct ResultView {
    /// The id of the result.
    pub image_id: Uuid,
    /// The picture it was made from.
    pub source_image_id: Uuid,
    pub job_id: Uuid,
    /// A PNG; works without a token for an hour at least.
    pub url: String,
    pub thumbnail_url: String,
    pub width: i32,
    pub height: i32,
    pub size_bytes: i64,
    pub created_at: DateTime<Utc>,
    pub tier: TierView,
    /// What was paid.
    #[schema(example = 5)]
    pub credits: i32,
    /// The model that really ran.
    #[schema(example = "isnet")]
    pub model: String,
    /// The checksum of the file of that model.
    pub model_sha256: String,
    /// The device it really ran on.
    #[schema(example = "cuda")]
    pub device: String,
    pub duration_ms: i32,
    /// 2 or 4, for upscales.
    pub factor: Option<i16>,
    /// The words of a Magic Fix.
    pub prompt: Option<String>,
    /// What they were taken to mean.
    pub mode: Option<ModeView>,
    /// Whether the model only shows that the way works.
    pub demo: bool,
}

impl ResultView {
    pub fn new(result: &ResultImage, signer: &UrlSigner) -> Self {
        Self {
            image_id: result.id.uuid(),
            source_image_id: result.image.uuid(),
            job_id: result.job.uuid(),
            url: signer.sign(File::Result(result.id)),
            thumbnail_url: signer.sign(File::ResultThumbnail(result.id)),
            width: result.width,
            height: result.height,
            size_bytes: result.size_bytes,
            created_at: result.created_at,
            tier: result.tier.into(),
            credits: result.credits,
            model: result.model.clone(),
            model_sha256: result.model_sha256.clone(),
            device: result.device.clone(),
            duration_ms: result.duration_ms,
            factor: result.factor,
            prompt: result.prompt.clone(),
            mode: result.mode.map(ModeView::from),
            demo: result.is_demo,
        }
    }

    pub fn list(results: &[ResultImage], signer: &UrlSigner) -> Vec<Self> {
        results.iter().map(|result| Self::new(result, signer)).collect()
    }
}

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = JobState)]
pub enum JobStateView {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

impl From<JobState> for JobStateView {
    fn from(state: JobState) -> Self {
        match state {
            JobState::Queued => Self::Queued,
            JobState::Running => Self::Running,
            JobState::Done => Self::Done,
            JobState::Failed => Self::Failed,
            JobState::Cancelled => Self::Cancelled,
        }
    }
}

/// The step a running job is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Stage)]
pub enum StageView {
    Fetch,
    Decode,
    Preprocess,
    Infer,
    Postprocess,
    Encode,
    Store,
}

impl From<Stage> for StageView {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Fetch => Self::Fetch,
            Stage::Decode => Self::Decode,
            Stage::Preprocess => Self::Preprocess,
            Stage::Infer => Self::Infer,
            Stage::Postprocess => Self::Postprocess,
            Stage::Encode => Self::Encode,
            Stage::Store => Self::Store,
        }
    }
}

/// How far a running job is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Progress)]
pub struct ProgressView {
    pub stage: StageView,
    /// How much of the whole run is behind it, from 0 to 1.
    #[schema(example = 0.4)]
    pub fraction: f32,
    /// Null while nothing can be counted.
    pub count: Option<CountView>,
}

impl From<Progress> for ProgressView {
    fn from(at: Progress) -> Self {
        let count = at.count.map(|Count { unit, done, total }| CountView {
            unit: match unit {
                CountUnit::Tiles => CountUnitView::Tiles,
                CountUnit::Steps => CountUnitView::Steps,
            },
            done,
            total,
        });
        Self { stage: at.stage.into(), fraction: at.fraction, count }
    }
}

/// How many of a run's tiles or steps are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Count)]
pub struct CountView {
    pub unit: CountUnitView,
    #[schema(example = 12)]
    pub done: u32,
    #[schema(example = 48)]
    pub total: u32,
}

/// What a run is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = CountUnit)]
pub enum CountUnitView {
    Tiles,
    Steps,
}

/// Why a job failed; it cost nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Failure)]
pub struct FailureView {
    /// For programs.
    #[schema(example = "image_unreadable")]
    pub code: String,
    /// For people.
    pub detail: String,
}

/// One run of a tool.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Job)]
pub struct JobView {
    pub id: Uuid,
    pub tool: ToolView,
    /// 2 or 4, for upscales.
    pub factor: Option<i16>,
    /// The words of a Magic Fix.
    pub prompt: Option<String>,
    pub tier: TierView,
    pub state: JobStateView,
    /// The picture; null when it has been deleted.
    pub image_id: Option<Uuid>,
    /// What it costs when it is done.
    #[schema(example = 5)]
    pub cost: i32,
    /// How many jobs will start before it; null once it has started.
    pub position: Option<i64>,
    /// Seconds until it ends, as far as that can be told.
    pub eta_seconds: Option<i64>,
    pub progress: Option<ProgressView>,
    pub failure: Option<FailureView>,
    /// What it made, once it is done.
    pub results: Vec<ResultView>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl JobView {
    pub fn new(
        job: &Job,
        forecast: Option<Forecast>,
        progress: Option<Progress>,
        results: Vec<ResultView>,
    ) -> Self {
        let progress = progress.filter(|_| job.state == JobState::Running);
        Self {
            id: job.id.uuid(),
            tool: job.tool.name().into(),
            factor: job.tool.factor_column(),
            prompt: job.prompt.clone(),
            tier: job.tier.into(),
            state: job.state.into(),
            image_id: job.image.map(retouch_core::ImageId::uuid),
            cost: job.cost,
            position: forecast.and_then(|forecast| forecast.position),
            // What this run has shown of itself is worth more than the average of others.
            eta_seconds: progress
                .and_then(|at| at.eta_secs.map(i64::from))
                .or_else(|| forecast.and_then(|forecast| forecast.eta_secs)),
            progress: progress.map(ProgressView::from),
            failure: job
                .failure
                .clone()
                .map(|Failure { code, detail }| FailureView { code, detail }),
            results,
            created_at: job.created_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
        }
    }
}

/// Jobs that have not ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobList)]
pub struct JobListView {
    pub jobs: Vec<JobView>,
}
