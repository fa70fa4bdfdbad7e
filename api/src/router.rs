//! Every address of the API, in one table, and what surrounds all of them.

use std::path::Path;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};
use tower_http::request_id::{
    MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;
use tower_http::trace::TraceLayer;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::SwaggerUi;

use crate::routes::{
    config, files, free, health, images, jobs, magic_images, problem, remove_background, ui,
    upscale, user,
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
    modifiers(&BearerToken)
)]
struct Base;

struct BearerToken;

impl utoipa::Modify for BearerToken {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

fn table() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Base::openapi())
        .routes(routes!(config::get_config))
        .routes(routes!(user::get_user))
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
        .routes(routes!(free::remove_background))
        .routes(routes!(free::upscale))
        .routes(routes!(free::report_oversize))
        .routes(routes!(jobs::list_jobs))
        .routes(routes!(jobs::get_job, jobs::cancel_job))
        .routes(routes!(jobs::job_events))
        .routes(routes!(files::get_file))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
}

/// The `OpenAPI` document.
pub fn openapi() -> Document {
    table().into_openapi()
}

/// The whole application.
pub fn router(app: App, ui_dir: &Path) -> Router {
    let (api, document) = table().split_for_parts();
    // Room for the multipart's own lines around the file.
    let body_limit = app.limits.max_upload_bytes + 64 * 1024;
    let page = Router::new()
        .fallback_service(ui::page(ui_dir))
        .layer(middleware::from_fn(ui::not_for_programs));
    let policy = content_security_policy(&app);
    let request_id = HeaderName::from_static("x-request-id");
    let worth_compressing = DefaultPredicate::new()
        .and(NotForContentType::const_new("image/"))
        .and(NotForContentType::const_new("text/event-stream"));
    api.method_not_allowed_fallback(problem::wrong_method)
        .merge(SwaggerUi::new("/api/docs").url("/api/openapi.json", document))
        .fallback_service(page)
        .with_state(app)
        .layer(DefaultBodyLimit::max(body_limit))
        .layer(CompressionLayer::new().compress_when(worth_compressing))
        .layer(middleware::from_fn(move |request, next| {
            security_headers(policy.clone(), request, next)
        }))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| problem::panicked()))
        .layer(SetSensitiveRequestHeadersLayer::new([header::AUTHORIZATION]))
        .layer(PropagateRequestIdLayer::new(request_id.clone()))
        // The query is left out: addresses of pictures carry their signature there.
        .layer(TraceLayer::new_for_http().make_span_with(|request: &Request| {
            tracing::info_span!("request", http.method = %request.method(), http.path = request.uri().path())
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

/// The page runs its own scripts only and speaks to us and to whoever signs people in.
fn content_security_policy(app: &App) -> HeaderValue {
    let origin = |address: &str| {
        url::Url::parse(address).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
    };
    let issuer = origin(&app.identity.oidc_issuer);
    let more = app.identity.oidc_page_origins.join(" ");
    let pictures = app.storage.public_endpoint().map(origin).unwrap_or_default();
    let policy = format!(
        "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
         img-src 'self' blob: data: {pictures}; connect-src 'self' blob: {issuer} {pictures} {more}; \
         frame-src {issuer}; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'self'"))
}

async fn security_headers(policy: HeaderValue, request: Request, next: Next) -> Response {
    let docs = request.uri().path().starts_with("/api/docs");
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("strict-origin-when-cross-origin"),
    );
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // The documentation's own page starts itself with an inline script.
    if !docs {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
