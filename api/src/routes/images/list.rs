//! `GET /api/images`: the list of a user's images, whole or in pages.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Datelike};
use futures::{StreamExt, stream};
use retouch_core::images::{self, Cursor, Image, Listing, Place, Sort};
use retouch_core::{UserId, db};
use serde::Deserialize;

use crate::error::ApiError;
use crate::http::caller::SignedIn;
use crate::http::json;
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::routes::views::{ImageListView, ImageView};
use crate::state::App;

/// Maximum number of images per page.
const MAX_LIMIT: i64 = 500;
/// Maximum length of a search text, in characters.
const MAX_SEARCH_CHARS: usize = 100;
/// How many images are read and sent at a time if the client wants all.
const CHUNK: i64 = 200;

/// Selects images, and a page of the list.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// How many images to return at most. Without it, the answer has all of them.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<i64>,
    /// Where the page starts: `next` of the previous page, in a list of the same order.
    before: Option<String>,
    /// A part of the name, in any case.
    #[param(min_length = 1, max_length = 100)]
    search: Option<String>,
    /// The order; the newest first by default.
    #[param(inline)]
    sort: Option<Sort>,
}

/// The caller's images: all of them, or a page.
#[utoipa::path(get, path = "/api/images", tag = "images", params(ListQuery),
    responses((status = 200, body = ImageListView), (status = 400, body = Problem), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn list_images(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Query(query): Query<ListQuery>,
) -> Result<Response, ApiError> {
    let limit = query.limit.unwrap_or(CHUNK);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::BadRequest(format!("limit must be between 1 and {MAX_LIMIT}.")));
    }
    let listing = Listing {
        search: query.search.map(checked_search).transpose()?,
        sort: query.sort.unwrap_or_default(),
    };
    let after = query.before.as_deref().map(|text| place_from(text, listing.sort)).transpose()?;
    // One more than the page holds says whether another page follows. All this is read before the answer begins, so
    // that a failure gets a status.
    let mut images = images::page(&app.pool, user.id, &listing, after.as_ref(), limit + 1).await?;
    let has_more = images.len() as i64 > limit;
    images.truncate(limit as usize);
    let next = images.last().map(|last| listing.sort.place_after(last)).filter(|_| has_more);
    let is_paged = query.limit.is_some();
    if let (Some(next), false) = (&next, is_paged) {
        return Ok(all(app, user.id, listing, &images, next.clone())?.into_response());
    }
    let total = if is_paged && after.is_none() {
        Some(images::count(&app.pool, user.id, &listing).await?)
    } else {
        None
    };
    let images = images.iter().map(|image| ImageView::new(image, &app.signer)).collect();
    Ok(Json(ImageListView { images, next: next.as_ref().map(text_of), total }).into_response())
}

fn checked_search(text: String) -> Result<String, ApiError> {
    // Postgres takes no NUL, and no name has one.
    if text.is_empty() || text.chars().count() > MAX_SEARCH_CHARS || text.contains('\0') {
        let detail = format!("search must have 1 to {MAX_SEARCH_CHARS} characters.");
        return Err(ApiError::BadRequest(detail));
    }
    Ok(text)
}

/// Returns a place as an opaque text: the sort key, a dash, and an id.
fn text_of(place: &Place) -> String {
    match place {
        Place::Time(Cursor { created_at, id }) => format!("{}-{id}", created_at.timestamp_micros()),
        Place::Name(name, id) => {
            // Names may have any character. The first letter tells an image without a name.
            let name = name.as_ref().map(|name| URL_SAFE_NO_PAD.encode(name));
            format!("{}-{id}", name.map_or_else(String::new, |name| format!("n{name}")))
        }
        Place::Size(bytes, id) => format!("{bytes}-{id}"),
    }
}

fn place_from(text: &str, sort: Sort) -> Result<Place, ApiError> {
    let parse = |text: &str| {
        // Ids have a fixed length, and dashes of their own.
        let (key, id) = text.split_at_checked(text.len().checked_sub(36)?)?;
        let (key, id) = (key.strip_suffix('-')?, id.parse().ok()?);
        Some(match sort {
            Sort::Newest | Sort::Oldest => {
                let created_at = DateTime::from_timestamp_micros(key.parse().ok()?)?;
                // Postgres has fewer years.
                if !(1..=9999).contains(&created_at.year()) {
                    return None;
                }
                Place::Time(Cursor { created_at, id })
            }
            Sort::Largest => Place::Size(key.parse().ok()?, id),
            Sort::Name if key.is_empty() => Place::Name(None, id),
            Sort::Name => {
                let name = URL_SAFE_NO_PAD.decode(key.strip_prefix('n')?).ok()?;
                let name = String::from_utf8(name).ok().filter(|name| !name.contains('\0'))?;
                Place::Name(Some(name), id)
            }
        })
    };
    parse(text).ok_or_else(|| ApiError::BadRequest("before is not a `next` of this list.".into()))
}

/// Returns a list that begins with `first` and is read while it is sent, so that it needs little memory and its
/// beginning does not wait for its end. An error aborts it.
fn all(
    app: App,
    user: UserId,
    listing: Listing,
    first: &[Image],
    next: Place,
) -> Result<impl IntoResponse, ApiError> {
    let head = format!("{{\"images\":[{}", items(first, &app)?);
    let more = stream::unfold(Some(next), move |next| {
        let (app, listing) = (app.clone(), listing.clone());
        async move {
            Some(match chunk(&app, user, &listing, &next?).await {
                Ok((chunk, next)) => (Ok(chunk), next),
                Err(error) => {
                    tracing::warn!("A list of images failed: {error}");
                    (Err(error), None)
                }
            })
        }
    });
    let chunks = stream::once(async { Ok(head) }).chain(more);
    Ok(([(header::CONTENT_TYPE, "application/json")], json::body_of(chunks)))
}

/// Returns the next part of a list, and where the one after it begins; `None` after the end.
async fn chunk(
    app: &App,
    user: UserId,
    listing: &Listing,
    next: &Place,
) -> Result<(String, Option<Place>), ApiError> {
    let images = db::within(images::page(&app.pool, user, listing, Some(next), CHUNK)).await?;
    let Some(last) = images.last() else { return Ok(("]}".to_owned(), None)) };
    Ok((format!(",{}", items(&images, app)?), Some(listing.sort.place_after(last))))
}

fn items(images: &[Image], app: &App) -> Result<String, ApiError> {
    json::items(images.iter().map(|image| ImageView::new(image, &app.signer)))
}
