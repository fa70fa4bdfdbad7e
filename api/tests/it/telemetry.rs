//! Traces and metrics: one trace from the request to the commit, metrics per route, and no secrets in either.

use std::time::{Duration, Instant};

use retouch_catalog::{Tier, Tool};
use retouch_core::jobs::{self, NewJob};
use retouch_standins::testing::{eventually, image, user};
use serde_json::Value;
use sqlx::PgPool;

use crate::app::{AUDIENCE, png};
use crate::collector::{Collector, Span};
use crate::processes::{Process, Services, free_port};

const TIMEOUT: Duration = Duration::from_mins(1);

/// Uploads an image for Ada and returns its id.
async fn upload(services: &Services, api: &str, token: &str) -> String {
    let body = [
        b"--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n",
        &png(64, 48)[..],
        b"\r\n--x--\r\n",
    ]
    .concat();
    let request = services.http.post(format!("{api}/api/images/upload")).bearer_auth(token);
    let request = request.header("content-type", "multipart/form-data; boundary=x").body(body);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    answer["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn assert_keeps_secrets(log: &str, token: &str) {
    assert!(!log.is_empty());
    for secret in [token, "ada@example.test", "signature=", "a secret of the tests", "test-secret"]
    {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn one_trace_covers_the_request_and_the_job(pool: PgPool) {
    let services = Services::start(pool).await;
    let collector = Collector::start().await;
    let traced = |program: crate::processes::Program| {
        // Logs everything, to search it for secrets.
        program.set("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url).set(
            "RETOUCH_LOG",
            "info,retouch_api=trace,retouch_core=trace,retouch_worker=trace,tower_http=trace",
        )
    };
    let (program, api) = services.api();
    let api_process = traced(program).start();
    let worker_process = traced(services.worker()).start();
    services.wait_for(&format!("{api}/healthz"), &api_process).await;
    let token = services.issuer.token("ada", AUDIENCE);
    let image = upload(&services, &api, &token).await;
    let run = format!("{api}/api/rmbg-images/remove-bg-ai?imageId={image}");

    let callers_trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let mut request_ids = Vec::new();
    for sent in [None, Some(format!("00-{callers_trace}-00f067aa0ba902b7-01"))] {
        let mut request = services.http.post(&run).bearer_auth(&token);
        if let Some(sent) = &sent {
            request = request.header("traceparent", sent);
        }
        let answer = request.send().await.unwrap();
        request_ids.push(answer.headers()["x-request-id"].to_str().unwrap().to_owned());
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
        let job: Value = answer.json().await.unwrap();
        assert_eq!(job.as_array().unwrap().len(), 1);
    }
    let traceparents: Vec<String> =
        sqlx::query_scalar("select traceparent from jobs order by created_at")
            .fetch_all(&services.pool)
            .await
            .unwrap();
    assert_eq!(traceparents.len(), 2);
    for (traceparent, sent) in traceparents.iter().zip([None, Some(callers_trace)]) {
        let [_, trace, span, _] = traceparent.split('-').collect::<Vec<_>>()[..] else {
            panic!("{traceparent}")
        };
        assert!(sent.is_none_or(|sent| sent == trace), "{traceparent}");
        let is = |found: &Span, service: &str, name: &str| {
            found.trace == trace && found.service == service && found.name == name
        };
        let (click, job) = eventually(TIMEOUT, "the spans of a run", || async {
            let spans = collector.spans();
            let click = spans.iter().find(|found| is(found, "retouch-api", "request"));
            let job = spans.iter().find(|found| is(found, "retouch-worker", "job"));
            let commit = spans.iter().any(|found| is(found, "retouch-worker", "record"));
            click.cloned().zip(job.cloned()).filter(|_| commit)
        })
        .await;
        assert_eq!(click.id, span, "the job stores the span of the request");
        assert_eq!(job.parent, span, "the worker's span is its child");
        // The statements that submit and finish the job.
        for (service, statement) in
            [("retouch-api", "with earlier as ("), ("retouch-worker", "with payer as (")]
        {
            let name = format!("{statement} …");
            let query = eventually(TIMEOUT, "the span of a query", || async {
                collector.spans().into_iter().find(|found| is(found, service, &name))
            })
            .await;
            assert!(!query.parent.is_empty(), "{query:?}");
        }
    }
    let sent = collector.received();
    for secret in [token.as_str(), "ada@example.test", "signature="] {
        let found = sent.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
        assert!(!found, "{secret} was sent to the collector");
    }
    let log = api_process.log();
    assert!(request_ids.iter().all(|id| log.contains(id)), "{request_ids:?}");
    assert_keeps_secrets(&log, &token);
    assert_keeps_secrets(&worker_process.log(), &token);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_a_collector_nothing_is_traced(pool: PgPool) {
    let services = Services::start(pool).await;
    let collector = Collector::start().await;
    for endpoint in ["", "unset"] {
        let (mut program, api) = services.api();
        if endpoint.is_empty() {
            program = program.set("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        }
        // Not one of our settings, but an exporter would use it.
        let traces = format!("{}/v1/traces", collector.url);
        let mut process = program.set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &traces).start();
        services.wait_for(&format!("{api}/healthz"), &process).await;
        let token = services.issuer.token("ada", AUDIENCE);
        let image = upload(&services, &api, &token).await;
        let run = format!("{api}/api/rmbg-images/remove-bg-ai?imageId={image}");
        let request = services.http.post(run).bearer_auth(&token).header("prefer", "respond-async");
        assert_eq!(request.send().await.unwrap().status(), 202);
        assert!(process.stop(Duration::from_secs(10)).await.success());
    }
    let traced: i64 = sqlx::query_scalar("select count(*) from jobs where traceparent is not null")
        .fetch_one(&services.pool)
        .await
        .unwrap();
    assert_eq!((traced, collector.received().len()), (0, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_unavailable_collector_does_not_delay_requests(pool: PgPool) {
    let services = Services::start(pool).await;
    // Accepts connections and never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    for port in [free_port(), silent_port] {
        let (program, api) = services.api();
        let endpoint = format!("http://127.0.0.1:{port}");
        let mut process = program.set("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint).start();
        services.wait_for(&format!("{api}/healthz"), &process).await;
        let began = Instant::now();
        for _ in 0..200 {
            let answer = services.http.get(format!("{api}/api/config")).send().await.unwrap();
            assert_eq!(answer.status(), 200);
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let began = Instant::now();
        assert!(process.stop(Duration::from_secs(15)).await.success());
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    }
}

/// Returns the metrics of an API as soon as they contain `awaited`.
async fn metrics_of(
    services: &Services,
    metrics: &str,
    awaited: &str,
    process: &Process,
) -> String {
    services.wait_for(metrics, process).await;
    eventually(TIMEOUT, awaited, || async {
        let text = services.http.get(metrics).send().await.ok()?.text().await.ok()?;
        text.contains(awaited).then_some(text)
    })
    .await
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn metrics_cover_routes_queues_and_credits_without_personal_data(pool: PgPool) {
    let services = Services::start(pool).await;
    let bob = user(&services.pool, "bob", 30).await;
    let new = NewJob {
        owner: Some(bob),
        image: image(&services.pool, None, bob, b"x").await,
        tool: Tool::RemoveBackground,
        tier: Tier::Paid,
        idempotency_key: None,
        fix: None,
        queue_limit: None,
    };
    jobs::submit(&services.pool, &new).await.unwrap();
    let (program, api) = services.api();
    let listen = format!("127.0.0.1:{}", free_port());
    let process = program.set("RETOUCH_METRICS_LISTEN", &listen).start();
    let metrics = format!("http://{listen}/metrics");
    services.wait_for(&format!("{api}/healthz"), &process).await;

    let token = services.issuer.token("ada", AUDIENCE);
    let image = upload(&services, &api, &token).await;
    let send = async |method: &str, path: &str| {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = services.http.request(method, format!("{api}{path}")).bearer_auth(&token);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(send("GET", &format!("/api/images/{image}")).await, 200);
    assert_eq!(send("GET", "/api/images/raw-address-1").await, 404);
    assert_eq!(send("GET", "/api/raw-address-2?token=raw-address-3").await, 404);
    assert_eq!(send("BREW", "/api/images").await, 405);
    assert_eq!(send("GET", "/api/free/upload?x=1&y=2&url=https://x.test/raw-address-4").await, 204);
    let mask =
        "--x\r\ncontent-disposition: form-data; name=\"prompt\"\r\n\r\na purple zebra\r\n--x--\r\n";
    let fix = services.http.post(format!("{api}/api/magic-images/fix/{image}")).bearer_auth(&token);
    let fix = fix.header("content-type", "multipart/form-data; boundary=x").body(mask);
    assert_eq!(fix.send().await.unwrap().status(), 400);

    let text = metrics_of(&services, &metrics, "retouch_ledger_credits", &process).await;
    let value = |name: &str, labels: &[&str]| {
        let mut lines = text.lines().filter(|line| {
            line.starts_with(&format!("{name}{{"))
                && labels.iter().all(|label| line.contains(label))
        });
        let line = lines.next().unwrap_or_else(|| panic!("no {name} with {labels:?} in\n{text}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let of = |status: &'static str| ["method=\"GET\"", "route=\"/api/images/{imageId}\"", status];
    assert!((value("retouch_http_request_seconds_count", &of("status=\"200\"")) - 1.0).abs() < 0.1);
    assert!((value("retouch_http_request_seconds_count", &of("status=\"404\"")) - 1.0).abs() < 0.1);
    value("retouch_http_request_seconds_bucket", &["le=\"0.05\"", "route=\"/api/images/upload\""]);
    let queue = ["tool=\"remove-background\"", "tier=\"paid\""];
    assert!((value("retouch_queue_jobs", &queue) - 1.0).abs() < 0.1);
    assert!(value("retouch_queue_oldest_seconds", &queue) >= 0.0);
    assert!((value("retouch_ledger_credits", &["kind=\"admin\""]) - 30.0).abs() < 0.1);
    assert!(text.contains("retouch_oversize_choices_total 1"), "{text}");
    assert!((value("retouch_dependency_up", &["dependency=\"redis\""]) - 1.0).abs() < 0.1);
    assert!(value("retouch_workers", &["device=\"cuda\""]).abs() < 0.1, "no worker runs");
    let secrets = [
        token.as_str(),
        "ada",
        "bob",
        "example.test",
        "zebra",
        "raw-address",
        "BREW",
        image.as_str(),
        "127.0.0.1",
    ];
    for secret in secrets {
        assert!(!text.contains(secret), "{secret} is in\n{text}");
    }
    let public = services.http.get(format!("{api}/metrics")).send().await.unwrap();
    assert!(
        !public.text().await.unwrap().contains("retouch_"),
        "the public port must not serve metrics"
    );
}
