//! `/api/results`: results as files, in a format of the caller's choice or finished.

mod options;

use std::net::IpAddr;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use retouch_catalog::ToolName;
use retouch_core::ResultId;
use retouch_core::results::ResultImage;
use retouch_pixels::finish::{Finish, FinishedFile};

use crate::error::ApiError;
use crate::http::body::UploadMemory;
use crate::http::caller::{ClientAddress, SignedIn};
use crate::http::form_data::FormData;
use crate::http::multipart::{UploadBody, UploadFields, field_missing, multipart};
use crate::http::object::body_of;
use crate::http::problem::Problem;
use crate::http::request::{MetadataQuery, Path, Query, id};
use crate::http::signature::Signature;
use crate::signing::File;
use crate::state::App;
use crate::usecases::render_result::{owned_result, render_result, visitors_result};
use crate::usecases::upload_image::Metadata;
use options::{FileFormat, RenderOptions, output};

/// The format of a file.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FileQuery {
    #[serde(default)]
    #[param(inline, required = false)]
    format: FileFormat,
    /// The quality of a JPG or WebP; a WebP of quality 100 is lossless. 90 by default.
    #[param(value_type = Option<u8>, minimum = 1, maximum = 100)]
    quality: Option<f64>,
    /// Whether the file gets the image's EXIF, if its upload kept it. `strip` by default.
    #[serde(default)]
    #[param(inline, required = false)]
    metadata: Metadata,
}

/// A result as a file to save. The PNG is the stored one, byte for byte, unless it gets metadata. Transparent pixels are white in a JPG.
#[utoipa::path(get, path = "/api/results/{resultId}/file", tag = "results",
    params(("resultId" = String, Path), FileQuery),
    responses(
        (status = 200, description = "The file", content(
            (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/webp"))),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn get_result_file(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    ClientAddress(address): ClientAddress,
    Path(result): Path<String>,
    query: Result<Query<FileQuery>, ApiError>,
) -> Result<Response, ApiError> {
    let result = owned_result(&app, user.id, id(&result, "Result")?).await?;
    let Query(FileQuery { format, quality, metadata }) = query?;
    let finish = Finish::convert(output(format, quality)?);
    if finish.changes_nothing() && metadata == Metadata::Strip {
        return stored(&app, &result).await;
    }
    app.rate_limits.users.renders.count(user.id).await?;
    let file = render_result(&app, &result, finish, metadata, address).await?;
    Ok(attachment(&result, file))
}

/// Finishes a result on the server and returns it as a file to save, free of charge: touched up, cropped, with a
/// background and a shadow. All formats have the same pixels. Nothing is stored.
///
/// A `touchUp`, and the options `background`, `shadow` and `crop`, are for results of Remove Background only.
#[utoipa::path(post, path = "/api/results/{resultId}/render", tag = "results",
    params(("resultId" = String, Path), MetadataQuery),
    request_body(content = RenderUpload, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The file", content(
            (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/webp"))),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 408, body = Problem), (status = 413, body = Problem), (status = 422, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn render(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    ClientAddress(address): ClientAddress,
    Path(result): Path<String>,
    query: Result<Query<MetadataQuery>, ApiError>,
    memory: UploadMemory,
    body: UploadBody,
) -> Result<Response, ApiError> {
    let result: ResultId = id(&result, "Result")?;
    let Query(MetadataQuery { metadata }) = query?;
    let result = owned_result(&app, user.id, result).await?;
    app.rate_limits.users.renders.count(user.id).await?;
    let upload = uploaded_finish(multipart(body)?, app.limits.max_upload_bytes).await?;
    rendered(&app, &result, (upload, metadata), &memory, address).await
}

async fn rendered(
    app: &App,
    result: &ResultImage,
    (mut upload, metadata): (UploadedFinish, Metadata),
    memory: &UploadMemory,
    address: IpAddr,
) -> Result<Response, ApiError> {
    memory.hand_over(upload.touch_up.iter_mut().chain(&mut upload.background).collect());
    let finish = finish(result, upload)?;
    if finish.changes_nothing() && metadata == Metadata::Strip {
        return stored(app, result).await;
    }
    let file = render_result(app, result, finish, metadata, address).await?;
    Ok(attachment(result, file))
}

/// Finishes a visitor's result like `/api/results/{resultId}/render`, for whoever has its signed URL.
#[utoipa::path(post, path = "/api/files/results/{id}/render", tag = "files",
    params(("id" = String, Path), Signature),
    request_body(content = RenderUpload, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The file", content(
            (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/webp"))),
        (status = 400, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 408, body = Problem), (status = 413, body = Problem), (status = 422, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)))]
pub async fn render_signed(
    State(app): State<App>,
    ClientAddress(address): ClientAddress,
    Path(result): Path<String>,
    signature: Result<Query<Signature>, ApiError>,
    memory: UploadMemory,
    body: UploadBody,
) -> Result<Response, ApiError> {
    let id: ResultId = id(&result, "File")?;
    let Query(signature) = signature.map_err(|_| ApiError::NotFound("File"))?;
    signature.verify(&app, File::Result(id)).ok_or(ApiError::NotFound("File"))?;
    let result = visitors_result(&app, id).await?;
    app.rate_limits.visitors.uploads.count(&app.visitors.visitor(address)).await?;
    let upload = uploaded_finish(multipart(body)?, app.limits.max_upload_bytes).await?;
    // Only the owner gets the camera's metadata.
    rendered(&app, &result, (upload, Metadata::Strip), &memory, address).await
}

/// How to finish a result.
struct UploadedFinish {
    options: String,
    touch_up: Option<Bytes>,
    background: Option<Bytes>,
}

/// Reads a [`RenderUpload`], whose fields have any order.
async fn uploaded_finish(body: FormData, max_bytes: usize) -> Result<UploadedFinish, ApiError> {
    let (mut options, mut touch_up, mut background) = (None, None, None);
    let mut fields = UploadFields::new(body, max_bytes);
    while let Some(field) = fields.next().await? {
        match field.name() {
            Some("options") => options = Some(field.text().await?),
            Some("touchUp") => touch_up = Some(field.file().await?),
            Some("background") => background = Some(field.file().await?),
            _ => field.skip().await?,
        }
    }
    let options = options.ok_or_else(|| field_missing("options"))?;
    Ok(UploadedFinish { options, touch_up, background })
}

/// Turns an upload into what to do, if it makes sense for the result.
fn finish(result: &ResultImage, upload: UploadedFinish) -> Result<Finish, ApiError> {
    let UploadedFinish { options, touch_up, background } = upload;
    let finish = RenderOptions::parse(&options)?.into_finish(touch_up, background)?;
    let Finish { touch_up, background, shadow, crop, .. } = &finish;
    let for_cutouts = [
        ("The field touchUp", touch_up.is_some()),
        ("options.background", background.is_some()),
        ("options.shadow", shadow.is_some()),
        ("options.crop", crop.is_some()),
    ];
    match for_cutouts.into_iter().find(|(_, is_set)| *is_set) {
        Some((field, _)) if result.tool != ToolName::RemoveBackground => Err(
            ApiError::Unprocessable(format!("{field} is for results of Remove Background only.")),
        ),
        _ => Ok(finish),
    }
}

/// Streams the stored PNG.
async fn stored(app: &App, result: &ResultImage) -> Result<Response, ApiError> {
    let object = app.storage.open(&result.object_key, None).await?;
    let length = [(header::CONTENT_LENGTH, object.length)];
    let mut response = (length, body_of(object)).into_response();
    add_headers(&mut response, result, "image/png");
    Ok(response)
}

fn attachment(result: &ResultImage, file: FinishedFile) -> Response {
    let mut response = file.bytes.into_response();
    add_headers(&mut response, result, file.content_type);
    response
}

fn add_headers(response: &mut Response, result: &ResultImage, content_type: &'static str) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    let disposition = format!("attachment; filename=\"{}\"", file_name(result, content_type));
    headers.extend(
        HeaderValue::from_str(&disposition).ok().map(|it| (header::CONTENT_DISPOSITION, it)),
    );
}

fn file_name(result: &ResultImage, content_type: &str) -> String {
    let extension = match content_type {
        "image/jpeg" => "jpg",
        "image/webp" => "webp",
        _ => "png",
    };
    match (result.tool, result.factor) {
        (ToolName::RemoveBackground, _) => format!("cutout.{extension}"),
        (ToolName::Upscale, Some(factor)) => format!("upscaled-{factor}x.{extension}"),
        (ToolName::Upscale, None) => format!("upscaled.{extension}"),
        (ToolName::MagicFix, _) => format!("magic-fix.{extension}"),
    }
}

/// The multipart body of a finished result, for the OpenAPI document.
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "documents a body that is read field by field")]
pub struct RenderUpload {
    options: RenderOptions,
    /// A gray PNG of exactly the result's size. 128 leaves a pixel as it is, 0 erases it, and 255 restores the
    /// original picture there; values between do so in proportion.
    #[schema(value_type = Option<String>, format = Binary)]
    touch_up: Option<Vec<u8>>,
    /// A PNG, JPEG or WebP for the option `{"picture": true}`. It fills the output like `object-fit: cover` in CSS.
    #[schema(value_type = Option<String>, format = Binary)]
    background: Option<Vec<u8>>,
}
