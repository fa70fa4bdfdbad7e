//! Serves the built page from the API's origin.

use std::fs;
use std::path::Path;

use axum::extract::Request;
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use tower_http::services::{ServeDir, ServeFile};

use super::fallback;

/// Serves the page's files, and `index.html` for every other path: the page does its own routing.
pub fn files(dir: &Path) -> ServeDir<ServeFile> {
    ServeDir::new(dir)
        .append_index_html_on_directories(true)
        // The page's build compresses its files, at levels too slow to use per request.
        .precompressed_br()
        .precompressed_gzip()
        .fallback(ServeFile::new(dir.join("index.html")))
}

/// Returns `'sha256-…'` (CSP Level 3, §8.2) for each inline script of index.html, so that `script-src` allows these
/// and no others. Read once: after a new build of the page, restart the API. Empty if index.html cannot be read: the API
/// serves programs without the page.
pub fn inline_script_hashes(dir: &Path) -> Vec<String> {
    let path = dir.join("index.html");
    let page = fs::read_to_string(&path).unwrap_or_else(|error| {
        tracing::warn!(
            "Cannot read {}: {error}. Without it (RETOUCH_UI_DIR), browsers get no page",
            path.display()
        );
        String::new()
    });
    // Our build writes the tags without attributes, and no inline script contains `</script>`.
    let scripts = page.split("<script>").skip(1).filter_map(|rest| rest.split_once("</script>"));
    let hashes = scripts.map(|(script, _)| STANDARD.encode(Sha256::digest(script)));
    hashes.map(|hash| format!("'sha256-{hash}'")).collect()
}

/// Sets caching headers, and answers 404 instead of the page for paths of the API, missing metadata, and missing files.
pub async fn add_headers(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_below = |root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // MCP clients would take the page for metadata; after a 404 they look elsewhere.
    if is_below("/api") || is_below("/v1.0") || is_below("/.well-known") {
        return fallback::no_such_path(path);
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = fallback::method_not_allowed(request.uri().clone()).await;
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,HEAD"));
        return response;
    }
    // Names of files in /assets contain a content hash, so browsers may keep them; index.html must stay fresh.
    let caching =
        if is_below("/assets") { "public, max-age=31536000, immutable" } else { "no-cache" };
    // The page's routes have no dot in their last segment: /favicon.ico and /.env can only be files.
    let is_file =
        is_below("/assets") || path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let path = path.to_owned();
    let mut response = next.run(request).await;
    let is_page = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if is_file && is_page && path != "/index.html" {
        return fallback::no_such_path(&path);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}
