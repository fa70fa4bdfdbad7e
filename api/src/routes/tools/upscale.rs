//! `/api/upscale`: Upscale.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use retouch_catalog::{Factor, Tier, Tool, ToolName};

use super::run::{self, RunAnswers, RunHeaders};
use crate::error::ApiError;
use crate::http::caller::SignedIn;
use crate::http::problem::Problem;
use crate::http::request::{ImageQuery, Path, Query, RequestPreferences};
use crate::routes::views::ResultView;
use crate::state::App;

/// The upscaled versions of an image, oldest first.
#[utoipa::path(get, path = "/api/upscale/{imageId}", tag = "upscale",
    params(("imageId" = String, Path)),
    responses((status = 200, body = [ResultView]), (status = 401, body = Problem), (status = 404, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn list_upscaled(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(image): Path<String>,
) -> Result<Json<Vec<ResultView>>, ApiError> {
    run::list(&app, user.id, &image, ToolName::Upscale).await
}

/// Upscales an image to twice its width and height, for 3 credits. Returns the new results; with
/// `Prefer: respond-async`, returns 202 with the job immediately.
#[utoipa::path(post, path = "/api/upscale/upscale-ai-2", tag = "upscale",
    params(ImageQuery, RunHeaders), responses(RunAnswers), security(("token" = []), ("key" = [])))]
pub async fn run_upscale_x2(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Query(query): Query<ImageQuery>,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    run::run(&app, user.id, (Tool::Upscale(Factor::X2), Tier::Paid), &query, preferences).await
}

/// Same as POST, for clients that only send GET.
#[utoipa::path(get, path = "/api/upscale/upscale-ai-2", tag = "upscale",
    params(ImageQuery, RunHeaders), responses(RunAnswers), security(("token" = []), ("key" = [])))]
pub async fn get_upscale_x2(
    app: State<App>,
    user: SignedIn,
    query: Query<ImageQuery>,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    run_upscale_x2(app, user, query, preferences).await
}

/// Upscales an image to four times its width and height, for 6 credits. Returns the new results; with
/// `Prefer: respond-async`, returns 202 with the job immediately.
#[utoipa::path(post, path = "/api/upscale/upscale-ai-4", tag = "upscale",
    params(ImageQuery, RunHeaders), responses(RunAnswers), security(("token" = []), ("key" = [])))]
pub async fn run_upscale_x4(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Query(query): Query<ImageQuery>,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    run::run(&app, user.id, (Tool::Upscale(Factor::X4), Tier::Paid), &query, preferences).await
}

/// Same as POST, for clients that only send GET.
#[utoipa::path(get, path = "/api/upscale/upscale-ai-4", tag = "upscale",
    params(ImageQuery, RunHeaders), responses(RunAnswers), security(("token" = []), ("key" = [])))]
pub async fn get_upscale_x4(
    app: State<App>,
    user: SignedIn,
    query: Query<ImageQuery>,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    run_upscale_x4(app, user, query, preferences).await
}

/// Upscales an image to twice its width and height with the small model, free, once per image.
#[utoipa::path(post, path = "/api/upscale/upscale-free", tag = "upscale",
    params(ImageQuery, RunHeaders), responses(RunAnswers), security(("token" = []), ("key" = [])))]
pub async fn run_free_upscale(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Query(query): Query<ImageQuery>,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    run::run(&app, user.id, (Tool::Upscale(Factor::X2), Tier::Free), &query, preferences).await
}

/// Same as POST, for clients that only send GET.
#[utoipa::path(get, path = "/api/upscale/upscale-free", tag = "upscale",
    params(ImageQuery, RunHeaders), responses(RunAnswers), security(("token" = []), ("key" = [])))]
pub async fn get_free_upscale(
    app: State<App>,
    user: SignedIn,
    query: Query<ImageQuery>,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    run_free_upscale(app, user, query, preferences).await
}

/// Deletes an upscaled version.
#[utoipa::path(delete, path = "/api/upscale/{imageId}", tag = "upscale",
    params(("imageId" = String, Path, description = "The id of the result")),
    responses((status = 204), (status = 401, body = Problem), (status = 404, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn delete_upscaled(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(result): Path<String>,
) -> Result<StatusCode, ApiError> {
    run::delete(&app, user.id, &result, ToolName::Upscale).await
}
