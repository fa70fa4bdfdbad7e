//! What Prometheus reads of the API: requests by route, the queue, the ledger, who is there to work, and whether the
//! books balance.

mod nodes;

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use retouch_core::{audit, credits, db, jobs, workers};

use crate::state::App;
use nodes::Nodes;

/// How often the queue is looked at.
const ROUND: Duration = Duration::from_secs(5);
/// After how many of those rounds the ledger is summed up: it only grows.
const LEDGER_ROUNDS: u64 = 12;
/// After how many of them the books are audited: an hour. The first time is soon after the start.
const AUDIT_ROUNDS: u64 = 720;

/// Measures a request by the route that answers it; addresses themselves are as many as there are pictures.
pub async fn measure_request(route: MatchedPath, request: Request, next: Next) -> Response {
    let (began, method) = (Instant::now(), request.method().as_str().to_owned());
    let response = next.run(request).await;
    metrics::histogram!("retouch_http_request_seconds", "method" => method,
        "route" => route.as_str().to_owned(), "status" => response.status().as_u16().to_string())
    .record(began.elapsed());
    response
}

/// Looks at the queue, the ledger and the workers until the process stops.
pub async fn watch(app: App) {
    let mut rounds = tokio::time::interval(ROUND);
    let mut nodes = Nodes::default();
    for round in 0.. {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            _ = rounds.tick() => {}
        }
        look_at_dependencies(&app).await;
        if let Err(error) = look(&app, &mut nodes, round % LEDGER_ROUNDS == 0).await {
            tracing::debug!(%error, "Could not look at the queue");
        }
        if round % AUDIT_ROUNDS == LEDGER_ROUNDS
            && let Err(error) = look_into_books(&app).await
        {
            tracing::warn!(%error, "Could not audit the books");
        }
    }
}

async fn look(app: &App, nodes: &mut Nodes, also_at_ledger: bool) -> Result<(), db::DatabaseError> {
    for depth in jobs::queue_depths(&app.pool).await? {
        let (tool, tier) = (depth.class.tool.as_str(), depth.class.tier.as_str());
        metrics::gauge!("retouch_queue_jobs", "tool" => tool, "tier" => tier)
            .set(depth.waiting as f64);
        metrics::gauge!("retouch_queue_oldest_seconds", "tool" => tool, "tier" => tier)
            .set(depth.oldest_secs);
    }
    nodes.show(&workers::living(&app.pool).await?);
    if also_at_ledger {
        for (kind, sum) in credits::sums_by_kind(&app.pool).await? {
            metrics::gauge!("retouch_ledger_credits", "kind" => kind).set(sum as f64);
        }
    }
    Ok(())
}

async fn look_at_dependencies(app: &App) {
    let (postgres, redis, storage) =
        tokio::join!(db::ping(&app.pool), app.queue.ping(), app.storage.ping());
    let all =
        [("postgres", postgres.is_ok()), ("redis", redis.is_ok()), ("storage", storage.is_ok())];
    for (dependency, is_up) in all {
        metrics::gauge!("retouch_dependency_up", "dependency" => dependency)
            .set(f64::from(u8::from(is_up)));
    }
}

/// Recomputes every balance; what does not add up is in the log by name.
async fn look_into_books(app: &App) -> Result<(), db::DatabaseError> {
    let findings = audit::books(&app.pool).await?;
    for finding in &findings {
        tracing::error!("The books: {finding}");
    }
    metrics::gauge!("retouch_audit_findings").set(findings.len() as f64);
    metrics::gauge!("retouch_audit_finished_seconds").set(app.clock.now().timestamp() as f64);
    Ok(())
}
