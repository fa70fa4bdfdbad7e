//! `/healthz` (liveness) and `/readyz` (readiness).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use retouch_core::db;
use retouch_core::workers::{self, WorkerProblem};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::caller::IsPrivate;
use crate::state::{App, Dependencies};

/// Returns 200 while the process runs.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = String)))]
pub async fn healthz() -> &'static str {
    "ok"
}

/// The state of each dependency. Workers do not affect `ready`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "one per dependency")]
pub struct Readiness {
    ready: bool,
    postgres: bool,
    redis: bool,
    storage: bool,
    /// True if the identity provider's keys are loaded, which happens with the first token.
    identity_keys: bool,
    /// What keeps this process from signing files as configured, or soon will. Only for clients in private networks.
    credentials_problem: Option<String>,
    /// The live workers. Only for clients in private networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    workers: Option<Vec<WorkerView>>,
}

/// A live worker process.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Worker)]
pub struct WorkerView {
    name: String,
    /// The device its models run on.
    device: String,
    slots: i32,
    version: String,
    seen_at: DateTime<Utc>,
    models: Vec<ModelView>,
    /// Models that failed to load, so that the worker keeps serving their previous versions, and dependencies that it
    /// cannot reach.
    problems: Vec<WorkerProblem>,
}

/// A model that a worker serves.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Model)]
pub struct ModelView {
    tool: String,
    tier: String,
    model: String,
    sha256: String,
    /// Whether it is in memory; a model that gave way to others is loaded again for the next job.
    loaded: bool,
}

/// Returns 200 if Postgres accepts writes and has the migrations of this version, and Redis and the object store are
/// available, otherwise 503.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, body = Readiness), (status = 503, body = Readiness)))]
pub async fn readyz(
    State(app): State<App>,
    // Names, versions, and paths would help an attacker.
    IsPrivate(shows_details): IsPrivate,
) -> (StatusCode, Json<Readiness>) {
    let Dependencies { postgres, redis, storage } = app.dependencies().await;
    let workers = match (shows_details, postgres) {
        (false, _) => None,
        (true, true) => Some(db::within(workers::live(&app.pool)).await.unwrap_or_default()),
        (true, false) => Some(Vec::new()),
    };
    let ready = postgres && redis && storage;
    let readiness = Readiness {
        ready,
        postgres,
        redis,
        storage,
        identity_keys: app.authenticator.is_ready().await,
        credentials_problem: app.credentials.problem(app.clock.now()).filter(|_| shows_details),
        workers: workers.map(|workers| workers.into_iter().map(view).collect()),
    };
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness))
}

fn view(worker: workers::Worker) -> WorkerView {
    let served = worker.models.into_iter().map(|served| ModelView {
        tool: served.tool.to_string(),
        tier: served.tier.to_string(),
        model: served.model,
        sha256: served.sha256,
        loaded: served.is_loaded,
    });
    let mut models: Vec<_> = served.collect();
    // Both factors of an upscale, and several modes of Magic Fix, usually share a model.
    models.dedup();
    WorkerView {
        name: worker.name,
        device: worker.device,
        slots: worker.slots,
        version: worker.version,
        seen_at: worker.seen_at,
        models,
        problems: worker.problems,
    }
}
