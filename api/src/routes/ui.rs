//! The built page: one static build, served beside the API from the same origin.

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

use super::problem;

/// Serves the files of the page; every other address is the page itself, which knows its own routes.
pub fn page(dir: &Path) -> ServeDir<ServeFile> {
    ServeDir::new(dir)
        .append_index_html_on_directories(true)
        // Made with the page; compressing hard takes a second a file, once.
        .precompressed_br()
        .precompressed_gzip()
        .fallback(ServeFile::new(dir.join("index.html")))
}

/// What `script-src` needs for the scripts that index.html carries within itself: `'sha256-…'` for each, as CSP level 3
/// defines it (§8.2), so that no other inline script ever runs. Read once: a page that is built anew while the API runs
/// is served without them until its next start. One that cannot be read is not served either, and has none.
pub fn inline_script_hashes(dir: &Path) -> Vec<String> {
    let page = fs::read_to_string(dir.join("index.html")).unwrap_or_default();
    // Our own build writes the tag without attributes, and no script of ours contains its end.
    let scripts = page.split("<script>").skip(1).filter_map(|rest| rest.split_once("</script>"));
    let hashes = scripts.map(|(script, _)| STANDARD.encode(Sha256::digest(script)));
    hashes.map(|hash| format!("'sha256-{hash}'")).collect()
}

/// Keeps addresses that only programs use from being answered with the page.
pub async fn not_for_programs(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_of = |root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if is_of("/api") || is_of("/v1.0") {
        return problem::no_such_path(path);
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = problem::wrong_method(request.uri().clone()).await;
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,HEAD"));
        return response;
    }
    // Files under /assets carry their content's hash in their name; the page itself must stay fresh.
    let caching = if is_of("/assets") { "public, max-age=31536000, immutable" } else { "no-cache" };
    // No route of the page has a dot in its last part: /favicon.ico and /.env are files, or nothing.
    let is_file =
        is_of("/assets") || path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let asked = path.to_owned();
    let mut response = next.run(request).await;
    let is_page = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if is_file && is_page && asked != "/index.html" {
        return problem::no_such_path(&asked);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}
