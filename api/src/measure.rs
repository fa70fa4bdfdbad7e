//! What Prometheus reads of the API: requests by route, the queue, the ledger.

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use retouch_core::{credits, jobs};

use crate::state::App;

/// How often the queue is looked at.
const ROUND: Duration = Duration::from_secs(5);
/// After how many of those rounds the ledger is summed up: it only grows.
const LEDGER_ROUNDS: u64 = 12;

/// Measures a request by the route that answers it; addresses themselves are as many as there are pictures.
pub async fn measure_request(route: MatchedPath, request: Request, next: Next) -> Response {
    let (began, method) = (Instant::now(), request.method().as_str().to_owned());
    let response = next.run(request).await;
    metrics::histogram!("retouch_http_request_seconds", "method" => method,
        "route" => route.as_str().to_owned(), "status" => response.status().as_u16().to_string())
    .record(began.elapsed());
    response
}

/// Looks at the queue and the ledger until the process stops.
pub async fn watch(app: App) {
    let mut rounds = tokio::time::interval(ROUND);
    for round in 0.. {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            _ = rounds.tick() => {}
        }
        if let Err(error) = look(&app, round % LEDGER_ROUNDS == 0).await {
            tracing::debug!(%error, "Could not look at the queue");
        }
    }
}

async fn look(app: &App, also_at_ledger: bool) -> Result<(), retouch_core::db::DatabaseError> {
    for depth in jobs::queue_depths(&app.pool).await? {
        let (tool, tier) = (depth.class.tool.as_str(), depth.class.tier.as_str());
        metrics::gauge!("retouch_queue_jobs", "tool" => tool, "tier" => tier)
            .set(depth.waiting as f64);
        metrics::gauge!("retouch_queue_oldest_seconds", "tool" => tool, "tier" => tier)
            .set(depth.oldest_secs);
    }
    if also_at_ledger {
        for (kind, sum) in credits::sums_by_kind(&app.pool).await? {
            metrics::gauge!("retouch_ledger_credits", "kind" => kind).set(sum as f64);
        }
    }
    Ok(())
}
