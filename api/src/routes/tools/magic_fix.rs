//! `/api/magic-images`: Magic Fix.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use retouch_catalog::{FixMode, ToolName};
use retouch_prompts::Prompt;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::run::{self, RunAnswers, RunHeaders};
use crate::error::ApiError;
use crate::http::caller::SignedIn;
use crate::http::form_data::FormData;
use crate::http::multipart::{UploadBody, UploadFields, field_missing, multipart};
use crate::http::problem::Problem;
use crate::http::request::{JsonBody, Path, RequestPreferences, id};
use crate::routes::views::ResultView;
use crate::state::App;
use crate::usecases::magic_fix::{FixRequest, fix_offer, magic_fix};
use crate::usecases::run_tool::Waiting;

/// The Magic Fix results of an image, oldest first.
#[utoipa::path(get, path = "/api/magic-images/{imageId}", tag = "magic fix",
    params(("imageId" = String, Path)),
    responses((status = 200, body = [ResultView]), (status = 401, body = Problem), (status = 404, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn list_magic_images(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(image): Path<String>,
) -> Result<Json<Vec<ResultView>>, ApiError> {
    run::list(&app, user.id, &image, ToolName::MagicFix).await
}

/// Repaints the masked area as the prompt says, for 8 credits. Returns the new results; with
/// `Prefer: respond-async`, returns 202 with the job immediately.
///
/// Returns 422 with the code `prompt_not_possible` if no installed model can follow the prompt, and with
/// `prompt_required`, `prompt_too_long`, `mask_invalid` or `mask_empty` if the prompt or mask is invalid. None of these
/// costs credits.
#[utoipa::path(post, path = "/api/magic-images/fix/{imageId}", tag = "magic fix",
    params(("imageId" = String, Path), RunHeaders),
    request_body(content = MaskUpload, content_type = "multipart/form-data"),
    responses(RunAnswers, (status = 408, body = Problem), (status = 413, body = Problem)), security(("token" = []), ("key" = [])))]
pub async fn run_magic_fix(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(image): Path<String>,
    preferences: RequestPreferences,
    body: UploadBody,
) -> Result<Response, ApiError> {
    app.rate_limits.users.runs.count(user.id).await?;
    let image = id(&image, "Image")?;
    let body = multipart(body)?;
    let UploadedMask { mask, prompt, is_exact } =
        uploaded_mask(body, app.limits.max_upload_bytes).await?;
    let RequestPreferences { idempotency_key, is_async, wait } = preferences;
    let request = FixRequest {
        image,
        mask,
        is_mask_exact: is_exact,
        prompt,
        idempotency_key,
        waiting: Waiting::up_to(wait),
    };
    Ok(run::respond(&app, magic_fix(&app, user.id, request).await?, is_async).await)
}

/// A mask and what to do there.
struct UploadedMask {
    mask: Bytes,
    /// Empty if it is missing.
    prompt: String,
    is_exact: Option<bool>,
}

/// Reads a [`MaskUpload`], whose fields have any order.
async fn uploaded_mask(body: FormData, max_bytes: usize) -> Result<UploadedMask, ApiError> {
    let (mut mask, mut prompt, mut is_exact) = (None, String::new(), None);
    let mut fields = UploadFields::new(body, max_bytes);
    while let Some(field) = fields.next().await? {
        match field.name() {
            Some("file") => mask = Some(field.file().await?),
            Some("prompt") => prompt = field.text().await?,
            Some("exactMask") => {
                let exact = field.text().await?.parse().map_err(|_| {
                    ApiError::BadRequest("The field exactMask must be true or false.".into())
                })?;
                is_exact = Some(exact);
            }
            _ => field.skip().await?,
        }
    }
    Ok(UploadedMask { mask: mask.ok_or_else(|| field_missing("file"))?, prompt, is_exact })
}

/// A prompt to interpret.
#[derive(Debug, Deserialize, ToSchema)]
pub struct PromptView {
    #[schema(example = "remove the object")]
    prompt: String,
}

/// What a prompt means.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PromptMeaning)]
pub struct MeaningView {
    mode: FixMode,
    /// Why this installation cannot follow it, and what is possible instead; null if it can.
    #[schema(example = "This server cannot restore yet. Try “remove it”.")]
    problem: Option<String>,
}

/// Says what Magic Fix would do with a prompt and whether it can. The call is free, so the page can ask while people type.
///
/// Returns 422 with the code `prompt_required` or `prompt_too_long` if the prompt is invalid.
#[utoipa::path(post, path = "/api/magic-images/meaning", tag = "magic fix", request_body = PromptView,
    responses((status = 200, body = MeaningView), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 422, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn prompt_meaning(
    State(app): State<App>,
    _user: SignedIn,
    JsonBody(body): JsonBody<PromptView>,
) -> Result<Json<MeaningView>, ApiError> {
    let prompt = Prompt::parse(&body.prompt)?;
    let problem = fix_offer(&app).await?.check(&prompt).err();
    Ok(Json(MeaningView { mode: prompt.mode(), problem }))
}

/// Deletes a Magic Fix result.
#[utoipa::path(delete, path = "/api/magic-images/{imageId}", tag = "magic fix",
    params(("imageId" = String, Path, description = "The id of the result")),
    responses((status = 204), (status = 401, body = Problem), (status = 404, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn delete_magic_image(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(result): Path<String>,
) -> Result<StatusCode, ApiError> {
    run::delete(&app, user.id, &result, ToolName::MagicFix).await
}

/// The multipart body with a mask and a prompt, for the OpenAPI document.
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "documents a body that is read field by field")]
pub struct MaskUpload {
    /// A PNG that marks the area to repaint: by opacity, or in white if the PNG is fully opaque. It has the size or
    /// the aspect ratio of the image.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// What the area should show, in 1 to 500 characters.
    #[schema(example = "remove the object")]
    prompt: String,
    /// Whether no pixel outside the mask may change. Otherwise the result may differ a little around it, as the
    /// configuration's `magicFix.reach` says. By default true for prompts that edit, add, or restore.
    exact_mask: Option<bool>,
}
