//! Rate limits, queue limits and upload limits. Rejected requests hold no credits.

use std::time::Duration;

use axum::http::StatusCode;
use retouch_core::UserId;
use retouch_standins::testing::{adjust, wait_for_locks};
use sqlx::{Connection, PgConnection, PgPool};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::app::{TestApp, png};

/// Grants `name` credits for many runs.
async fn enrich(app: &TestApp, name: &str) {
    let user = app.get("/api/user/get").by(&app.token(name)).send().await.json();
    let user: UserId = user["id"].as_str().unwrap().parse().unwrap();
    adjust(&app.pool, user, 480).await;
}

fn paid(image: &str) -> String {
    format!("/api/rmbg-images/remove-bg-ai?imageId={image}")
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn runs_per_minute_are_limited_across_browsers_and_programs(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--user-runs-per-minute=3"]).await;
    let (ada, key, image) = (app.token("ada"), app.key("ada").await, app.upload("ada").await);
    let free = format!("/api/upscale/upscale-free?imageId={image}");
    let accepted = [
        app.post(&paid(&image)).by(&ada),
        app.post(&paid(&image)).with_key(&key),
        app.get(&free).header("authorization", &format!("Bearer {key}")),
    ];
    for request in accepted {
        let answer = request.asynchronously().send().await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
    }
    let before = app.balance("ada").await;
    let fix = format!("/api/magic-images/fix/{image}");
    let refused = [
        app.post(&paid(&image)).by(&ada),
        app.get(&paid(&image)).with_key(&key),
        app.post(&free).with_key(&key),
        app.post(&fix).by(&ada).fix(b"never read", "remove it"),
    ];
    for request in refused {
        let answer = request.asynchronously().send().await;
        let wait: u64 = answer.header("retry-after").parse().unwrap();
        assert!((1..=20).contains(&wait), "{wait}");
        let shown = wait.max(2);
        let detail = format!("You can start 3 runs per minute. Try again in {shown} seconds.");
        answer.is_problem(429, &detail);
    }
    assert_eq!(app.balance("ada").await, before);
    // Other users are not affected.
    let hers = app.upload("bob").await;
    let answer = app.post(&paid(&hers)).by(&app.token("bob")).asynchronously().send().await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
}

/// Returns the statuses of visitors' runs of different pictures.
async fn visitor_runs(app: &TestApp, widths: std::ops::Range<u32>) -> Vec<u16> {
    let mut statuses = Vec::new();
    for width in widths {
        let request = app.post("/api/free/remove-bg-fr").file(&png(width, 40)).asynchronously();
        statuses.push(request.send().await.status.as_u16());
    }
    statuses
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn processes_share_the_limits_and_a_restart_keeps_them(pool: PgPool) {
    let first = TestApp::start_with(pool.clone(), &["--visitor-runs-per-hour=3"]).await;
    assert_eq!(visitor_runs(&first, 60..62).await, [202, 202]);
    let redis = format!("--redis-url={}", first.redis().url());
    let second = TestApp::start_with(pool, &["--visitor-runs-per-hour=3", &redis]).await;
    assert_eq!(visitor_runs(&second, 62..65).await, [202, 429, 429]);
    assert_eq!(visitor_runs(&first, 65..66).await, [429]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_redis_each_process_counts_for_itself(pool: PgPool) {
    // Nothing listens there.
    let settings = ["--visitor-runs-per-hour=2", "--redis-url=redis://127.0.0.1:1"];
    let app = TestApp::start_with(pool, &settings).await;
    let started = std::time::Instant::now();
    assert_eq!(visitor_runs(&app, 60..64).await, [202, 202, 429, 429]);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let answer = app.post("/api/free/remove-bg-fr").file(&png(70, 40)).asynchronously();
    let wait: u64 = answer.send().await.header("retry-after").parse().unwrap();
    assert!((1..=1800).contains(&wait), "{wait}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_silent_redis_delays_no_request_for_long(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--user-uploads-per-minute=5"]).await;
    app.upload("ada").await;
    app.redis().freeze();
    let started = std::time::Instant::now();
    for _ in 0..5 {
        app.upload("ada").await;
    }
    // One of them waited for Redis.
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let refused = app.post("/api/images/upload").by(&app.token("ada")).file(b"text").send().await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_user_has_a_share_of_the_free_queue(pool: PgPool) {
    let settings = ["--free-queue=12", "--user-free-queue=2", "--user-uploads-per-minute=1000"];
    let app = TestApp::start_with(pool, &settings).await;
    let mut accepted = Vec::new();
    for name in ["ada", "bob", "eve", "fay", "gus", "hal", "ida", "jim", "kit", "lea", "max"] {
        let mut statuses = Vec::new();
        for _ in 0..3 {
            let path =
                format!("/api/rmbg-images/remove-bg-free?imageId={}", app.upload(name).await);
            let answer = app.post(&path).by(&app.token(name)).asynchronously().send().await;
            statuses.push(answer.status);
        }
        accepted.push(statuses.iter().filter(|status| **status == StatusCode::ACCEPTED).count());
        let refused = statuses[2];
        let is_full = accepted.iter().sum::<usize>() == 12;
        let expected =
            if is_full { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::TOO_MANY_REQUESTS };
        assert_eq!(refused, expected, "{name}");
    }
    assert_eq!(accepted, [2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn uploads_per_minute_are_limited(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--user-uploads-per-minute=2"]).await;
    for _ in 0..2 {
        app.upload("ada").await;
    }
    // Rejected before the file is inspected.
    let answer = app.post("/api/images/upload").by(&app.token("ada")).file(b"text").send().await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(answer.text().contains("You can start 2 uploads per minute"), "{}", answer.text());
    assert!(!answer.header("retry-after").is_empty());
    app.upload("bob").await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn queued_paid_runs_per_user_are_limited(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--user-queue=2"]).await;
    enrich(&app, "ada").await;
    let ada = app.token("ada");
    let mut images = Vec::new();
    for _ in 0..6 {
        images.push(app.upload("ada").await);
    }
    let requests =
        images.iter().map(|image| app.post(&paid(image)).by(&ada).asynchronously().send());
    let answers = futures::future::join_all(requests).await;
    let (accepted, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == StatusCode::ACCEPTED);
    assert_eq!(accepted.len(), 2);
    for answer in refused {
        answer.is_problem(
            429,
            "Too many of your runs are waiting. Try again when some have finished.",
        );
        assert_eq!(answer.header("retry-after"), "10");
    }
    assert_eq!(app.balance("ada").await, (500, 10));
    // A repeat of a queued run joins it, and other users are not affected.
    let first = accepted[0].json()["imageId"].as_str().map(str::to_owned);
    let again = app.post(&paid(&first.unwrap())).by(&ada).asynchronously().send().await;
    assert_eq!(again.status, StatusCode::ACCEPTED, "{}", again.text());
    let his = app.upload("bob").await;
    let his = app.post(&paid(&his)).by(&app.token("bob")).asynchronously().send().await;
    assert_eq!(his.status, StatusCode::ACCEPTED);
    // A run that starts makes room.
    app.claim().await.unwrap();
    let requests = images.iter().map(|image| app.post(&paid(image)).by(&ada).asynchronously());
    let mut statuses = Vec::new();
    for request in requests {
        statuses.push(request.send().await.status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == StatusCode::ACCEPTED).count(), 3);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn queued_paid_runs_are_limited(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--paid-queue=2"]).await;
    for (name, accepted) in [("ada", true), ("bob", true), ("eve", false)] {
        let image = app.upload(name).await;
        let answer = app.post(&paid(&image)).by(&app.token(name)).asynchronously().send().await;
        if accepted {
            assert_eq!(answer.status, StatusCode::ACCEPTED);
        } else {
            answer.is_problem(503, "Too many runs are waiting. Try again in a minute.");
            assert_eq!(answer.header("retry-after"), "60");
            assert_eq!(app.balance(name).await, (20, 0));
        }
    }
    // Free runs have a separate limit.
    let image = app.upload("eve").await;
    let free = format!("/api/rmbg-images/remove-bg-free?imageId={image}");
    let answer = app.post(&free).by(&app.token("eve")).asynchronously().send().await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn forged_addresses_do_not_evade_the_visitor_limit(pool: PgPool) {
    let run = "/api/free/remove-bg-fr";
    // First without a trusted proxy; then the peer is one, and only the last address counts.
    for (trusted, forged) in [(&[][..], true), (&["--trusted-proxies=127.0.0.1"][..], false)] {
        let settings = [&["--visitor-runs-per-hour=2"], trusted].concat();
        let app = TestApp::start_with(pool.clone(), &settings).await;
        let mut answers = Vec::new();
        for n in 0..4_u32 {
            let forwarded =
                if forged { format!("9.9.9.{n}") } else { format!("é9.9.9.{n}, 7.7.7.7") };
            // A different image each time, because its free run is used up afterwards.
            let picture = png(60 + n, if forged { 40 } else { 50 });
            let request = app.post(run).header("x-forwarded-for", &forwarded).file(&picture);
            answers.push(request.asynchronously().send().await.status.as_u16());
        }
        assert_eq!(answers, [202, 202, 429, 429], "trusted: {trusted:?}");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_visitors_of_an_ipv6_site_have_a_limit_together(pool: PgPool) {
    let settings = ["--visitor-runs-per-hour=1", "--trusted-proxies=127.0.0.1"];
    let app = TestApp::start_with(pool, &settings).await;
    let run = async |from: String, width| {
        let request = app.post("/api/free/remove-bg-fr").header("x-forwarded-for", &from);
        request.file(&png(width, 40)).asynchronously().send().await.status.as_u16()
    };
    let mut answers = Vec::new();
    for n in 0..18 {
        answers.push(run(format!("2001:db8:1:{n:x}::1"), 60 + n).await);
    }
    assert_eq!(answers, [&[202; 16][..], &[429, 429]].concat());
    assert_eq!(run("2001:db8:2::1".into(), 90).await, 202, "another site");
    assert_eq!(run("9.9.9.9".into(), 91).await, 202);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn rejected_requests_do_not_count_as_free_runs(pool: PgPool) {
    let settings = ["--visitor-runs-per-hour=2", "--visitor-uploads-per-hour=7"];
    let app = TestApp::start_with(pool, &settings).await;
    let run = async |picture: &[u8]| {
        let request = app.post("/api/free/upscale-fr").file(picture).asynchronously();
        request.send().await
    };
    let first = run(&png(60, 40)).await;
    assert_eq!(first.status, StatusCode::ACCEPTED);
    let repeat = run(&png(60, 40)).await;
    assert_eq!(repeat.status, StatusCode::ACCEPTED);
    assert_eq!(repeat.json()["id"], first.json()["id"], "a repeat returns the same run");
    run(b"no picture")
        .await
        .is_problem(415, "We can't read this file as an image. Use PNG, JPEG, WebP, HEIC or AVIF.");
    run(&png(1441, 2)).await.is_problem(422, "Image dimensions too big (Max 1440x1440)");
    assert_eq!(run(&png(61, 40)).await.status, StatusCode::ACCEPTED);
    let third = run(&png(62, 40)).await;
    assert_eq!(third.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(third.text().contains("Too many free runs from your network"), "{}", third.text());
    // But every upload counts as an upload.
    assert_eq!(run(b"no picture").await.status, StatusCode::TOO_MANY_REQUESTS);
    let eighth = run(b"no picture").await;
    assert_eq!(eighth.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(eighth.text().contains("Too many uploads from your network"), "{}", eighth.text());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_memory_for_uploads_is_limited(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--upload-memory-mib=1"]).await;
    let ada = app.token("ada");
    let upload =
        |bytes: usize| app.post("/api/images/upload").by(&ada).file(&vec![0; bytes]).send();
    for _ in 0..3 {
        // One address can use half of it. A rejected upload releases its memory immediately.
        let refused = upload(600 << 10).await;
        refused.is_problem(503, "Too many uploads are in progress. Please try again shortly.");
        assert_eq!(refused.header("retry-after"), "5");
        assert_eq!(upload(400 << 10).await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let key = app.key("ada").await;
    let picture = vec![0; 600 << 10];
    let program =
        app.post("/v1.0/removebg").with_key(&key).field("image_file", &picture).send().await;
    assert_eq!(
        (program.status, &program.json()["errors"][0]["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"unavailable".into())
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_stalled_upload_is_aborted(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--upload-pause-secs=1"]).await;
    let mut caller = TcpStream::connect(app.listen().await).await.unwrap();
    let head = "POST /api/free/remove-bg-fr HTTP/1.1\r\nHost: test\r\nContent-Length: 5000\r\n\
                Content-Type: multipart/form-data; boundary=frontier\r\n\r\n--frontier\r\n";
    caller.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = caller.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("in time").unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("The upload took too long. Please try again."), "{answer}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_client_that_is_rejected_while_uploading_can_read_the_response(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--upload-memory-mib=1"]).await;
    let address = app.listen().await;
    let ada = app.token("ada");
    let mut picture =
        b"--frontier\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n"
            .to_vec();
    picture.resize(16 << 20, 0);
    // More than socket buffers hold; the response is read only after everything is sent.
    let send = async |path: &str, headers: &str| {
        let mut caller = TcpStream::connect(address).await.unwrap();
        let length = picture.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        caller.write_all(head.as_bytes()).await.unwrap();
        caller.write_all(&picture).await.expect("the server reads on");
        let mut answer = Vec::new();
        caller.read_to_end(&mut answer).await.expect("the answer arrives");
        String::from_utf8_lossy(&answer).into_owned()
    };
    let stranger = send("/api/images/upload", "").await;
    assert!(stranger.starts_with("HTTP/1.1 401 "), "{stranger}");
    let without_key = send("/v1.0/removebg", "").await;
    assert!(without_key.starts_with("HTTP/1.1 403 "), "{without_key}");
    let headers = format!(
        "Authorization: Bearer {ada}\r\nContent-Type: multipart/form-data; boundary=frontier\r\n"
    );
    let too_much = send("/api/images/upload", &headers).await;
    assert!(too_much.starts_with("HTTP/1.1 503 "), "{too_much}");
    assert!(too_much.contains("Too many uploads are in progress"), "{too_much}");
    // A client that waits for `100 Continue` gets the response immediately.
    let mut careful = TcpStream::connect(address).await.unwrap();
    let head = "POST /api/images/upload HTTP/1.1\r\nHost: test\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n\r\n";
    careful.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 13];
    careful.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 401 ");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn one_account_does_not_take_all_connections_to_the_database(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    app.upload("bob").await;
    let job = app.post(&paid(&image)).by(&ada).asynchronously().send().await.json();
    let path = format!("/api/jobs/{}", job["id"].as_str().unwrap());
    // Beside the pool, which has five connections.
    let mut other = PgConnection::connect_with(&app.pool.connect_options()).await.unwrap();
    let mut locked = other.begin().await.unwrap();
    sqlx::query("select from users where reserved > 0 for update")
        .execute(&mut *locked)
        .await
        .unwrap();
    let cancel = || app.delete(&path).by(&ada).send();
    let name = serde_json::json!({ "name": "nightly" });
    let create_key = || app.post("/api/keys").by(&ada).json_body(&name).send();
    let canceling = futures::future::join_all((0..20).map(|_| cancel()));
    let creating = futures::future::join_all((0..10).map(|_| create_key()));
    let others = async {
        wait_for_locks(&app.pool, 4).await;
        let balance = tokio::time::timeout(Duration::from_secs(5), app.balance("bob")).await;
        locked.rollback().await.unwrap();
        balance.expect("another account is served")
    };
    let (answers, keys, balance) = tokio::join!(canceling, creating, others);
    assert_eq!(balance, (20, 0));
    assert!(keys.iter().all(|key| key.status == StatusCode::CREATED));
    assert!(answers.iter().all(|answer| answer.json()["state"] == "cancelled"));
    assert_eq!(app.balance("ada").await, (20, 0));
}
