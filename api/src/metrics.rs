//! The API's Prometheus metrics: requests, dependencies, the queue, the ledger, workers and the audit.

mod worker_gauges;

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use retouch_core::credits::{self, LedgerKind};
use retouch_core::workers::{self, CONTENT_CREDENTIALS};
use retouch_core::{audit, db, jobs};

use crate::state::App;
use worker_gauges::WorkerGauges;

/// How long the exporter keeps a gauge that is no longer updated. This affects only the gauges of departed workers:
/// [`watch`] updates all others at least once a minute.
pub const GAUGE_TIMEOUT: Duration = Duration::from_hours(24);
const INTERVAL: Duration = Duration::from_secs(5);
/// How often the ledger's gauges are updated and one process checks whether an audit is due.
const BOOKS_INTERVAL: Duration = Duration::from_mins(1);
/// Maximum time for summing up the ledger or for an audit: a silent connection must not stop the gauges.
const BOOKS_LIMIT: Duration = Duration::from_mins(30);

/// Measures a request under its route; raw paths would create a time series per image.
pub async fn measure_request(route: MatchedPath, request: Request, next: Next) -> Response {
    let (started, method) = (Instant::now(), request.method().as_str().to_owned());
    let response = next.run(request).await;
    metrics::histogram!("retouch_http_request_seconds", "method" => method,
        "route" => route.as_str().to_owned(), "status" => response.status().as_u16().to_string())
    .record(started.elapsed());
    response
}

/// Updates the gauges until the process stops.
pub async fn watch(app: App) {
    // Concurrently, because an audit takes many statements.
    let both = async { tokio::join!(watch_queue(&app), watch_books(&app)) };
    app.stopping.run_until_cancelled(both).await;
}

async fn watch_queue(app: &App) {
    let mut interval = tokio::time::interval(INTERVAL);
    let mut gauges = WorkerGauges::default();
    loop {
        interval.tick().await;
        update_dependencies(app).await;
        if let Err(error) = update_queue(app, &mut gauges).await {
            tracing::debug!(%error, "Could not read the queue");
        }
    }
}

async fn watch_books(app: &App) {
    let mut interval = tokio::time::interval(BOOKS_INTERVAL);
    loop {
        interval.tick().await;
        if let Err(error) = update_ledger(app).await {
            tracing::debug!(%error, "Could not add up the ledger");
        }
        if let Err(error) = update_audit(app).await {
            tracing::warn!(%error, "Could not audit the books");
        }
    }
}

async fn update_queue(app: &App, gauges: &mut WorkerGauges) -> Result<(), db::DatabaseError> {
    for depth in db::within(jobs::queue_depths(&app.pool)).await? {
        let (tool, tier) = (depth.class.tool.as_str(), depth.class.tier.as_str());
        metrics::gauge!("retouch_queue_jobs", "tool" => tool, "tier" => tier)
            .set(depth.waiting as f64);
        metrics::gauge!("retouch_queue_oldest_seconds", "tool" => tool, "tier" => tier)
            .set(depth.oldest_secs);
    }
    let live = db::within(workers::live(&app.pool)).await?;
    gauges.update(&live);
    let of_workers = live.iter().flat_map(|worker| &worker.problems);
    let is_problem = app.credentials.problem(app.clock.now()).is_some()
        || of_workers.into_iter().any(|problem| problem.model == CONTENT_CREDENTIALS);
    metrics::gauge!("retouch_credentials_problem").set(f64::from(u8::from(is_problem)));
    Ok(())
}

async fn update_ledger(app: &App) -> Result<(), db::DatabaseError> {
    db::within_time(BOOKS_LIMIT, credits::add_up(&app.pool)).await?;
    let mut sums = db::within(credits::sums_by_kind(&app.pool)).await?;
    // An operator's first grant must show as an increase.
    if sums.iter().all(|(kind, _)| kind != LedgerKind::Admin.as_str()) {
        sums.push((LedgerKind::Admin.as_str().to_owned(), 0));
    }
    for (kind, sum) in sums {
        metrics::gauge!("retouch_ledger_credits", "kind" => kind).set(sum as f64);
    }
    Ok(())
}

async fn update_dependencies(app: &App) {
    let (postgres, redis, storage) =
        tokio::join!(db::ping(&app.pool), app.queue.ping(), app.storage_is_ready());
    let all = [("postgres", postgres.is_ok()), ("redis", redis.is_ok()), ("storage", storage)];
    for (dependency, is_up) in all {
        metrics::gauge!("retouch_dependency_up", "dependency" => dependency)
            .set(f64::from(u8::from(is_up)));
    }
}

/// Audits the books and logs every finding, if it is this process's turn. Every process reports the last audit.
async fn update_audit(app: &App) -> Result<(), db::DatabaseError> {
    let audit = db::within_time(BOOKS_LIMIT, audit::hourly(&app.pool)).await?;
    for finding in audit.unwrap_or_default() {
        tracing::error!("Audit: {finding}");
    }
    if let Some((finished_at, findings)) = db::within(audit::last(&app.pool)).await? {
        metrics::gauge!("retouch_audit_findings").set(findings as f64);
        metrics::gauge!("retouch_audit_finished_seconds").set(finished_at.timestamp() as f64);
    }
    Ok(())
}
