//! Whether the process lives (`/healthz`), and whether it can work (`/readyz`).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use retouch_core::{db, workers};
use serde::Serialize;
use utoipa::ToSchema;

use crate::state::App;

/// The process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = String)))]
pub async fn healthz() -> &'static str {
    "ok"
}

/// What the API needs, and who is there to work. Workers are reported but do not decide.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "one for each thing that is needed")]
pub struct Readiness {
    ready: bool,
    postgres: bool,
    redis: bool,
    storage: bool,
    /// Whether the identity provider's keys are at hand; fetched with the first token.
    identity_keys: bool,
    workers: Vec<WorkerView>,
}

/// A living worker process.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Worker)]
pub struct WorkerView {
    name: String,
    /// The device its models really run on.
    device: String,
    slots: i32,
    version: String,
    seen_at: DateTime<Utc>,
    models: Vec<ModelView>,
    /// Models that its files describe and that it does not serve, with the reason; what served before them
    /// still does.
    problems: Vec<ModelProblemView>,
}

/// A model that a worker serves.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Model)]
pub struct ModelView {
    tool: String,
    tier: String,
    model: String,
    sha256: String,
}

/// Why a model is not served as its files describe it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelProblem)]
pub struct ModelProblemView {
    /// The model's name, or `tools.toml`.
    model: String,
    /// The step of the load that failed: `manifest`, `checksum`, `files`, `open`, `contract`, `warm-up` or
    /// `golden`; `bindings` when tools.toml is at fault.
    step: String,
    reason: String,
}

/// 200 when Postgres, Redis and the object store answer, else 503.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, body = Readiness), (status = 503, body = Readiness)))]
pub async fn readyz(State(app): State<App>) -> (StatusCode, Json<Readiness>) {
    let (postgres, redis, storage) =
        tokio::join!(db::ping(&app.pool), app.queue.ping(), app.storage.ping());
    let workers = workers::living(&app.pool).await.unwrap_or_default();
    let ready = postgres.is_ok() && redis.is_ok() && storage.is_ok();
    let readiness = Readiness {
        ready,
        postgres: postgres.is_ok(),
        redis: redis.is_ok(),
        storage: storage.is_ok(),
        identity_keys: app.authenticator.is_ready().await,
        workers: workers.into_iter().map(view).collect(),
    };
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness))
}

fn view(worker: workers::Worker) -> WorkerView {
    WorkerView {
        name: worker.name,
        device: worker.device,
        slots: worker.slots,
        version: worker.version,
        seen_at: worker.seen_at,
        models: worker
            .models
            .into_iter()
            .map(|served| ModelView {
                tool: served.tool.to_string(),
                tier: served.tier.to_string(),
                model: served.model,
                sha256: served.sha256,
            })
            .collect(),
        problems: worker
            .problems
            .into_iter()
            .map(|problem| ModelProblemView {
                model: problem.model,
                step: problem.step,
                reason: problem.reason,
            })
            .collect(),
    }
}
