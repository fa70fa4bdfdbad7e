//! The OpenAPI document, apart from the routes: what describes all of them.

use utoipa::OpenApi;
use utoipa::openapi::schema::{KnownFormat, Object, SchemaFormat, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    Content, Header, HeaderBuilder, OpenApi as Document, Ref, RefOr, Response as Answer,
    ResponseBuilder,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Retouch",
        description = "Edit images with AI on your own GPUs. Errors are `application/problem+json`.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
        contact()
    ),
    // utoipa does not collect recursive schemas.
    components(schemas(retouch_credentials::Ingredient)),
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

/// Returns the document without routes.
pub fn base() -> Document {
    Base::openapi()
}

/// Adds the response 503 to every route, because any may give it, and the header `Retry-After` to every 429 and 503.
/// Sets the media type of every [`crate::http::problem::Problem`] to `application/problem+json`, and describes pictures
/// and archives as binary, which utoipa takes for lists of numbers.
pub fn completed(mut document: Document) -> Document {
    for (address, path) in &mut document.paths.paths {
        let operations =
            [&mut path.get, &mut path.post, &mut path.put, &mut path.patch, &mut path.delete];
        let operations = operations.into_iter().flatten();
        let answers = operations.flat_map(|operation| {
            let answers = &mut operation.responses.responses;
            answers.entry("503".to_owned()).or_insert_with(|| RefOr::T(unavailable(address)));
            answers.iter_mut()
        });
        for (status, answer) in answers {
            let RefOr::T(answer) = answer else { continue };
            if status == "429" || status == "503" {
                answer.headers.insert("Retry-After".to_owned(), RefOr::T(retry_after()));
            }
            let contents = std::mem::take(&mut answer.content).into_iter();
            let typed = contents.map(|(kind, content)| {
                if is_problem(&content) {
                    ("application/problem+json".into(), content)
                } else if kind.starts_with("image/") || kind == "application/zip" {
                    (kind, RefOr::T(Content::new(Some(binary()))))
                } else {
                    (kind, content)
                }
            });
            answer.content = typed.collect();
        }
    }
    document
}

/// Describes the answer while the server is overloaded or a service that it needs is away.
fn unavailable(path: &str) -> Answer {
    let schema = if path.starts_with("/v1.0/") { "RefusalBody" } else { "Problem" };
    let content = Content::new(Some(Ref::from_schema_name(schema)));
    ResponseBuilder::new()
        .description("The server is busy or unavailable")
        .content("application/json", content)
        .build()
}

fn retry_after() -> Header {
    HeaderBuilder::new()
        .schema(Some(Object::with_type(Type::Integer)))
        .description(Some("Seconds until another try makes sense, if there is such a time"))
        .build()
}

fn binary() -> Object {
    Object::builder()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
        .build()
}

fn is_problem(content: &RefOr<Content>) -> bool {
    let RefOr::T(Content { schema: Some(RefOr::Ref(schema)), .. }) = content else { return false };
    schema.ref_location == "#/components/schemas/Problem"
}
