//! `/api/rmbg-images`: Remove Background.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use retouch_catalog::{Tier, Tool, ToolName};

use super::run::{self, RunAnswers, RunHeaders};
use crate::error::ApiError;
use crate::http::caller::SignedIn;
use crate::http::problem::Problem;
use crate::http::request::{ImageQuery, Path, Query, RequestPreferences};
use crate::routes::views::ResultView;
use crate::state::App;

/// The cutouts of an image, oldest first.
#[utoipa::path(get, path = "/api/rmbg-images/{imageId}", tag = "remove background",
    params(("imageId" = String, Path)),
    responses((status = 200, body = [ResultView]), (status = 401, body = Problem), (status = 404, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn list_cutouts(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(image): Path<String>,
) -> Result<Json<Vec<ResultView>>, ApiError> {
    run::list(&app, user.id, &image, ToolName::RemoveBackground).await
}

/// Removes the background with the best model, for 5 credits. Returns the new results; with
/// `Prefer: respond-async`, returns 202 with the job immediately.
#[utoipa::path(post, path = "/api/rmbg-images/remove-bg-ai", tag = "remove background",
    params(ImageQuery, RunHeaders), responses(RunAnswers), security(("token" = []), ("key" = [])))]
pub async fn run_remove_background(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Query(query): Query<ImageQuery>,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    run::run(&app, user.id, (Tool::RemoveBackground, Tier::Paid), &query, preferences).await
}

/// Same as POST, for clients that only send GET.
#[utoipa::path(get, path = "/api/rmbg-images/remove-bg-ai", tag = "remove background",
    params(ImageQuery, RunHeaders), responses(RunAnswers), security(("token" = []), ("key" = [])))]
pub async fn get_remove_background(
    app: State<App>,
    user: SignedIn,
    query: Query<ImageQuery>,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    run_remove_background(app, user, query, preferences).await
}

/// Removes the background with the small model, free, once per image.
#[utoipa::path(post, path = "/api/rmbg-images/remove-bg-free", tag = "remove background",
    params(ImageQuery, RunHeaders), responses(RunAnswers), security(("token" = []), ("key" = [])))]
pub async fn run_free_remove_background(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Query(query): Query<ImageQuery>,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    run::run(&app, user.id, (Tool::RemoveBackground, Tier::Free), &query, preferences).await
}

/// Same as POST, for clients that only send GET.
#[utoipa::path(get, path = "/api/rmbg-images/remove-bg-free", tag = "remove background",
    params(ImageQuery, RunHeaders), responses(RunAnswers), security(("token" = []), ("key" = [])))]
pub async fn get_free_remove_background(
    app: State<App>,
    user: SignedIn,
    query: Query<ImageQuery>,
    preferences: RequestPreferences,
) -> Result<Response, ApiError> {
    run_free_remove_background(app, user, query, preferences).await
}

/// Deletes a cutout.
#[utoipa::path(delete, path = "/api/rmbg-images/{imageId}", tag = "remove background",
    params(("imageId" = String, Path, description = "The id of the result")),
    responses((status = 204), (status = 401, body = Problem), (status = 404, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn delete_cutout(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(result): Path<String>,
) -> Result<StatusCode, ApiError> {
    run::delete(&app, user.id, &result, ToolName::RemoveBackground).await
}
