//! Runs a tool for an MCP client, which names its picture or sends a small one along.
//!
//! Such clients give up after a while, and models call a tool again when they got no answer. So, as for
//! [`super::removebg`], the idempotency key is derived from the content of the call, and a run whose client has gone is
//! canceled. A picture that is sent along is stored as a program's: it and its results expire after an hour.

use bytes::Bytes;
use retouch_catalog::{Tier, Tool};
use retouch_core::images::{self, Image, Stay, Uploader};
use retouch_core::selection::{Clicks, ImageBox};
use retouch_core::users::User;
use retouch_core::{JobId, UserId, credits, db, jobs};
use retouch_pixels::mask::Drawing;
use retouch_pixels::{Limits, PixelError};
use retouch_prompts::Prompt;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use uuid::Uuid;

use super::find_image::owned_image;
use super::image_from_result::image_from_result;
use super::magic_fix::{FixRequest, magic_fix};
use super::run_tool::{RunOutcome, RunRequest, Waiting, join_job, run_tool};
use super::select::select;
use super::upload_image::{NewUpload, sha256_of, upload_image};
use crate::error::ApiError;
use crate::limits::decode_budget::UserOrVisitor;
use crate::signing::File;
use crate::state::App;

/// A picture of a call.
#[derive(Clone, Debug)]
pub enum PictureSource {
    /// The id of an image or of a result.
    Id(Uuid),
    /// The file of a signed address whose signature is valid.
    File(File),
    Inline(Bytes),
}

/// Where Magic Fix works.
#[derive(Clone, Debug)]
pub enum Area {
    /// A mask, as an uploaded one.
    Mask(Bytes),
    /// All pixels of a rectangle.
    Box(ImageBox),
    /// The object at some points, or the subject.
    Clicks(Clicks),
}

impl Area {
    /// Returns bytes that only an equal area has.
    fn content(&self) -> Vec<u8> {
        match self {
            Self::Mask(file) => file.to_vec(),
            Self::Box(_) | Self::Clicks(_) => format!("{self:?}").into_bytes(),
        }
    }
}

/// The work of a call.
#[derive(Clone, Debug)]
pub enum Action {
    /// Runs a tool that needs nothing but the picture.
    Run(Tool),
    /// Runs Magic Fix.
    Fix {
        /// As it was entered.
        prompt: String,
        area: Area,
        /// Whether no pixel outside the mask may change; `None` leaves it to the mode.
        is_mask_exact: Option<bool>,
    },
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct Call {
    pub picture: PictureSource,
    pub action: Action,
    /// Distinguishes calls that are otherwise equal. Equal calls share a run and its price.
    pub idempotency_key: Option<String>,
    /// Receives the id of the job once it is submitted or joined.
    pub started: watch::Sender<Option<JobId>>,
}

/// Runs the tool and waits for its result. A run that takes longer continues, and an equal call waits for it again.
pub async fn call_tool(app: &App, user: &User, call: Call) -> Result<RunOutcome, ApiError> {
    let Call { picture, action, idempotency_key, started } = call;
    app.rate_limits.users.runs.count(user.id).await?;
    let tool = match &action {
        Action::Run(tool) => *tool,
        Action::Fix { prompt, .. } => Tool::MagicFix(Prompt::parse(prompt)?.mode()),
    };
    let picture = find_picture(app, user, picture, tool).await?;
    let mut key = Key::new();
    key.add(idempotency_key.unwrap_or_default()).add(&picture.content).add(format!("{tool:?}"));
    let (window, wait) = (app.limits.repeat_window(), app.limits.wait());
    let waiting = Waiting {
        wait,
        repeat_window: Some(window),
        resubmits: true,
        started: Some(started.clone()),
    };
    let image = picture.image;
    match action {
        Action::Run(tool) => {
            let run = RunRequest {
                image: image.id,
                tool,
                tier: Tier::Paid,
                idempotency_key: Some(key.finish()),
                waiting,
            };
            run_tool(app, user.id, run).await
        }
        Action::Fix { prompt, area, is_mask_exact } => {
            key.add(&prompt).add(area.content()).add(format!("{is_mask_exact:?}"));
            let key = key.finish();
            // Turning clicks into a mask takes a worker's time and may give a different mask.
            let (pool, owner, repeated) = (app.pool.clone(), user.id, key.clone());
            let looking =
                async move { db::within(jobs::repeated(&pool, owner, &repeated, window)).await };
            if let Some(job) = app.in_turn_of(owner, looking).await?? {
                started.send_replace(Some(job.id));
                match join_job(app, job, wait).await {
                    // The call that submitted the run canceled it, but this one still wants a result.
                    Err(ApiError::Canceled) => {}
                    outcome => return outcome,
                }
            }
            let fixed = image.id;
            let mask = mask_of(app, user.id, image, area).await?;
            let fix = FixRequest {
                image: fixed,
                mask,
                is_mask_exact,
                prompt,
                idempotency_key: Some(key),
                waiting,
            };
            magic_fix(app, user.id, fix).await
        }
    }
}

/// The picture of a call.
struct Picture {
    image: Image,
    /// Equal for equal pictures.
    content: Vec<u8>,
}

async fn find_picture(
    app: &App,
    user: &User,
    source: PictureSource,
    tool: Tool,
) -> Result<Picture, ApiError> {
    let image = match source {
        PictureSource::Inline(file) => return sent_picture(app, user, file, tool).await,
        PictureSource::Id(id) => {
            match db::within(images::owned(&app.pool, user.id, id.into())).await? {
                Some(image) => image,
                None => match image_from_result(app, user.id, id.into(), Stay::LikeSource).await {
                    Ok((image, _)) => image,
                    Err(ApiError::NotFound(_)) => return Err(ApiError::NotFound("Image")),
                    Err(error) => return Err(error),
                },
            }
        }
        PictureSource::File(
            File::Image(id) | File::ImageThumbnail(id) | File::ImagePreview(id),
        ) => owned_image(app, user.id, id).await?,
        PictureSource::File(
            File::Result(id) | File::ResultThumbnail(id) | File::ResultPreview(id),
        ) => image_from_result(app, user.id, id, Stay::LikeSource).await?.0,
    };
    let content = image.id.uuid().as_bytes().to_vec();
    Ok(Picture { image, content })
}

/// Stores a picture that was sent along, or finds it if it was sent before.
async fn sent_picture(
    app: &App,
    user: &User,
    file: Bytes,
    tool: Tool,
) -> Result<Picture, ApiError> {
    let content = sha256_of(&file).await?;
    let stored = match db::within(images::for_program(&app.pool, user.id, &content)).await? {
        Some(id) => db::within(images::owned(&app.pool, user.id, id)).await?,
        None => None,
    };
    let image = match stored {
        Some(image) => image,
        // A run that cannot be paid for leaves no picture behind.
        None if user.credits - user.reserved < credits::price(tool) => {
            return Err(ApiError::NotEnoughCredits);
        }
        None => {
            app.rate_limits.users.uploads.count(user.id).await?;
            let max = app.limits.max_dimension_of(tool.name());
            upload_image(app, NewUpload::new(Uploader::Program(user.id), file, max)).await?
        }
    };
    Ok(Picture { image, content })
}

/// Returns the mask as an uploaded file.
async fn mask_of(app: &App, user: UserId, image: Image, area: Area) -> Result<Bytes, ApiError> {
    let size = (image.width.unsigned_abs(), image.height.unsigned_abs());
    match area {
        Area::Mask(file) => Ok(file),
        Area::Clicks(clicks) => select(app, user, image, clicks).await,
        Area::Box(area) => {
            let clicks = Clicks { area: Some(area), ..Clicks::default() };
            clicks.check(size).map_err(|error| ApiError::Unprocessable(format!("{error}.")))?;
            let limits = Limits { max_dimension: app.limits.max_dimension };
            let draw = move || -> Result<Vec<u8>, PixelError> {
                let ImageBox { x, y, width, height } = area;
                Drawing::rectangle(size, (x, y), (width, height))?.to_png()
            };
            let memory = Drawing::memory_bytes(&limits);
            Ok(app.decoders.run(UserOrVisitor::User(user), memory, draw).await?.0?.into())
        }
    }
}

/// The idempotency key of a call, made of its content. No client can send it: their keys are ASCII.
struct Key(Sha256);

impl Key {
    fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds a part; its length separates it from the next one.
    fn add(&mut self, part: impl AsRef<[u8]>) -> &mut Self {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
        self
    }

    fn finish(self) -> String {
        format!("≡mcp {}", hex::encode(self.0.finalize()))
    }
}
