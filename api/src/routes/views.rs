//! The JSON objects that several routes return.

use chrono::{DateTime, Utc};
use retouch_catalog::{Count, FixMode, Tier, ToolName};
use retouch_core::images::Image;
use retouch_core::jobs::{Estimate, Failure, Job, JobState, WaitsFor};
use retouch_core::queue::{JobProgress, ProgressStage};
use retouch_core::results::ResultImage;
use retouch_core::users::User;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::signing::{File, UrlSigner};

/// The caller.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = User)]
pub struct UserView {
    pub id: Uuid,
    pub email: Option<String>,
    /// The balance, including holds.
    #[schema(example = 20)]
    pub credits: i32,
    /// The part of the balance that is held for unfinished runs.
    #[schema(example = 0)]
    pub reserved: i32,
}

impl From<User> for UserView {
    fn from(User { id, email, credits, reserved, .. }: User) -> Self {
        Self { id: id.uuid(), email, credits, reserved }
    }
}

/// Which free runs of an image are used up.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FreeRuns)]
pub struct FreeRunsView {
    pub remove_background: bool,
    pub upscale: bool,
}

/// The result that an image was made from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MadeFrom)]
pub struct MadeFromView {
    /// The result; null after its deletion.
    pub result_id: Option<Uuid>,
    /// The image that the result was made from; null after its deletion.
    pub image_id: Option<Uuid>,
    pub tool: ToolName,
}

/// An uploaded image, or one made from a result.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Image)]
pub struct ImageView {
    pub id: Uuid,
    /// The same as `id`.
    pub image_id: Uuid,
    /// The name of the uploaded file, without its folder; null if the client sent none.
    #[schema(example = "cat.jpg", max_length = 200)]
    pub name: Option<String>,
    /// Works without a token for at least an hour.
    pub url: String,
    pub thumbnail_url: String,
    /// A WebP of at most 1600 pixels per side; null if the image is at most that large, or has none.
    pub preview_url: Option<String>,
    /// Width in pixels.
    #[schema(example = 1024)]
    pub x: i32,
    /// Height in pixels.
    #[schema(example = 768)]
    pub y: i32,
    pub size_bytes: i64,
    pub created_at: DateTime<Utc>,
    pub free_runs: FreeRunsView,
    /// Null for an uploaded image.
    pub made_from: Option<MadeFromView>,
}

impl ImageView {
    pub fn new(image: &Image, signer: &UrlSigner) -> Self {
        Self {
            id: image.id.uuid(),
            image_id: image.id.uuid(),
            name: image.name.clone(),
            url: signer.sign(File::Image(image.id)),
            thumbnail_url: signer.sign(File::ImageThumbnail(image.id)),
            preview_url: image
                .preview_key
                .as_ref()
                .map(|_| signer.sign(File::ImagePreview(image.id))),
            x: image.width,
            y: image.height,
            size_bytes: image.size_bytes,
            created_at: image.created_at,
            free_runs: FreeRunsView {
                remove_background: image.free_remove_background_used,
                upscale: image.free_upscale_used,
            },
            made_from: image.made_from_tool.map(|tool| MadeFromView {
                result_id: image.made_from_result.map(retouch_core::ResultId::uuid),
                image_id: image.made_from_image.map(retouch_core::ImageId::uuid),
                tool,
            }),
        }
    }
}

/// A list of images.
#[derive(Serialize, ToSchema)]
#[schema(as = ImageList)]
pub struct ImageListView {
    pub images: Vec<ImageView>,
    /// Where the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many images all pages have; only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
}

/// The result of a run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Result)]
pub struct ResultView {
    /// The id of the result.
    pub image_id: Uuid,
    /// The image that the run worked on.
    pub source_image_id: Uuid,
    pub job_id: Uuid,
    /// The PNG; works without a token for at least an hour.
    pub url: String,
    pub thumbnail_url: String,
    /// A WebP of at most 1600 pixels per side; null if the result is at most that large, or has none.
    pub preview_url: Option<String>,
    pub width: i32,
    pub height: i32,
    pub size_bytes: i64,
    pub created_at: DateTime<Utc>,
    pub tier: Tier,
    /// The price that was paid.
    #[schema(example = 5)]
    pub credits: i32,
    /// The model that ran.
    #[schema(example = "isnet")]
    pub model: String,
    /// The SHA-256 of the model file.
    pub model_sha256: String,
    /// The device it ran on.
    #[schema(example = "cuda")]
    pub device: String,
    pub duration_ms: i32,
    /// 2 or 4, for upscales.
    pub factor: Option<i16>,
    /// The prompt of a Magic Fix.
    pub prompt: Option<String>,
    /// How the prompt was understood.
    pub mode: Option<FixMode>,
    /// True if the model is a demo with limited abilities.
    pub demo: bool,
    /// The source type in the file's marks: a URI of the IPTC's vocabulary *Digital Source Type*. Null if the file has
    /// no marks.
    #[schema(
        example = "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
    )]
    pub source: Option<String>,
}

impl ResultView {
    pub fn new(result: &ResultImage, signer: &UrlSigner) -> Self {
        Self {
            image_id: result.id.uuid(),
            source_image_id: result.image.uuid(),
            job_id: result.job.uuid(),
            url: signer.sign(File::Result(result.id)),
            thumbnail_url: signer.sign(File::ResultThumbnail(result.id)),
            preview_url: result
                .preview_key
                .as_ref()
                .map(|_| signer.sign(File::ResultPreview(result.id))),
            width: result.width,
            height: result.height,
            size_bytes: result.size_bytes,
            created_at: result.created_at,
            tier: result.tier,
            credits: result.credits,
            model: result.model.clone(),
            model_sha256: result.model_sha256.clone(),
            device: result.device.clone(),
            duration_ms: result.duration_ms,
            factor: result.factor,
            prompt: result.prompt.clone(),
            mode: result.mode,
            demo: result.is_demo,
            source: result.source.clone(),
        }
    }

    pub fn list(results: &[ResultImage], signer: &UrlSigner) -> Vec<Self> {
        results.iter().map(|result| Self::new(result, signer)).collect()
    }
}

/// The progress of a running job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Progress)]
pub struct ProgressView {
    pub stage: ProgressStage,
    /// The completed share of the whole run, from 0 to 1.
    #[schema(example = 0.4)]
    pub fraction: f32,
    /// Null in stages that cannot be counted.
    pub count: Option<Count>,
}

/// One run of a tool.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Job)]
pub struct JobView {
    pub id: Uuid,
    pub tool: ToolName,
    /// 2 or 4, for upscales.
    pub factor: Option<i16>,
    /// The prompt of a Magic Fix.
    pub prompt: Option<String>,
    /// The `Idempotency-Key` of the request that started it; null without one, and once it was canceled.
    pub idempotency_key: Option<String>,
    pub tier: Tier,
    pub state: JobState,
    /// The image; null after its deletion.
    pub image_id: Option<Uuid>,
    /// The price in credits, debited when the job is done.
    #[schema(example = 5)]
    pub cost: i32,
    /// How many jobs start before this one; null after it has started.
    pub position: Option<i64>,
    /// The estimated seconds until it ends; null if there is no estimate.
    pub eta_seconds: Option<i64>,
    /// What it waits for; null after it has started.
    pub waits_for: Option<WaitsFor>,
    pub progress: Option<ProgressView>,
    pub failure: Option<Failure>,
    /// The results, once the job is done.
    pub results: Vec<ResultView>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl JobView {
    pub fn new(
        job: &Job,
        estimate: Option<Estimate>,
        progress: Option<JobProgress>,
        results: Vec<ResultView>,
    ) -> Self {
        let progress = progress.filter(|_| job.state == JobState::Running);
        Self {
            id: job.id.uuid(),
            tool: job.tool.name(),
            factor: job.tool.factor_column(),
            prompt: job.prompt.clone(),
            idempotency_key: job.idempotency_key.clone(),
            tier: job.tier,
            state: job.state,
            image_id: job.image.map(retouch_core::ImageId::uuid),
            cost: job.cost,
            position: estimate.and_then(|estimate| estimate.position),
            // Measured during this run, so better than the average of earlier ones.
            eta_seconds: progress
                .and_then(|progress| progress.eta_secs.map(i64::from))
                .or_else(|| estimate.and_then(|estimate| estimate.eta_secs)),
            waits_for: estimate.and_then(|estimate| estimate.waits_for),
            progress: progress.map(|JobProgress { stage, fraction, count, .. }| ProgressView {
                stage,
                fraction,
                count,
            }),
            failure: job.failure.clone(),
            results,
            created_at: job.created_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
        }
    }
}

/// The caller and their unfinished jobs: the first event of `/api/events`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub struct AccountView {
    pub user: UserView,
    pub jobs: Vec<JobView>,
}

/// A list of jobs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobList)]
pub struct JobListView {
    pub jobs: Vec<JobView>,
}
