//! `/api/files`: pictures at signed URLs on this origin, streamed from the object store.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use chrono::{DateTime, Utc};
use retouch_core::images;
use retouch_core::results;
use retouch_core::storage::{Object, StorageError};

use crate::error::ApiError;
use crate::http::object::body_of;
use crate::http::problem::Problem;
use crate::http::request::{Path, Query, header_list, header_text};
use crate::http::signature::Signature;
use crate::signing::{File, LONGEST};
use crate::state::App;

/// Returns an image file. Supports range requests. Redirects to the object store if that is public.
#[utoipa::path(get, path = "/api/files/{kind}/{id}", tag = "files",
    params(("kind" = String, Path), ("id" = String, Path), Signature),
    responses(
        (status = 200, content((Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/webp"))),
        (status = 206), (status = 304), (status = 307), (status = 404, body = Problem),
        (status = 416, body = Problem), (status = 503, body = Problem)))]
pub async fn get_file(
    State(app): State<App>,
    method: Method,
    Path((kind, id)): Path<(String, String)>,
    signature: Result<Query<Signature>, ApiError>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    const GONE: ApiError = ApiError::NotFound("File");
    let file = File::parse(&kind, &id).ok_or(GONE)?;
    let Query(signature) = signature.map_err(|_| GONE)?;
    let expires = signature.verify(&app, file).ok_or(GONE)?;
    let key = object_key(&app, file).await?.ok_or(GONE)?;
    let caching = caching(&app, expires)?;
    // The signature of the object store's URL is for GET.
    if method == Method::GET
        && let Some(url) = app.storage.public_url(&key, expires - LONGEST, expires).await?
    {
        let caching = [(header::CACHE_CONTROL, caching)];
        return Ok((caching, Redirect::temporary(&url)).into_response());
    }
    // Objects never change, so a client that knows one hardly ever needs its bytes again.
    let known: Vec<_> = header_list(&headers, header::IF_NONE_MATCH).collect();
    if !known.is_empty()
        && let (_, Some(etag)) = app.storage.head(&key).await?
        && has_etag(&known, &etag)
    {
        let not_modified = [(header::ETAG, header_value(&etag)?), (header::CACHE_CONTROL, caching)];
        return Ok((StatusCode::NOT_MODIFIED, not_modified).into_response());
    }
    let object = open(&app, &key, &headers).await?;
    let status =
        if object.content_range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let content_type = object.content_type.as_deref().unwrap_or("application/octet-stream");
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .header(header::CONTENT_LENGTH, object.length)
        .header(header::ACCEPT_RANGES, "bytes")
        .header(header::CACHE_CONTROL, caching)
        .header(header::CONTENT_DISPOSITION, "inline");
    if let Some(etag) = &object.etag {
        response = response.header(header::ETAG, etag);
    }
    if let Some(range) = &object.content_range {
        response = response.header(header::CONTENT_RANGE, range);
    }
    response.body(body_of(object)).map_err(|error| ApiError::Internal(error.into()))
}

/// Returns whether the values of `If-None-Match` name `etag`, or any.
fn has_etag(known: &[&str], etag: &str) -> bool {
    known.iter().any(|known| *known == "*" || known.trim_start_matches("W/") == etag)
}

/// Opens the object, or the requested range of it.
async fn open(app: &App, key: &str, headers: &HeaderMap) -> Result<Object, ApiError> {
    let Some(range) = header_text(headers, header::RANGE).and_then(single_range) else {
        return Ok(app.storage.open(key, None).await?);
    };
    let range = match range.strip_prefix("bytes=-").map(str::parse::<i64>) {
        // Object stores disagree about a suffix longer than the file, which is the whole file (RFC 9110, §14.1.2).
        Some(Ok(suffix)) => {
            let (length, _) = app.storage.head(key).await?;
            format!("bytes={}-", (length - suffix).max(0))
        }
        _ => range,
    };
    let part = match app.storage.open(key, Some(&range)).await {
        Ok(part) => part,
        Err(StorageError::Range) => {
            let (length, _) = app.storage.head(key).await?;
            return Err(ApiError::RangeNotSatisfiable { length });
        }
        Err(error) => return Err(error.into()),
    };
    match header_text(headers, header::IF_RANGE) {
        // The client's other parts belong to a different version.
        Some(known) if part.etag.as_deref() != Some(known) => {
            Ok(app.storage.open(key, None).await?)
        }
        _ => Ok(part),
    }
}

/// Parses the byte range of a `Range` header. Returns `None` for several ranges or a malformed header; the response is
/// then the whole file (RFC 9110, §14.2).
fn single_range(header: &str) -> Option<String> {
    let (unit, range) = header.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Object stores count in signed 64-bit numbers and fail beyond them; no file is as long.
        is_number.then(|| text.parse().unwrap_or(i64::MAX))
    };
    let range = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => format!("bytes={first}-{last}"),
        (Some(first), None) if last.is_empty() => format!("bytes={first}-"),
        (None, Some(last)) if first.is_empty() => format!("bytes=-{last}"),
        _ => return None,
    };
    unit.trim().eq_ignore_ascii_case("bytes").then_some(range)
}

async fn object_key(app: &App, file: File) -> Result<Option<String>, ApiError> {
    let image = |id| images::get(&app.pool, id);
    let result = |id| results::get(&app.pool, id);
    Ok(match file {
        File::Image(id) => image(id).await?.map(|image| image.object_key),
        File::ImageThumbnail(id) => image(id).await?.map(|image| image.thumbnail_key),
        File::ImagePreview(id) => image(id).await?.and_then(|image| image.preview_key),
        File::Result(id) => result(id).await?.map(|result| result.object_key),
        File::ResultThumbnail(id) => result(id).await?.map(|result| result.thumbnail_key),
        File::ResultPreview(id) => result(id).await?.and_then(|result| result.preview_key),
    })
}

/// Returns `Cache-Control`: private, and immutable until the URL expires, because objects never change.
fn caching(app: &App, expires: DateTime<Utc>) -> Result<HeaderValue, ApiError> {
    let left = (expires - app.clock.now()).num_seconds().max(0);
    header_value(&format!("private, max-age={left}, immutable"))
}

fn header_value(text: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(text).map_err(|error| ApiError::Internal(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_byte_range_is_parsed() {
        for (header, range) in [
            ("bytes=0-99", "bytes=0-99"),
            ("Bytes = 5-", "bytes=5-"),
            ("bytes=-7", "bytes=-7"),
            ("bytes=3-3", "bytes=3-3"),
            ("bytes=-9223372036854775809", "bytes=-9223372036854775807"),
            ("bytes=5-99999999999999999999", "bytes=5-9223372036854775807"),
            ("bytes=9223372036854775808-", "bytes=9223372036854775807-"),
        ] {
            assert_eq!(single_range(header).as_deref(), Some(range), "{header}");
        }
        for other in [
            "bytes=9-2",
            "lines=1-2",
            "bytes=0-1,4-5",
            "bytes=-",
            "bytes=+1-2",
            "bytes=a-b",
            "bytes",
            "",
            "bytes=1",
        ] {
            assert_eq!(single_range(other), None, "{other}");
        }
    }
}
