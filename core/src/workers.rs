//! The worker processes, their devices and their models.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::types::Json;

use crate::WorkerId;
use retouch_catalog::{FixMode, Tier, ToolName};
use retouch_prompts::Offer;

/// A model that a worker has bound to a tool and a tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedModel {
    pub tool: ToolName,
    pub tier: Tier,
    /// The name of its folder in `models/`.
    pub model: String,
    /// The SHA-256 of its file.
    pub sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FixMode>,
    /// The factor of upscales that it serves; older workers do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<u8>,
    /// Maximum number of pixels, width times height, of the pictures that it serves; `None` for any size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_pixels: Option<u64>,
    /// The words it knows; `None` if it accepts any word or takes no prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<Vec<String>>,
    /// True if it is a demo, which shows the workflow and not useful results.
    #[serde(default)]
    pub is_demo: bool,
    /// Whether it is in memory. A model that gave way to others is loaded again for the next job; older workers do not
    /// report this.
    #[serde(default = "loaded")]
    pub is_loaded: bool,
}

const fn loaded() -> bool {
    true
}

/// Returns what Magic Fix can do with these models.
pub fn fix_offer(models: &[ServedModel]) -> Offer {
    let mut offer = Offer::default();
    for model in models {
        let Some(mode) = model.mode.filter(|mode| !offer.modes.contains(mode)) else { continue };
        offer.modes.push(mode);
        if mode.needs_words() {
            offer.vocabulary.clone_from(&model.vocabulary);
            offer.is_demo = model.is_demo;
        }
    }
    offer.modes.sort();
    offer
}

/// The name under which [`WorkerProblem`] reports that a worker cannot reach the object store.
pub const OBJECT_STORE: &str = "object store";
/// The name under which [`WorkerProblem`] reports that a worker cannot sign results.
pub const CONTENT_CREDENTIALS: &str = "content credentials";

/// Why a worker runs no jobs, runs them with an older model than its files state, or cannot sign their results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ModelProblem))]
pub struct WorkerProblem {
    /// The name of the model's folder in `models/`, `tools.toml`, `object store`, or `content credentials`.
    pub model: String,
    /// The step that failed: `manifest`, `checksum`, `files`, `open`, `contract`, `warm-up` or `golden`; `bindings` for
    /// errors in tools.toml; `storage` while the worker cannot reach the object store and claims no jobs; `signing` while it
    /// cannot sign results, or soon will not.
    pub step: String,
    /// The reason, in one sentence.
    pub reason: String,
}

/// A worker process, as it reports itself.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its id, new at each start.
    pub id: WorkerId,
    pub name: String,
    /// The device its models run on: `cpu` or `cuda`.
    pub device: String,
    /// That device in words, for example `NVIDIA H200, driver 580.65.06`.
    pub hardware: String,
    pub models: Vec<ServedModel>,
    /// The faults of its models or its dependencies.
    pub problems: Vec<WorkerProblem>,
    /// The number of jobs it runs at once.
    pub slots: i32,
    pub version: String,
    /// The time of its last report.
    pub seen_at: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// It reported lately.
    Live,
    Stopped,
    /// It has not reported lately: it crashed, or it cannot reach the database.
    Silent,
}

impl WorkerState {
    /// Returns the state in lowercase, for example `stopped`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Stopped => "stopped",
            Self::Silent => "silent",
        }
    }
}

pub async fn report(pool: &PgPool, worker: &Worker) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into workers (id, name, device, models, problems, slots, version, hardware)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (id) do update
         set device = excluded.device, models = excluded.models, problems = excluded.problems,
             slots = excluded.slots, seen_at = now()",
        worker.id.uuid(),
        worker.name,
        worker.device,
        serde_json::json!(worker.models),
        serde_json::json!(worker.problems),
        worker.slots,
        worker.version,
        worker.hardware,
    )
    .execute(pool)
    .await
    .map(drop)
}

pub async fn live(pool: &PgPool) -> sqlx::Result<Vec<Worker>> {
    let found = find(pool, true).await?;
    Ok(found.into_iter().map(|(worker, _)| worker).collect())
}

/// Returns the workers that reported within the last hour, live or not.
pub async fn reported(pool: &PgPool) -> sqlx::Result<Vec<(Worker, WorkerState)>> {
    find(pool, false).await
}

async fn find(pool: &PgPool, only_live: bool) -> sqlx::Result<Vec<(Worker, WorkerState)>> {
    sqlx::query!(
        r#"select id as "id: WorkerId", name, device, hardware, models as "models: Json<Vec<ServedModel>>",
                  problems as "problems: Json<Vec<WorkerProblem>>", slots, version, seen_at,
                  stopped_at is not null as "is_stopped!", is_live(workers) as "is_live!"
           from workers
           where seen_at > now() - interval '1 hour' and (is_live(workers) or not $1)
           order by name, id"#,
        only_live,
    )
    .fetch_all(pool)
    .await
    .map(|rows| {
        rows.into_iter()
            .map(|row| {
                let state = match (row.is_live, row.is_stopped) {
                    (true, _) => WorkerState::Live,
                    (false, true) => WorkerState::Stopped,
                    (false, false) => WorkerState::Silent,
                };
                let worker = Worker {
                    id: row.id,
                    name: row.name,
                    device: row.device,
                    hardware: row.hardware,
                    models: row.models.0,
                    problems: row.problems.0,
                    slots: row.slots,
                    version: row.version,
                    seen_at: row.seen_at,
                };
                (worker, state)
            })
            .collect()
    })
}

/// Returns the models of every worker that reported within the last hour, so that a restart does not remove a tool
/// from the page.
pub async fn known_models(pool: &PgPool) -> sqlx::Result<Vec<ServedModel>> {
    let rows = sqlx::query_scalar!(
        r#"select models as "models: Json<Vec<ServedModel>>" from workers
           where seen_at > now() - interval '1 hour' order by seen_at desc"#,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().flat_map(|models| models.0).collect())
}

/// Marks a worker as stopped. A report that reaches the database later does not make it live again.
pub async fn sign_off(pool: &PgPool, id: WorkerId) -> sqlx::Result<()> {
    sqlx::query!("update workers set stopped_at = now() where id = $1", id.uuid())
        .execute(pool)
        .await
        .map(drop)
}

/// Deletes workers that have not reported for an hour. Returns their number.
pub async fn delete_silent(pool: &PgPool) -> sqlx::Result<u64> {
    let deleted = sqlx::query!("delete from workers where seen_at < now() - interval '1 hour'")
        .execute(pool)
        .await?;
    Ok(deleted.rows_affected())
}
