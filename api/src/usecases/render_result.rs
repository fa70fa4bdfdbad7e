//! Renders a result as a file: in another format, or finished with a background, a shadow, a crop and a touch-up. Free
//! of charge, and nothing is stored.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use retouch_core::images;
use retouch_core::results::{self, ResultImage};
use retouch_core::{ResultId, UserId, db};
use retouch_credentials::Credentials;
use retouch_pixels::Limits;
use retouch_pixels::decode::Header;
use retouch_pixels::finish::{self, Background, Finish, FinishError, FinishedFile};
use tokio::time::timeout;

use super::upload_image::Metadata;
use crate::error::ApiError;
use crate::limits::decode_budget::{UserOrVisitor, busy};
use crate::limits::fair_budget::FairBudget;
use crate::limits::turns::Turn;
use crate::state::App;

/// Returns a result of `user`. Results of visitors belong to nobody.
pub async fn owned_result(app: &App, user: UserId, id: ResultId) -> Result<ResultImage, ApiError> {
    let found = db::within(results::get(&app.pool, id)).await?;
    found.filter(|result| result.owner == Some(user)).ok_or(ApiError::NotFound("Result"))
}

/// Returns a visitor's result for anyone with its signed URL. A user's result is not rendered for others: a finish can
/// draw from the original picture, which the signed URL of the result does not reveal.
pub async fn visitors_result(app: &App, id: ResultId) -> Result<ResultImage, ApiError> {
    let found = db::within(results::get(&app.pool, id)).await?;
    found.filter(|result| result.owner.is_none()).ok_or(ApiError::NotFound("File"))
}

/// Renders a result for a client at `address`; with the metadata of its image, if that was kept and is wanted.
pub async fn render_result(
    app: &App,
    result: &ResultImage,
    finish: Finish,
    metadata: Metadata,
    address: IpAddr,
) -> Result<FinishedFile, ApiError> {
    let limits = Limits { max_dimension: app.limits.max_dimension };
    let wait = Duration::from_secs(app.limits.decode_wait_secs);
    let caller = match result.owner {
        Some(owner) => UserOrVisitor::User(owner),
        // A visitor's result belongs to nobody.
        None => UserOrVisitor::Visitor(app.visitors.visitor(address).pseudonym),
    };
    let turn = take_turn(app, caller, wait).await?;
    let original = if finish.needs_original() || metadata == Metadata::Keep {
        Some(fetch_original(app, result, address).await?)
    } else {
        None
    };
    // The limits for uploads may have changed since it was uploaded.
    let any_size = Limits { max_dimension: u32::MAX };
    let header_of_original =
        original.as_ref().map(|file| Header::read(file, &any_size)).transpose()?;
    let background = match &finish.background {
        Some(Background::Picture(file)) => {
            Some(Header::read(file, &limits).map_err(FinishError::Background)?)
        }
        _ => None,
    };
    let size = (result.width.unsigned_abs(), result.height.unsigned_abs());
    let memory =
        finish::memory_bytes(size, &finish, header_of_original.as_ref(), background.as_ref());
    let memory = app.decoders.reserve(memory + result.size_bytes.unsigned_abs(), wait).await?;
    let png = app.storage.get(&result.object_key).await?;
    let marks = Marks::new(app);
    let is_finished = finish != Finish::convert(finish.output);
    let render = move || {
        let FinishedFile { bytes, content_type } =
            finish::render(&png, original.as_deref(), &finish, &limits)?;
        let exif = original.and_then(|file| metadata.of(&file));
        let bytes = exif.map_or_else(|| Ok(bytes.clone()), |exif| exif.put_on(&bytes))?;
        let bytes = marks.carry_over(bytes, &png, is_finished)?;
        Ok::<_, ApiError>(FinishedFile { bytes, content_type })
    };
    let (file, memory) = app.decoders.run_in(memory, render).await?;
    let FinishedFile { bytes, content_type } = file?;
    Ok(FinishedFile { bytes: memory.keep_for(bytes, turn), content_type })
}

/// Waits up to `wait` until a caller may render another result.
pub async fn take_turn(app: &App, caller: UserOrVisitor, wait: Duration) -> Result<Turn, ApiError> {
    let share = app.decoders.unsent_share(&caller);
    let turn = timeout(wait, app.renderings.take(caller, share)).await.map_err(|_| busy())?;
    Ok(turn?)
}

/// Marks a file that is made from a result as the result is marked.
pub struct Marks {
    credentials: Credentials,
    now: DateTime<Utc>,
}

impl Marks {
    pub fn new(app: &App) -> Self {
        Self { credentials: app.credentials.clone(), now: app.clock.now() }
    }

    /// Marks `file`, made from the result `png`. May wait for a timestamp, so call it on a thread that may block.
    pub fn carry_over(
        &self,
        file: Bytes,
        png: &[u8],
        is_finished: bool,
    ) -> Result<Bytes, ApiError> {
        let marked = self.credentials.mark_rendering(file, png, is_finished, self.now);
        marked.map_err(|error| {
            tracing::error!(%error, "Cannot sign a file");
            ApiError::Unavailable {
                detail: "We can't sign files at the moment. Please try again later.".into(),
                retry_after_secs: 60,
            }
        })
    }
}

/// Reads the picture that a result was made from. Its file counts like an upload of the client: how much memory it takes
/// to decode is only known from the file.
async fn fetch_original(
    app: &App,
    result: &ResultImage,
    address: IpAddr,
) -> Result<Bytes, ApiError> {
    let image = db::within(images::get(&app.pool, result.image)).await?;
    let image = image.ok_or(ApiError::NotFound("Result"))?;
    let mut share = FairBudget::share(Arc::clone(&app.upload_budget), Some(address));
    if !share.grow(image.size_bytes.unsigned_abs() as usize) {
        return Err(busy());
    }
    Ok(share.keep_for(app.storage.get(&image.object_key).await?))
}
