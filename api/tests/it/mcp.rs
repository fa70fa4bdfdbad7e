//! `/mcp`: its callers, the price of each call, the answers to mistakes, and calls whose client cancels or hangs up. `scripts/checks/clients.py` has the proof with an official client.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use retouch_catalog::FixMode;
use retouch_core::jobs::Failure;
use retouch_credentials::{PngSeal, SourceType, Verifier};
use retouch_standins::testing::eventually;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::app::{Answer, TestApp, TestRequest, png};
use crate::magic_images::{install, mask};

const HOST: &str = "127.0.0.1:8080";

/// A request as clients send it.
fn post<'a>(app: &'a TestApp, key: &str, message: &Value) -> TestRequest<'a> {
    app.post("/mcp")
        .with_key(key)
        .header("host", HOST)
        .header("accept", "application/json, text/event-stream")
        .json_body(message)
}

fn message(tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
}

/// Returns the JSON-RPC messages of an answer.
fn messages(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|json| serde_json::from_str(json).unwrap()).collect()
}

/// Calls a tool and returns its result.
async fn call(app: &TestApp, key: &str, tool: &str, arguments: Value) -> Value {
    let answer = post(app, key, &message(tool, &arguments)).send().await;
    messages(&answer).pop().unwrap()["result"].clone()
}

/// Calls a tool while a worker runs one job, and returns its result.
async fn run(app: &Arc<TestApp>, key: &str, tool: &str, arguments: Value) -> Value {
    let worker = app.work_once();
    let result = call(app, key, tool, arguments).await;
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(result["structuredContent"]["state"], "done", "{result}");
    worker.await.unwrap();
    result
}

fn result_id(result: &Value) -> String {
    result["structuredContent"]["result"]["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn is_refused(result: &Value, code: &str, sentence: &str) {
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"]["retouch/problem"]["code"], code, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(sentence) && text.ends_with(&format!("(code: {code})")), "{text}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_accounts_may_call_it_and_only_from_allowed_places(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--public-url=https://pictures.example"]).await;
    let (token, key) = (app.token("ada"), app.key("ada").await);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let request = || {
        let request = app.post("/mcp").header("accept", "application/json, text/event-stream");
        request.json_body(&list)
    };
    let at = "https://pictures.example/.well-known/oauth-protected-resource/mcp";
    for refused in [request().send().await, request().with_key("rt_wrong").send().await] {
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        let challenge = format!("Bearer resource_metadata=\"{at}\"");
        assert_eq!(refused.header("www-authenticate"), challenge);
    }
    let gone = app.token("eve");
    app.get("/api/user/get").by(&gone).send().await;
    assert_eq!(app.delete("/api/user").by(&gone).send().await.status, StatusCode::NO_CONTENT);
    let refused = request().by(&gone).send().await;
    assert_eq!((refused.status, refused.header("www-authenticate")), (StatusCode::FORBIDDEN, ""));
    assert_eq!(refused.json()["code"], "account_deleted");
    for path in ["/.well-known/oauth-protected-resource", &at[24..]] {
        let metadata = app.get(path).send().await.json();
        assert_eq!(metadata["resource"], "https://pictures.example/mcp");
        assert_eq!(metadata["authorization_servers"], json!([app.issuer.url]));
    }
    // A token, a key, and a key as a bearer token.
    for host in ["pictures.example", "localhost:8080"] {
        for request in [request().by(&token), request().with_key(&key), request().by(&key)] {
            let tools = messages(&request.header("host", host).send().await).remove(0);
            let tools = tools["result"]["tools"].as_array().unwrap().clone();
            let prices = ["5 credits", "3 credits, factor 4 costs 6", "8 credits", "Free"];
            for (tool, price) in tools.iter().zip(prices) {
                assert!(tool["description"].as_str().unwrap().contains(price), "{tool}");
            }
            assert_eq!(tools.len(), 4);
        }
    }
    let origins = ["https://pictures.example", "https://evil.example", "null"];
    for (host, origin, is_allowed) in [
        ("pictures.example", origins[0], true),
        ("pictures.example", origins[1], false),
        ("pictures.example", origins[2], false),
        ("evil.example", "", false),
    ] {
        let mut request = request().with_key(&key).header("host", host);
        if !origin.is_empty() {
            request = request.header("origin", origin);
        }
        let status = if is_allowed { StatusCode::OK } else { StatusCode::FORBIDDEN };
        assert_eq!(request.send().await.status, status, "{host} {origin}");
    }
    for method in [Method::GET, Method::DELETE] {
        let answer = app.request(method, "/mcp").with_key(&key).send().await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_message_of_very_many_values_is_refused_before_it_is_read(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let key = app.key("ada").await;
    for (values, status) in [(1000, StatusCode::OK), (5000, StatusCode::BAD_REQUEST)] {
        let list = message("account", &json!({ "values": vec![json!({"": 0}); values] }));
        assert_eq!(post(&app, &key, &list).send().await.status, status);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn equal_calls_share_a_run_and_its_price(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (key, image) = (app.key("ada").await, app.upload("ada").await);
    install(&app, &[FixMode::Remove], None).await;
    // By id, by address, and inline; the last one twice in other words.
    let url = app.get(&format!("/api/images/{image}")).by(&app.token("ada")).send().await.json();
    let url = format!("http://{HOST}{}", url["url"].as_str().unwrap());
    let by_id = json!({"image": {"id": image}});
    let first = run(&app, &key, "remove_background", by_id.clone()).await;
    assert_eq!(app.balance("ada").await, (15, 0));
    for again in [by_id, json!({"image": {"url": url}})] {
        let repeat = call(&app, &key, "remove_background", again).await;
        assert_eq!(result_id(&repeat), result_id(&first));
    }
    assert_eq!(app.balance("ada").await, (15, 0));
    let once_more = json!({"image": {"id": image}, "idempotency_key": "again"});
    let second = run(&app, &key, "remove_background", once_more).await;
    assert_ne!(result_id(&second), result_id(&first));
    assert_eq!(app.balance("ada").await, (10, 0));

    // The worker's result is a small PNG, so the answer has it whole.
    assert_eq!(second["content"][1]["mimeType"], "image/png");
    let seen = STANDARD.decode(second["content"][1]["data"].as_str().unwrap()).unwrap();
    assert_eq!(seen, png(64, 48));
    let url = second["structuredContent"]["result"]["url"].as_str().unwrap();
    let path = url.strip_prefix("http://127.0.0.1:8080").unwrap();
    assert_eq!(app.get(path).send().await.body, png(64, 48));

    // A result is a picture for the next call.
    let enlarge = json!({"image": {"id": result_id(&second)}, "factor": 2});
    run(&app, &key, "upscale", enlarge.clone()).await;
    let by_url = json!({"image": {"url": url}, "factor": 2});
    let (repeat, by_url) =
        tokio::join!(call(&app, &key, "upscale", enlarge), call(&app, &key, "upscale", by_url));
    assert_eq!(result_id(&repeat), result_id(&by_url));
    assert_eq!(app.balance("ada").await, (7, 0));
}

/// A PNG of noise, which compresses no better than a photo.
fn noise(width: u32, height: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        100 + (state >> 27) as u8
    };
    let picture =
        image::RgbImage::from_fn(width, height, |_, _| image::Rgb([next(), next(), next()]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_photo_comes_with_a_small_copy_that_is_marked_as_it_is(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (key, image) = (app.key("ada").await, app.upload("ada").await);
    let source = SourceType::composite_with_trained_media();
    // As with a photo, the thumbnail is too large, too.
    let photo = PngSeal::unsigned(&source).mark(&noise(512, 341)).unwrap();
    assert!(photo.len() > 256 << 10, "{}", photo.len());
    let waiting = call(&app, &key, "remove_background", json!({"image": {"id": image}}));
    let worker = async {
        let job = eventually(Duration::from_secs(10), "a job", || app.claim()).await;
        app.finish(job.id, &photo).await;
    };
    let (result, ()) = tokio::join!(waiting, worker);
    let copy = &result["content"][1];
    assert_eq!(copy["mimeType"], "image/webp", "{result}");
    let copy = STANDARD.decode(copy["data"].as_str().unwrap()).unwrap();
    assert!(copy.len() <= 256 << 10, "{}", copy.len());
    let seen = image::load_from_memory(&copy).unwrap();
    assert_eq!((seen.width(), seen.height()), (512, 341));
    assert_eq!(Verifier::new(None, None).unwrap().read(&copy).source, Some(source));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_picture_in_a_message_is_stored_once_and_expires(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let key = app.key("ada").await;
    let text = STANDARD.encode(png(64, 48));
    let spellings = [text.clone(), format!("data:image/png;base64,{text}"), text.replace('=', "")];
    let first = json!({"image": {"base64": spellings[0]}});
    let first = run(&app, &key, "remove_background", first).await;
    for spelling in &spellings[1..] {
        let again = json!({"image": {"base64": spelling}});
        let again = call(&app, &key, "remove_background", again).await;
        assert_eq!(result_id(&again), result_id(&first));
    }
    assert_eq!(app.balance("ada").await, (15, 0));
    let stored = "select count(*) from images where expires_at is not null";
    let stored: i64 = sqlx::query_scalar(stored).fetch_one(&app.pool).await.unwrap();
    assert_eq!(stored, 1);
    let listed = app.get("/api/images").by(&app.token("ada")).send().await.json();
    assert_eq!(listed["images"], json!([]));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn magic_fix_takes_a_mask_or_a_box(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (key, image) = (app.key("ada").await, app.upload("ada").await);
    install(&app, &[FixMode::Remove], None).await;
    let drawing = json!({"mask_base64": STANDARD.encode(mask(64, 48))});
    let rectangle = json!({"box": {"x": 8, "y": 4, "width": 16, "height": 12}});
    for (area, painted) in [(drawing, 31 * 23), (rectangle, 16 * 12)] {
        let fix = json!({"image": {"id": image}, "prompt": "remove it", "area": area});
        let waiting = call(&app, &key, "magic_fix", fix.clone());
        let worker = async {
            let job = eventually(Duration::from_secs(10), "a job", || app.claim()).await;
            let png: Vec<u8> = sqlx::query_scalar("select png from masks where job_id = $1")
                .bind(job.id.uuid())
                .fetch_one(&app.pool)
                .await
                .unwrap();
            let mask = image::load_from_memory(&png).unwrap().to_luma8();
            assert_eq!(mask.pixels().filter(|pixel| pixel.0[0] > 0).count(), painted);
            app.finish(job.id, &crate::app::png(64, 48)).await;
        };
        let (result, ()) = tokio::join!(waiting, worker);
        let repeat = call(&app, &key, "magic_fix", fix).await;
        assert_eq!(result_id(&repeat), result_id(&result));
    }
    assert_eq!(app.balance("ada").await, (4, 0));
    let account = call(&app, &key, "account", json!({})).await["structuredContent"].clone();
    assert_eq!(account["available_credits"], 4);
    assert_eq!(account["magic_fix_modes"], json!(["remove"]));
    let prices = json!({"remove_background": 5, "upscale_2": 3, "upscale_4": 6, "magic_fix": 8});
    assert_eq!(account["prices"], prices);
    // Too few credits for another one.
    let area = json!({"box": {"x": 0, "y": 0, "width": 1, "height": 1}});
    let fix = json!({"image": {"id": image}, "prompt": "remove it", "area": area});
    let refused = call(&app, &key, "magic_fix", fix).await;
    is_refused(&refused, "payment_required", "Not enough credits.");
    let inline = json!({"image": {"base64": STANDARD.encode(png(9, 9))}});
    let refused = call(&app, &key, "remove_background", inline).await;
    is_refused(&refused, "payment_required", "Not enough credits.");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn mistakes_are_explained_and_cost_nothing(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--user-runs-per-minute=100000"]).await;
    let (key, image) = (app.key("ada").await, app.upload("ada").await);
    let foreign = app.upload("bob").await;
    let bob = app.get(&format!("/api/images/{foreign}")).by(&app.token("bob")).send().await.json();
    let with = |picture: Value| json!({"image": picture});
    let by_url = |url: &str| with(json!({"url": url}));
    let large = STANDARD.encode(vec![0; (5 << 20) + 1]);
    let unsigned =
        format!("http://{HOST}/api/files/images/{image}?expires=9999999999&signature=00");
    let boxed = |x: u32, prompt: &str| {
        let area = json!({"box": {"x": x, "y": 0, "width": 9, "height": 9}});
        json!({"image": {"id": image}, "prompt": prompt, "area": area})
    };
    install(&app, &[FixMode::Remove], None).await;
    for (tool, arguments, code, sentence) in [
        ("remove_background", json!({}), "bad_request", "missing field `image`"),
        ("remove_background", with(json!({})), "bad_request", "exactly one of image.id"),
        (
            "remove_background",
            json!({"image": {"id": image}, "size": 1}),
            "bad_request",
            "unknown field `size`",
        ),
        ("remove_background", with(json!({"id": "x"})), "not_found", "Image not found."),
        ("remove_background", with(json!({"id": foreign})), "not_found", "Image not found."),
        (
            "remove_background",
            by_url(bob["url"].as_str().unwrap()),
            "not_found",
            "Image not found.",
        ),
        (
            "remove_background",
            by_url("https://example.com/a.png"),
            "bad_request",
            "address of this server",
        ),
        (
            "remove_background",
            by_url("file:///etc/passwd"),
            "bad_request",
            "address of this server",
        ),
        ("remove_background", by_url(&unsigned), "bad_request", "expired"),
        ("remove_background", with(json!({"base64": "?"})), "bad_request", "not base64"),
        (
            "remove_background",
            with(json!({"base64": "aGVsbG8="})),
            "unsupported_media_type",
            "PNG, JPEG, WebP, HEIC or AVIF",
        ),
        ("remove_background", with(json!({"base64": large})), "payload_too_large", "max 5 MB"),
        ("remove_background", with(json!("x")), "bad_request", "an object with id, url or base64"),
        ("upscale", json!({"image": {"id": image}, "factor": 3}), "bad_request", "2 or 4"),
        ("upscale", json!({"image": {"id": image}, "factor": "2"}), "bad_request", "2 or 4"),
        (
            "magic_fix",
            json!({"image": {"id": image}, "prompt": "remove it", "area": "all"}),
            "bad_request",
            "an object with mask_base64, box, points or subject",
        ),
        (
            "magic_fix",
            json!({"image": {"id": image}, "prompt": "remove it", "area": {"points": [{"x": -1, "y": 0}]}}),
            "bad_request",
            "area.points[0].x: it must be a whole number of pixels",
        ),
        (
            "magic_fix",
            boxed(60, "remove it"),
            "unprocessable_entity",
            "inside the image of 64 × 48",
        ),
        ("magic_fix", boxed(0, " "), "prompt_required", "Prompt is required."),
        ("magic_fix", boxed(0, "a red circle"), "prompt_not_possible", "Try “remove it”."),
        (
            "magic_fix",
            json!({"image": {"id": image}, "prompt": "remove it", "area": {}}),
            "bad_request",
            "exactly one of area",
        ),
        (
            "magic_fix",
            json!({"image": {"id": image}, "prompt": "remove it", "area": {"mask_base64": STANDARD.encode(mask(9, 9))}}),
            "mask_invalid",
            "9 × 9",
        ),
        ("account", json!({"x": 1}), "bad_request", "unknown field"),
    ] {
        let refused = call(&app, &key, tool, arguments).await;
        is_refused(&refused, code, sentence);
    }
    assert_eq!(app.balance("ada").await, (20, 0));
    let unknown = post(&app, &key, &message("erase", &json!({}))).send().await;
    assert_eq!(messages(&unknown).pop().unwrap()["error"]["code"], -32602);
    let huge = vec![b' '; 11 << 20];
    let refused = post(&app, &key, &json!({})).raw(huge).send().await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_full_queue_and_a_failed_run_are_explained(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--user-queue=1"]).await;
    let (key, image) = (app.key("ada").await, app.upload("ada").await);
    let with = |picture: Value| json!({"image": picture});
    let path = format!("/api/upscale/upscale-ai-2?imageId={image}");
    app.post(&path).with_key(&key).asynchronously().send().await;
    let refused = call(&app, &key, "remove_background", with(json!({"id": image}))).await;
    is_refused(&refused, "too_many_requests", "Too many of your runs are waiting.");
    assert_eq!(refused["_meta"]["retouch/problem"]["retry_after_seconds"], 10);
    let job = app.claim().await.unwrap();
    app.finish(job.id, &png(64, 48)).await;
    let failing = async {
        let job = eventually(Duration::from_secs(10), "a job", || app.claim()).await;
        let failure = Failure { code: "image_unreadable".into(), detail: "It is broken.".into() };
        app.fail(job.id, &failure).await;
    };
    let arguments = with(json!({"id": image}));
    let (failed, ()) = tokio::join!(call(&app, &key, "remove_background", arguments), failing);
    is_refused(&failed, "image_unreadable", "It is broken.");
    assert_eq!(app.balance("ada").await, (17, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_long_run_reports_its_progress_and_an_equal_call_waits_on(pool: PgPool) {
    let app = Arc::new(TestApp::start_with(pool, &["--wait-secs=2"]).await);
    let (key, image) = (app.key("ada").await, app.upload("ada").await);
    let mut request = message("remove_background", &json!({"image": {"id": image}}));
    request["params"]["_meta"] = json!({"progressToken": "p"});
    let mut notifications = messages(&post(&app, &key, &request).send().await);
    let result = notifications.pop().unwrap()["result"].clone();
    assert_eq!(result["structuredContent"]["state"], "running", "{result}");
    let mut last = -1.0;
    for notification in &notifications {
        assert_eq!(notification["method"], "notifications/progress");
        assert_eq!(notification["params"]["progressToken"], "p");
        let progress = notification["params"]["progress"].as_f64().unwrap();
        assert!(progress > last && progress <= 1.0, "{notification}");
        last = progress;
    }
    let said = notifications.last().unwrap()["params"]["message"].as_str().unwrap();
    assert!(said.starts_with("Waiting"), "{said}");
    assert_eq!(app.balance("ada").await, (20, 5));
    let done = run(&app, &key, "remove_background", json!({"image": {"id": image}})).await;
    assert_eq!(done["structuredContent"]["job_id"], result["structuredContent"]["job_id"]);
    assert_eq!(app.balance("ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_canceled_call_costs_nothing(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (key, image) = (app.key("ada").await, app.upload("ada").await);
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let answer = post(&app, &key, &initialize).send().await;
        assert_eq!(messages(&answer)[0]["result"]["serverInfo"]["name"], "retouch");
        sessions.push(answer.header("mcp-session-id").to_owned());
    }
    assert_ne!(sessions[0], sessions[1]);
    let cancel = async |session: &str| {
        let params = json!({"requestId": 7, "reason": "no longer needed"});
        let notification =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        let request = post(&app, &key, &notification).header("mcp-session-id", session);
        assert_eq!(request.send().await.status, StatusCode::ACCEPTED);
    };
    let request = message("remove_background", &json!({"image": {"id": image}}));
    let waiting = post(&app, &key, &request).header("mcp-session-id", &sessions[0]).send();
    let canceling = async {
        let held = async || (app.balance("ada").await == (20, 5)).then_some(());
        eventually(Duration::from_secs(10), "a job", held).await;
        // The same id of another client is another call.
        cancel(&sessions[1]).await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        held().await.expect("the other client canceled the call");
        cancel(&sessions[0]).await;
    };
    let (answer, ()) = tokio::join!(waiting, canceling);
    is_refused(&messages(&answer).pop().unwrap()["result"], "canceled", "The run was canceled.");
    // Other calls may still join the run for a moment.
    let canceled = async || (app.balance("ada").await == (20, 0)).then_some(());
    eventually(Duration::from_secs(10), "the cancellation", canceled).await;
    assert!(app.claim().await.is_none(), "the job is still queued");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_call_whose_client_has_gone_is_canceled(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (key, address) = (app.key("ada").await, app.listen().await);
    let image = app.upload("ada").await;
    let mut request = message("remove_background", &json!({"image": {"id": image}}));
    // Of a client of 2026, whose answer has no head before the first message, and of an older one.
    let version = "io.modelcontextprotocol";
    for is_modern in [true, false] {
        let mut head = String::new();
        if is_modern {
            request["params"]["_meta"] = json!({
                format!("{version}/protocolVersion"): "2026-07-28",
                format!("{version}/clientInfo"): {"name": "test", "version": "1"},
                format!("{version}/clientCapabilities"): {},
            });
            head.push_str("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: remove_background\r\n");
        } else {
            request["params"]["_meta"] = json!({"progressToken": 1});
        }
        let body = request.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nX-Api-Key: {key}\r\nContent-Length: {}\r\n{head}\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\r\n",
            body.len()
        );
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let held = async || (app.balance("ada").await == (20, 5)).then_some(());
        eventually(Duration::from_secs(10), "a job", held).await;
        let mut first = [0; 1];
        let answer =
            tokio::time::timeout(Duration::from_millis(300), client.read(&mut first)).await;
        assert_eq!(answer.is_err(), is_modern, "the head of the answer");
        drop(client);
        let canceled = async || (app.balance("ada").await == (20, 0)).then_some(());
        eventually(Duration::from_secs(10), "the cancellation", canceled).await;
        assert!(app.claim().await.is_none(), "the job is still queued");
    }
}
