//! Every address of the API, in one table, and what surrounds all of them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use retouch_core::telemetry;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};
use tower_http::request_id::{
    MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;
use tower_http::trace::TraceLayer;
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, RefOr};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::SwaggerUi;

use crate::measure::measure_request;
use crate::routes::{
    account, body, checkouts, config, files, free, health, images, jobs, keys, magic_images,
    payments, problem, remove_background, removebg, ui, upscale, user,
};
use crate::state::App;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Retouch",
        description = "Edit images with AI on your own GPUs. Errors are `application/problem+json`.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
        contact()
    ),
    modifiers(&Credentials)
)]
struct Base;

struct Credentials;

impl utoipa::Modify for Credentials {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
        let key = ApiKey::Header(ApiKeyValue::new("X-Api-Key"));
        components.add_security_scheme("key", SecurityScheme::ApiKey(key));
    }
}

fn table() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Base::openapi())
        .routes(routes!(config::get_config))
        .routes(routes!(user::get_user))
        .routes(routes!(account::delete_user))
        .routes(routes!(account::export_user))
        .routes(routes!(images::list_images))
        .routes(routes!(images::upload))
        .routes(routes!(images::get_image, images::delete_image))
        .routes(routes!(
            remove_background::run_remove_background,
            remove_background::get_remove_background
        ))
        .routes(routes!(
            remove_background::run_free_remove_background,
            remove_background::get_free_remove_background
        ))
        .routes(routes!(remove_background::list_cutouts, remove_background::delete_cutout))
        .routes(routes!(upscale::run_upscale_x2, upscale::get_upscale_x2))
        .routes(routes!(upscale::run_upscale_x4, upscale::get_upscale_x4))
        .routes(routes!(upscale::run_free_upscale, upscale::get_free_upscale))
        .routes(routes!(upscale::list_upscaled, upscale::delete_upscaled))
        .routes(routes!(magic_images::run_magic_fix))
        .routes(routes!(magic_images::list_magic_images, magic_images::delete_magic_image))
        .routes(routes!(payments::buy_pack_1, payments::get_pack_1))
        .routes(routes!(payments::buy_pack_2, payments::get_pack_2))
        .routes(routes!(payments::buy_pack_3, payments::get_pack_3))
        .routes(routes!(payments::session_status))
        .routes(routes!(payments::webhook))
        .routes(routes!(checkouts::list_checkouts))
        .routes(routes!(checkouts::get_checkout))
        .routes(routes!(free::remove_background))
        .routes(routes!(free::upscale))
        .routes(routes!(free::report_oversize))
        .routes(routes!(jobs::list_jobs))
        .routes(routes!(jobs::get_job, jobs::cancel_job))
        .routes(routes!(jobs::job_events))
        .routes(routes!(keys::list_keys, keys::post_key))
        .routes(routes!(keys::delete_key))
        .routes(routes!(removebg::remove))
        .routes(routes!(removebg::account))
        .route("/v1.0/removebg", axum::routing::options(removebg::preflight))
        .route("/v1.0/account", axum::routing::options(removebg::preflight))
        .routes(routes!(files::get_file))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
}

/// The `OpenAPI` document.
pub fn openapi() -> Document {
    with_problems(table().into_openapi())
}

/// The document, in which every [`problem::Problem`] is of the type that it is sent as.
fn with_problems(mut document: Document) -> Document {
    for path in document.paths.paths.values_mut() {
        let operations =
            [&mut path.get, &mut path.post, &mut path.put, &mut path.patch, &mut path.delete];
        let operations = operations.into_iter().flatten();
        for answer in operations.flat_map(|operation| operation.responses.responses.values_mut()) {
            let RefOr::T(answer) = answer else { continue };
            let contents = std::mem::take(&mut answer.content).into_iter();
            let typed = contents.map(|(kind, content)| {
                let kind =
                    if is_problem(&content) { "application/problem+json".into() } else { kind };
                (kind, content)
            });
            answer.content = typed.collect();
        }
    }
    document
}

fn is_problem(content: &RefOr<Content>) -> bool {
    let RefOr::T(Content { schema: Some(RefOr::Ref(schema)), .. }) = content else { return false };
    schema.ref_location == "#/components/schemas/Problem"
}

/// The addresses that take GET and POST alike: nearly all of them run a tool, or open a page to pay on.
fn where_get_does_what_post_does(document: &Document) -> HashSet<String> {
    let paths = document.paths.paths.iter();
    let both = paths.filter(|(_, path)| path.get.is_some() && path.post.is_some());
    both.map(|(address, _)| address.clone()).collect()
}

/// Whoever asks for the head of an answer wants nothing done, and least of all paid for.
async fn nothing_runs_for_head(
    runs: Arc<HashSet<String>>,
    route: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    if request.method() == Method::HEAD && runs.contains(route.as_str()) {
        return problem::wrong_method(request.uri().clone()).await;
    }
    next.run(request).await
}

/// The whole application.
pub fn router(app: App, ui_dir: &Path) -> Router {
    let (api, document) = table().split_for_parts();
    let document = with_problems(document);
    let runs = Arc::new(where_get_does_what_post_does(&document));
    // Room for the multipart's own lines around the file.
    let body_limit = app.limits.max_upload_bytes + 64 * 1024;
    let page = Router::new()
        .fallback_service(ui::page(ui_dir))
        .layer(middleware::from_fn(ui::not_for_programs));
    let policy = content_security_policy(&app, &ui::inline_script_hashes(ui_dir).join(" "));
    let request_id = HeaderName::from_static("x-request-id");
    let worth_compressing = DefaultPredicate::new()
        .and(NotForContentType::const_new("image/"))
        .and(NotForContentType::const_new("text/event-stream"));
    let no_heads = middleware::from_fn(move |route, request, next| {
        nothing_runs_for_head(runs.clone(), route, request, next)
    });
    api.route_layer(no_heads)
        .route_layer(middleware::from_fn_with_state(app.clone(), body::count))
        .route_layer(middleware::from_fn(measure_request))
        .method_not_allowed_fallback(problem::wrong_method)
        .merge(SwaggerUi::new("/api/docs").url("/api/openapi.json", document))
        .fallback_service(page)
        .with_state(app)
        .layer(DefaultBodyLimit::max(body_limit))
        .layer(CompressionLayer::new().compress_when(worth_compressing))
        .layer(middleware::from_fn(move |request, next| {
            security_headers(policy.clone(), request, next)
        }))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| problem::panicked()))
        .layer(SetSensitiveRequestHeadersLayer::new([
            header::AUTHORIZATION,
            HeaderName::from_static("x-api-key"),
        ]))
        .layer(PropagateRequestIdLayer::new(request_id.clone()))
        // The query is left out: addresses of pictures carry their signature there.
        .layer(TraceLayer::new_for_http().make_span_with(|request: &Request| {
            let span = tracing::info_span!("request", http.method = %request.method(), http.path = request.uri().path());
            let sent = request.headers().get("traceparent").and_then(|sent| sent.to_str().ok());
            telemetry::continue_trace(&span, sent);
            span
        }))
        .layer(SetRequestIdLayer::new(request_id, NewRequestId))
}

#[derive(Clone)]
struct NewRequestId;

impl MakeRequestId for NewRequestId {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        HeaderValue::from_str(&uuid::Uuid::now_v7().to_string()).ok().map(RequestId::new)
    }
}

/// What an advertising tag of Google loads and calls.
const AD_SCRIPTS: &str = "https://www.googletagmanager.com";
const AD_CALLS: &str = "https://www.googletagmanager.com https://www.google.com https://www.googleadservices.com \
                        https://googleads.g.doubleclick.net";

/// The page runs its own scripts only and speaks to us and to whoever signs people in; and to those that the
/// operator has added to it.
fn content_security_policy(app: &App, inline_scripts: &str) -> HeaderValue {
    let origin = |address: &str| {
        url::Url::parse(address).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
    };
    let issuer = origin(&app.identity.oidc_issuer);
    let more = app.identity.oidc_page_origins.join(" ");
    let pictures = app.storage.public_endpoint().map(origin).unwrap_or_default();
    let rating = app.site.rating_url.as_ref().map(|url| origin(url.as_str())).unwrap_or_default();
    let (scripts, calls) =
        if app.site.ad_tag_id.is_some() { (AD_SCRIPTS, AD_CALLS) } else { ("", "") };
    let policy = format!(
        "default-src 'self'; script-src 'self' {inline_scripts} {scripts}; style-src 'self' 'unsafe-inline'; \
         img-src 'self' blob: data: {pictures} {calls}; \
         connect-src 'self' blob: {issuer} {pictures} {more} {calls}; \
         frame-src {issuer} {rating}; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'self'"))
}

/// The documentation's own page starts itself with an inline script, and speaks to nobody but us.
const DOCS_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
);

async fn security_headers(policy: HeaderValue, request: Request, next: Next) -> Response {
    let docs = request.uri().path().starts_with("/api/docs");
    let private = request.uri().path().starts_with("/api/") && !docs;
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("strict-origin-when-cross-origin"),
    );
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::CONTENT_SECURITY_POLICY, if docs { DOCS_POLICY } else { policy });
    // What a person or a key is told is nobody else's, and another answer a moment later.
    if private && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    }
    response
}
