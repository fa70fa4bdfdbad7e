//! `/api/magic-images`: repainting a masked area as words say.

use axum::Json;
use axum::extract::multipart::MultipartRejection;
use axum::extract::{Multipart, State};
use axum::http::StatusCode;
use axum::response::Response;
use retouch_catalog::ToolName;

use super::caller::{MaskUpload, Path, SignedIn, Wishes, id, multipart, uploaded_mask};
use super::problem::Problem;
use super::run::{self, RunAnswers, RunHeaders};
use super::views::ResultView;
use crate::error::ApiError;
use crate::state::App;
use crate::usecases::magic_fix::{Fix, magic_fix};

/// The results of one picture, the oldest first.
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

/// Repaints what the mask covers as the prompt says, for 8 credits. Waits for the new results;
/// with `Prefer: respond-async` it answers 202 with the job at once.
///
/// 422 with the code `prompt_not_possible` when no installed engine can follow the prompt, with
/// `prompt_required`, `prompt_too_long`, `mask_invalid` or `mask_empty` when something is amiss with what
/// was sent. Nothing is charged then.
#[utoipa::path(post, path = "/api/magic-images/fix/{imageId}", tag = "magic fix",
    params(("imageId" = String, Path), RunHeaders),
    request_body(content = MaskUpload, content_type = "multipart/form-data"),
    responses(RunAnswers, (status = 408, body = Problem), (status = 413, body = Problem)), security(("token" = []), ("key" = [])))]
pub async fn run_magic_fix(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(image): Path<String>,
    wishes: Wishes,
    body: Result<Multipart, MultipartRejection>,
) -> Result<Response, ApiError> {
    app.rates.count_run(user.id)?;
    let image = id(&image, "Image")?;
    let body = multipart(body)?;
    let (mask, prompt) = uploaded_mask(body, app.limits.max_upload_bytes).await?;
    let fix =
        Fix { image, mask, prompt, idempotency_key: wishes.idempotency_key, wait: wishes.wait };
    run::answer(&app, magic_fix(&app, user.id, fix).await?).await
}

/// Deletes one result.
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
