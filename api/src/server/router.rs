//! The table of all routes, and the middleware around them.

use std::path::Path;

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
use tracing::Span;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::SwaggerUi;

use super::openapi::{base, completed};
use super::{body_limit, deadline, fallback, in_flight, page, security_headers};
use crate::error::ApiError;
use crate::http::body::MAX_PLAIN_BODY;
use crate::http::request::header_text;
use crate::metrics::measure_request;
use crate::routes::tools::{free, magic_fix, remove_background, sample, select, upscale};
use crate::routes::{
    checkouts, config, events, files, health, images, jobs, keys, mcp, payments, preview, removebg,
    results, user, verify, webhooks,
};
use crate::state::App;

fn table() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(base())
        .routes(routes!(config::get_config))
        .routes(routes!(user::get_user))
        .routes(routes!(user::get_storage))
        .routes(routes!(user::start_user, user::delete_user))
        .routes(routes!(user::export::export_user))
        .routes(routes!(images::list::list_images))
        .routes(routes!(images::upload))
        .routes(routes!(images::get_image, images::delete_image))
        .routes(routes!(images::from_result::make_image_from_result))
        .routes(routes!(images::many::delete_images))
        .routes(routes!(images::many::download_images))
        .routes(routes!(select::select_in_image))
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
        .routes(routes!(sample::sample_upscale))
        .routes(routes!(upscale::run_free_upscale, upscale::get_free_upscale))
        .routes(routes!(upscale::list_upscaled, upscale::delete_upscaled))
        .routes(routes!(magic_fix::run_magic_fix))
        .routes(routes!(magic_fix::prompt_meaning))
        .routes(routes!(magic_fix::list_magic_images, magic_fix::delete_magic_image))
        .routes(routes!(results::get_result_file))
        .routes(routes!(results::render))
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
        .routes(routes!(events::job::job_events))
        .routes(routes!(events::account::account_events))
        .routes(routes!(keys::list_keys, keys::post_key))
        .routes(routes!(keys::delete_key))
        .routes(routes!(webhooks::list_webhooks, webhooks::post_webhook))
        .routes(routes!(webhooks::patch_webhook, webhooks::delete_webhook))
        .routes(routes!(webhooks::rotate_webhook_secret))
        .routes(routes!(webhooks::test_webhook))
        .routes(routes!(webhooks::list_deliveries))
        .routes(routes!(webhooks::resend_delivery))
        .routes(routes!(removebg::remove))
        .routes(routes!(removebg::account))
        .route("/v1.0/removebg", axum::routing::options(removebg::preflight))
        .route("/v1.0/account", axum::routing::options(removebg::preflight))
        // MCP is not in the OpenAPI document: its own protocol describes its tools.
        .route(mcp::PATH, axum::routing::post(mcp::answer))
        .route(mcp::METADATA_PATH, axum::routing::get(mcp::resource_metadata))
        .route(mcp::METADATA_PATH_OF_MCP, axum::routing::get(mcp::resource_metadata))
        .routes(routes!(files::get_file))
        .routes(routes!(results::render_signed))
        .routes(routes!(verify::verify))
        .routes(routes!(preview::preview))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
}

/// Returns the OpenAPI document.
pub fn openapi() -> Document {
    completed(table().into_openapi())
}

/// Rejects HEAD on paths whose GET acts: axum would otherwise run the GET handler and spend credits.
async fn reject_head(route: MatchedPath, request: Request, next: Next) -> Response {
    if request.method() == Method::HEAD && deadline::ACTING_GETS.contains(&route.as_str()) {
        let mut response = fallback::method_not_allowed(request.uri().clone()).await;
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,POST"));
        return response;
    }
    next.run(request).await
}

/// Rejects anonymous POST requests from pages of other sites: another site could otherwise use up the free runs and
/// uploads of its visitors' IP addresses. Callers with a key or a token have limits of their own.
async fn reject_cross_site(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let has = |name: HeaderName| headers.contains_key(name);
    let is_cross_site = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
    let is_visitor = !has(header::AUTHORIZATION) && !has(HeaderName::from_static("x-api-key"));
    if request.method() == Method::POST && is_cross_site && is_visitor {
        return fallback::respond(request.uri().path(), ApiError::CrossSite);
    }
    next.run(request).await
}

/// Returns the whole application: the API, its documentation and the page.
pub fn router(app: App, ui_dir: &Path) -> Router {
    let (api, document) = table().split_for_parts();
    let document = completed(document);
    let page = Router::new()
        .fallback_service(page::files(ui_dir))
        .layer(middleware::from_fn(page::add_headers));
    let scripts = page::inline_script_hashes(ui_dir).join(" ");
    let policy = security_headers::Policy {
        content: security_headers::content_security_policy(&app, &scripts),
        is_https: app.public_url.scheme() == "https",
    };
    let request_id = HeaderName::from_static("x-request-id");
    let compressible = DefaultPredicate::new()
        .and(NotForContentType::const_new("image/"))
        .and(NotForContentType::const_new("application/zip"))
        .and(NotForContentType::const_new("text/event-stream"));
    api.route_layer(middleware::from_fn(deadline::enforce))
        .route_layer(middleware::from_fn(reject_head))
        .route_layer(middleware::from_fn(reject_cross_site))
        .route_layer(middleware::from_fn_with_state(app.clone(), body_limit::limit))
        .route_layer(middleware::from_fn(measure_request))
        .method_not_allowed_fallback(fallback::method_not_allowed)
        .merge(SwaggerUi::new("/api/docs").url("/api/openapi.json", document))
        .fallback_service(page)
        .with_state(app.clone())
        .layer(middleware::from_fn_with_state(app, in_flight::limit))
        .layer(DefaultBodyLimit::max(MAX_PLAIN_BODY))
        .layer(CompressionLayer::new().compress_when(compressible))
        .layer(middleware::from_fn(move |request, next| {
            security_headers::add(policy.clone(), request, next)
        }))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| fallback::panicked()))
        .layer(SetSensitiveRequestHeadersLayer::new([
            header::AUTHORIZATION,
            HeaderName::from_static("x-api-key"),
        ]))
        .layer(PropagateRequestIdLayer::new(request_id.clone()))
        .layer(TraceLayer::new_for_http().make_span_with(span_of))
        .layer(SetRequestIdLayer::new(request_id, NewRequestId))
}

/// Maximum length of a request's id in the log, in bytes.
const MAX_REQUEST_ID: usize = 64;

/// Returns the span of a request, without the query, which holds the signature of image URLs.
fn span_of(request: &Request) -> Span {
    let text = |name| header_text(request.headers(), HeaderName::from_static(name));
    // A client may send its own id, of any length.
    let id = text("x-request-id").filter(|id| id.len() <= MAX_REQUEST_ID);
    let (method, path) = (request.method(), request.uri().path());
    let span = tracing::info_span!("request", http.method = %method, http.path = path, http.request_id = id);
    telemetry::continue_trace(&span, text("traceparent"));
    span
}

#[derive(Clone)]
struct NewRequestId;

impl MakeRequestId for NewRequestId {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        HeaderValue::from_str(&uuid::Uuid::now_v7().to_string()).ok().map(RequestId::new)
    }
}
