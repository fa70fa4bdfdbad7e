//! Calls every documented route without a token, with another user's token, with ids of every kind, and with malformed
//! bodies. Covers new routes automatically; a new kind of id makes a test fail until it is added here.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use retouch_api::server::router;
use retouch_core::credits::PACKS;
use retouch_core::{Id, orders};
use retouch_standins::testing::sign_in;
use serde_json::Value;
use sqlx::PgPool;

use crate::app::{Answer, TestApp, png};

/// A documented route.
struct Route {
    method: Method,
    path: String,
    /// The names of the ids in the path and the query.
    ids: Vec<String>,
    /// True if an id only filters a list.
    is_filter: bool,
    /// The security scheme.
    guard: Option<String>,
    has_body: bool,
}

impl Route {
    /// Returns the path with `id` for every parameter.
    fn with(&self, id: &str) -> String {
        let mut address = self.path.clone();
        for name in &self.ids {
            let place = format!("{{{name}}}");
            if address.contains(&place) {
                address = address.replace(&place, id);
            } else {
                address = format!("{address}?{name}={id}");
            }
        }
        address
    }
}

fn routes() -> Vec<Route> {
    let document = serde_json::to_value(router::openapi()).unwrap();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            // The other parameters, such as those of pages, name nothing of anybody's.
            let is_id = |parameter: &&Value| {
                let is_named_so = parameter["name"].as_str().unwrap().ends_with("Id");
                parameter["in"] == "path" || parameter["in"] == "query" && is_named_so
            };
            let ids: Vec<_> = parameters.iter().filter(is_id).collect();
            let is_filter = ids.iter().any(|parameter| parameter["required"] != true);
            let ids = ids.iter().map(|parameter| parameter["name"].as_str().unwrap().to_owned());
            let guard = operation["security"][0].as_object();
            routes.push(Route {
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                ids: ids.collect(),
                is_filter,
                guard: guard.and_then(|guard| guard.keys().next().cloned()),
                has_body: operation.get("requestBody").is_some(),
            });
        }
    }
    assert!(routes.len() > 40, "the document was not parsed correctly");
    routes
}

/// Ids of everything that Ada owns, and Bob's token, who must not see any of it.
struct Belongings {
    app: Arc<TestApp>,
    ids: Vec<(&'static str, String)>,
    bob: String,
}

async fn belongings(pool: PgPool) -> Belongings {
    // These tests send more requests per minute than the default limits allow.
    let limits = ["--user-runs-per-minute=100000", "--user-uploads-per-minute=100000"];
    let app = Arc::new(TestApp::start_with(pool, &limits).await);
    let ada = app.token("ada");
    let image = app.upload("ada").await;
    let worker = app.work_once();
    let run = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let results = app.get(&run).by(&ada).send().await.json();
    let done = worker.await.unwrap();
    let waiting = format!("/api/upscale/upscale-ai-2?imageId={image}");
    let job = app.get(&waiting).by(&ada).asynchronously().send().await.json();
    let user = sign_in(&app.pool, &app.issuer.url, "ada").await;
    let order = orders::place(&app.pool, user.id, &PACKS[0], None).await.unwrap();
    orders::attach_session(&app.pool, &order, "cs_of_ada", "https://pay.test").await.unwrap();
    let key = app.post("/api/keys").by(&ada).json_body(&serde_json::json!({"name": "mine"}));
    let key = key.send().await.json();
    let webhook = serde_json::json!({"url": "https://1.1.1.1/hook", "events": ["job.done"]});
    let webhook = app.post("/api/webhooks").by(&ada).json_body(&webhook).send().await.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let ids = vec![
        ("image", image),
        ("result", text(&results[0]["imageId"])),
        ("job that is done", done.to_string()),
        ("job that waits", text(&job["id"])),
        ("order", order.id.to_string()),
        ("payment page", "cs_of_ada".to_owned()),
        ("key", text(&key["id"])),
        ("webhook", text(&webhook["id"])),
        ("user", user.id.to_string()),
    ];
    let bob = app.token("bob");
    app.upload("bob").await;
    Belongings { app, ids, bob }
}

async fn send(app: &TestApp, route: &Route, address: &str, token: Option<&str>) -> Answer {
    let mut request = app.request(route.method.clone(), address).asynchronously();
    if let Some(token) = token {
        request = request.by(token);
    }
    if route.path.contains("/fix/") {
        request = request.fix(&png(64, 48), "remove it");
    } else if route.has_body {
        request = request.file(&png(64, 48));
    }
    request.send().await
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn every_guarded_route_requires_a_token(pool: PgPool) {
    let Belongings { app, ids, .. } = belongings(pool).await;
    for route in routes() {
        let Some(guard) = &route.guard else { continue };
        for (what, id) in &ids {
            let answer = send(&app, &route, &route.with(id), None).await;
            let (method, path) = (&route.method, &route.path);
            let status =
                if guard == "key" { StatusCode::FORBIDDEN } else { StatusCode::UNAUTHORIZED };
            assert_eq!(answer.status, status, "{method} {path} with the {what}: {}", answer.text());
            if route.ids.is_empty() {
                break;
            }
        }
    }
    assert_eq!(app.balance("ada").await, (15, 3), "nothing was run, charged or deleted");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn objects_of_other_users_look_like_missing_ones(pool: PgPool) {
    let Belongings { app, ids, bob } = belongings(pool).await;
    let known = [
        "imageId",
        "resultId",
        "jobId",
        "checkoutId",
        "sessionId",
        "keyId",
        "webhookId",
        "deliveryId",
    ];
    for route in routes() {
        let (method, path) = (&route.method, &route.path);
        // The stream of an account never ends; `jobs.rs` has its test.
        let is_endless = path == "/api/events";
        if route.guard.as_deref() != Some("token")
            || (method, path.as_str()) == (&Method::DELETE, "/api/user")
            || is_endless
        {
            continue;
        }
        for name in &route.ids {
            assert!(
                known.contains(&name.as_str()),
                "{method} {path} takes a {name}: add an id of this kind to the test"
            );
        }
        if route.ids.is_empty() {
            let answer = send(&app, &route, path, Some(&bob)).await;
            for (what, id) in &ids {
                assert!(
                    !answer.text().contains(id.as_str()),
                    "{method} {path} shows Bob Ada's {what}"
                );
            }
            continue;
        }
        let missing = Id::<()>::new().to_string();
        let unknown = send(&app, &route, &route.with(&missing), Some(&bob)).await;
        let expected = if route.is_filter { StatusCode::OK } else { StatusCode::NOT_FOUND };
        assert_eq!(unknown.status, expected, "{method} {path}: {}", unknown.text());
        let malformed = ["x", "0", "%27%20or%201=1", "%00", "..%2f..%2fetc", "%F0%9F%92%A9"];
        let malformed = malformed.iter().map(|id| ("malformed id", (*id).to_owned()));
        let all = ids.iter().cloned().chain(malformed.filter(|_| !route.is_filter));
        for (what, id) in all {
            let answer = send(&app, &route, &route.with(&id), Some(&bob)).await;
            assert_eq!(
                (answer.status, answer.text()),
                (unknown.status, unknown.text()),
                "{method} {path} with the {what} {id}"
            );
        }
    }
    assert_eq!(app.balance("ada").await, (15, 3), "nothing was run, charged or deleted");
    let pictures = app.get("/api/images").by(&app.token("ada")).send().await.json();
    assert_eq!(pictures["images"].as_array().unwrap().len(), 1);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn malformed_bodies_are_client_errors(pool: PgPool) {
    let Belongings { app, bob, .. } = belongings(pool).await;
    let image = app.get("/api/images").by(&bob).send().await.json()["images"][0]["id"].clone();
    let image = image.as_str().unwrap();
    let cut_off =
        b"--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n\x89PNG"
            .to_vec();
    let bodies: [(&str, Vec<u8>); 8] = [
        ("", Vec::new()),
        ("application/json", b"{".to_vec()),
        ("application/json", b"[1, 2]".to_vec()),
        ("application/json", b"null".to_vec()),
        ("multipart/form-data", b"no boundary".to_vec()),
        ("multipart/form-data; boundary=x", cut_off),
        ("multipart/form-data; boundary=x", b"--x--\r\n".to_vec()),
        ("text/plain", vec![0xff; 1000]),
    ];
    for route in routes().into_iter().filter(|route| route.has_body) {
        for (kind, body) in &bodies {
            let request = app.request(route.method.clone(), &route.with(image));
            let request = match route.guard.as_deref() {
                Some("key") => request.header("x-api-key", "rt_nobodys"),
                _ => request.by(&bob),
            };
            let request =
                if kind.is_empty() { request } else { request.header("content-type", kind) };
            let answer = request.raw(body.clone()).send().await;
            assert!(
                answer.status.is_client_error(),
                "{} {} with {kind}: {} {}",
                route.method,
                route.path,
                answer.status,
                answer.text()
            );
        }
    }
    assert_eq!(app.balance("bob").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn files_require_a_signed_url(pool: PgPool) {
    let Belongings { app, ids, bob } = belongings(pool).await;
    for kind in ["image", "image-thumbnail", "result", "result-thumbnail", "x"] {
        for (what, id) in &ids {
            for query in ["", "?expires=9999999999&signature=00", "?signature=x"] {
                let address = format!("/api/files/{kind}/{id}{query}");
                let answer = app.get(&address).by(&bob).send().await;
                assert!(
                    [StatusCode::NOT_FOUND, StatusCode::FORBIDDEN, StatusCode::BAD_REQUEST]
                        .contains(&answer.status),
                    "{address} ({what}): {}",
                    answer.status
                );
            }
        }
    }
}
