//! `/api/user/get`: the caller.

use axum::Json;

use super::caller::SignedIn;
use super::problem::Problem;
use super::views::UserView;

/// The caller. The first call with a new user's token creates the account, with 20 free credits.
#[utoipa::path(get, path = "/api/user/get", tag = "user",
    responses((status = 200, body = UserView), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn get_user(SignedIn(user): SignedIn) -> Json<UserView> {
    Json(UserView {
        id: user.id.uuid(),
        email: user.email,
        credits: user.credits,
        reserved: user.reserved,
    })
}
