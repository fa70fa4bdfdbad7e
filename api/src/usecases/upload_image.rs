//! Uploads an image: validates it, applies its orientation, strips its metadata unless told otherwise, and stores it with a thumbnail and a
//! preview. HEIC and AVIF are converted first. Its provenance is stored separately.

use std::net::IpAddr;

use bytes::Bytes;
use retouch_core::db;
use retouch_core::images::{
    self, Image, ImageName, InsertOutcome, NewImage, Provenance, Quota, Uploader,
};
use retouch_core::storage::{image_key, image_preview_key, image_thumbnail_key};
use retouch_core::{ImageId, UserId};
use retouch_credentials::Format;
use retouch_heif::{self as heif, Codec};
use retouch_pixels::decode::Header;
use retouch_pixels::exif::Exif;
use retouch_pixels::{Limits, PixelError, upload};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::limits::decode_budget::{Memory, UserOrVisitor};
use crate::state::App;

/// What happens to a file's EXIF, such as date, location and camera: `strip` drops it, `keep` keeps it. The
/// orientation is always applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = MetadataChoice)]
pub enum Metadata {
    /// It is dropped.
    #[default]
    Strip,
    /// It stays.
    Keep,
}

impl Metadata {
    /// Returns the EXIF to keep from `file`.
    pub fn of(self, file: &[u8]) -> Option<Exif> {
        match self {
            Self::Strip => None,
            Self::Keep => heif::exif(file),
        }
    }
}

/// An image to store.
pub struct NewUpload {
    pub uploader: Uploader,
    pub file: Bytes,
    pub name: Option<ImageName>,
    /// Maximum width and height, in pixels.
    pub max_dimension: u32,
    /// What the image keeps of the file's metadata.
    pub metadata: Metadata,
    /// A user's repeat with the same key and file returns the image of the first upload.
    pub idempotency_key: Option<String>,
}

impl NewUpload {
    /// Creates an upload without a name, metadata, or idempotency key.
    pub fn new(uploader: Uploader, file: Bytes, max_dimension: u32) -> Self {
        let (name, metadata, idempotency_key) = (None, Metadata::Strip, None);
        Self { uploader, file, name, max_dimension, metadata, idempotency_key }
    }
}

/// Stores an image. A rejected upload leaves nothing behind.
pub async fn upload_image(app: &App, new: NewUpload) -> Result<Image, ApiError> {
    let NewUpload { uploader, file, name, max_dimension, metadata, idempotency_key } = new;
    let content_sha256 = sha256_of(&file).await?;
    let key = idempotency_key.as_deref();
    if let Some(image) = earlier(app, &uploader, &content_sha256, key).await? {
        return Ok(image);
    }
    check_room(app, &uploader, file.len() as i64).await?;
    // Programs and visitors get the result at once, and their images appear in no list.
    let is_shown = matches!(uploader, Uploader::User(_));
    let limits = Limits { max_dimension };
    let caller = UserOrVisitor::from(&uploader);
    let (picture, provenance, mut memory) =
        prepare(app, caller, file, limits, metadata, is_shown).await?;
    let image = NewImage {
        id: ImageId::new(),
        uploader,
        name,
        content_type: picture.content_type,
        content_sha256,
        upload_key: idempotency_key,
        size_bytes: picture.bytes.len() as i64,
        width: picture.width as i32,
        height: picture.height as i32,
        has_preview: picture.preview.is_some(),
        provenance,
    };
    store(app, image.id, picture).await?;
    // The turn stays: recording the image locks the row of its owner, and would keep a connection to the database waiting.
    memory.shrink_to(0);
    record(app, &image).await
}

/// Decodes a file into what to store, and reads its provenance if results are marked. Returns the memory of what to store,
/// too.
async fn prepare(
    app: &App,
    caller: UserOrVisitor,
    file: Bytes,
    limits: Limits,
    metadata: Metadata,
    is_shown: bool,
) -> Result<(upload::Upload, Option<Provenance>, Memory), ApiError> {
    let (readable, mut memory) = readable(app, caller, &file, &limits).await?;
    let keeps_marks = app.credentials.may_mark();
    if keeps_marks {
        // Reading the marks needs this memory in addition to the file and its copies.
        let needed = 2 * file.len() as u64 + retouch_credentials::reading_bytes(&file);
        memory = app.decoders.enlarge(memory, needed).await?;
    }
    let make = move || {
        let exif = metadata.of(&file);
        let picture = upload::prepare(&readable, &limits, is_shown, exif.as_ref())?;
        // Only once the file has decoded as a picture; the stored picture loses this metadata.
        let provenance = if keeps_marks { provenance(&file) } else { None };
        Ok::<_, PixelError>((picture, provenance))
    };
    let (prepared, mut memory) = app.decoders.run_in(memory, make).await?;
    let (picture, provenance) = prepared?;
    let preview_bytes = picture.preview.as_ref().map_or(0, Bytes::len);
    memory.shrink_to(picture.bytes.len() + picture.thumbnail.len() + preview_bytes);
    Ok((picture, provenance, memory))
}

/// Writes the objects of an image.
async fn store(app: &App, id: ImageId, picture: upload::Upload) -> Result<(), ApiError> {
    db::within(images::announce(&app.pool, id)).await?;
    let (original, thumbnail) = (image_key(id), image_thumbnail_key(id));
    tokio::try_join!(
        app.storage.put(&original, picture.content_type, picture.bytes),
        app.storage.put(&thumbnail, picture.thumbnail_type, picture.thumbnail),
        async {
            let Some(preview) = picture.preview else { return Ok(()) };
            app.storage.put(&image_preview_key(id), "image/webp", preview).await
        },
    )?;
    Ok(())
}

/// Inserts the row of an image whose objects are stored, and returns the image.
async fn record(app: &App, new: &NewImage) -> Result<Image, ApiError> {
    match db::within(images::insert(&app.pool, new, app.limits.quota())).await? {
        InsertOutcome::Inserted => {}
        InsertOutcome::Repeated => {
            let (key, content) = (new.upload_key.as_deref(), &new.content_sha256);
            let image = earlier(app, &new.uploader, content, key).await?;
            return image.ok_or(ApiError::NotFound("Image"));
        }
        InsertOutcome::OverQuota => return Err(ApiError::StorageFull(app.limits.quota())),
        InsertOutcome::OwnerGone => return Err(ApiError::AccountDeleted),
        InsertOutcome::TooLate => {
            return Err(ApiError::Unavailable {
                detail: "Storing the image took too long. Please try again.".into(),
                retry_after_secs: 1,
            });
        }
    }
    let NewImage { id, width, height, .. } = new;
    tracing::info!(image.id = %id, width, height, "Stored image {id}");
    db::within(images::get(&app.pool, *id)).await?.ok_or(ApiError::NotFound("Image"))
}

/// Returns the image that a user uploaded with this idempotency key, or a visitor with these bytes.
///
/// # Errors
/// [`ApiError::IdempotencyKeyReused`] if it was another file.
async fn earlier(
    app: &App,
    uploader: &Uploader,
    content_sha256: &[u8],
    idempotency_key: Option<&str>,
) -> Result<Option<Image>, ApiError> {
    let id = match (uploader, idempotency_key) {
        (Uploader::Visitor(visitor), _) => {
            db::within(images::for_visitor(&app.pool, visitor, content_sha256)).await?
        }
        (Uploader::User(owner), Some(key)) => {
            match db::within(images::uploaded(&app.pool, *owner, key)).await? {
                Some((_, earlier)) if earlier != content_sha256 => {
                    return Err(ApiError::IdempotencyKeyReused);
                }
                found => found.map(|(id, _)| id),
            }
        }
        (Uploader::User(_) | Uploader::Program(_), _) => None,
    };
    let Some(id) = id else { return Ok(None) };
    Ok(db::within(images::get(&app.pool, id)).await?)
}

pub(super) async fn sha256_of(file: &Bytes) -> anyhow::Result<Vec<u8>> {
    let file = file.clone();
    Ok(tokio::task::spawn_blocking(move || Sha256::digest(&file).to_vec()).await?)
}

/// Returns the size of the upright picture in an uploaded file, in pixels.
pub fn size(file: &[u8], limits: &Limits) -> Result<(u32, u32), PixelError> {
    if Codec::of(file).is_some() {
        return heif::Header::read(file, limits).map(|header| (header.width, header.height));
    }
    Header::read(file, limits).map(|header| (header.width, header.height))
}

/// Returns a file that can be prepared, and the memory for that: this one, or what HEIC and AVIF are converted to.
pub async fn readable(
    app: &App,
    caller: UserOrVisitor,
    file: &Bytes,
    limits: &Limits,
) -> Result<(Bytes, Memory), ApiError> {
    if Codec::of(file).is_none() {
        let needed = Header::read(file, limits)?.prepare_bytes();
        return Ok((file.clone(), app.decoders.reserve_soon(caller, needed).await?));
    }
    let header = heif::Header::read(file, limits)?;
    let memory = app.decoders.reserve_soon(caller, header.convert_bytes()).await?;
    let convert = app.heif.convert(file.clone(), &header);
    let (converted, memory) = app.decoders.run_apart(memory, convert).await?;
    let converted = converted?;
    // The converted file is not among the uploads, whose memory is counted elsewhere.
    let needed = Header::read(&converted, limits)?.prepare_bytes() + converted.len() as u64;
    Ok((converted, app.decoders.enlarge(memory, needed).await?))
}

/// Returns the provenance of a file; `None` if it has no marks.
fn provenance(file: &Bytes) -> Option<Provenance> {
    let said = retouch_credentials::Provenance::read(file, Format::of(file)?)?;
    Some(Provenance { ingredient: said.ingredient, source: said.source.map(|it| it.uri()) })
}

/// Rejects an upload for which there is no room, before it is decoded and stored. Inserting it decides.
async fn check_room(app: &App, uploader: &Uploader, size_bytes: i64) -> Result<(), ApiError> {
    let (Uploader::User(owner) | Uploader::Program(owner)) = uploader else { return Ok(()) };
    let quota = app.limits.quota();
    if quota == Quota::NONE
        || quota.has_room(db::within(images::stored(&app.pool, *owner)).await?, size_bytes)
    {
        return Ok(());
    }
    Err(ApiError::StorageFull(quota))
}

/// Counts an upload that is not stored, and returns whose it is.
pub(super) async fn count_upload(
    app: &App,
    (user, address): (Option<UserId>, IpAddr),
) -> Result<UserOrVisitor, ApiError> {
    if let Some(user) = user {
        app.rate_limits.users.uploads.count(user).await?;
        return Ok(UserOrVisitor::User(user));
    }
    let visitor = app.visitors.visitor(address);
    app.rate_limits.visitors.uploads.count(&visitor).await?;
    Ok(UserOrVisitor::Visitor(visitor.pseudonym))
}
