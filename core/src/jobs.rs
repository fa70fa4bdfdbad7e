//! The life of a job: the only code that changes a job's state.
//!
//! ```text
//!         submit                claim                    finish
//!  (none) ─────▶ queued ───────────────▶ running ──────────────▶ done
//!                   │  cancel      │  lost ▲ │  │ fail / 3rd loss
//!                   ▼              └───────┘ │  ▼
//!               cancelled ◀──────── cancel ──┘  failed
//! ```
//!
//! Postgres is the truth. Each arrow is one transaction that names the state it starts from, so running it twice
//! changes nothing. Credits move with the arrows: `submit` holds the price, `finish` debits it, and every other
//! end releases the hold. Leases use the database's clock, the only one that all nodes share.
//!
//! | arrow | file |
//! |---|---|
//! | submit, and the job's turn | `submit.rs` |
//! | claim, fair queueing, suspects | `claim.rs`, `suspect_right.rs` |
//! | renewing leases, handing back, lost workers | `lease.rs` |
//! | telling outages from lost workers | `reachability.rs` |
//! | retries and their backoff | `retry.rs` |
//! | finish and debit | `finish.rs`, `credits/debit.rs` |
//! | fail, cancel | `end.rs`, `operator.rs`, `unserved.rs` |

mod claim;
mod depth;
mod end;
mod estimate;
mod finish;
mod lease;
mod operator;
mod reachability;
mod retention;
mod retry;
mod submit;
mod suspect_right;
mod typical;
mod unserved;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use crate::{ImageId, JobId, UserId};
use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};

pub use claim::{
    Claimed, Isolation, MAX_ATTEMPTS, PATIENCE, Suspects, UNPAID_PATIENCE, claim, queued_by_class,
    suspects,
};
pub use depth::{QueueDepth, queue_depths};
pub(crate) use end::{CancelScope, cancel_some};
pub use end::{cancel, fail};
pub use estimate::{Estimate, WaitsFor, estimate, estimates};
pub use finish::{Finish, finish};
pub use lease::{Sweep, hand_back, release_unknown, renew, sweep};
pub use operator::{
    ENDED_BY_OPERATOR, FailedFilter, NoLongerNeeded, RedriveError, fail_by_operator, failed,
    no_longer_needed, recent, redrive,
};
pub use reachability::{keep_recording_reachable, record_reachable};
pub(crate) use retention::erase_some;
pub use retention::{clear_old_keys, delete_old, delete_old_masks, delete_prompts};
pub use retry::{Cause, MAX_OUTAGES, Retry, retry, retry_delay};
pub use submit::{
    FixParameters, NewJob, QueueLimit, SubmitError, Submitted, check_visitor_queue, repeated,
    submit, submit_as,
};
pub use suspect_right::with_suspect_right;
pub use typical::{TypicalTime, typical_times};
pub use unserved::{UNSERVED_AFTER, UNSERVED_CODE, end_unserved};

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::Type)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum JobState {
    /// Waiting for a worker; its price is held.
    Queued,
    /// Leased to a worker; its price is held.
    Running,
    /// Its result is recorded and its price debited.
    Done,
    /// Ended without a result, free of charge; [`Job::failure`] says why.
    Failed,
    /// Canceled, free of charge.
    Cancelled,
}

impl JobState {
    /// Returns its name in the database and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns true once the job can no longer change.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Done | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Failure {
    /// For programs, for example `image_unreadable`.
    pub code: String,
    /// For people: what happened, and what they can do about it.
    pub detail: String,
}

impl Failure {
    /// Returns true if the job failed because of its input: another attempt would fail, too.
    pub fn is_of_input(&self) -> bool {
        self.code.starts_with("image_")
            || self.code.starts_with("mask_")
            || self.code == "result_unsafe"
    }

    /// Returns the failure of a job whose worker vanished in every attempt.
    pub(crate) fn crashed() -> Self {
        Self {
            code: "worker_crashed".into(),
            detail: "We couldn't process this picture: every attempt was interrupted. You have not been charged.".into(),
        }
    }
}

/// One run of a tool.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: JobId,
    /// The paying user; `None` for visitors.
    pub owner: Option<UserId>,
    /// The uploaded image; `None` once it has been deleted.
    pub image: Option<ImageId>,
    pub tool: Tool,
    pub prompt: Option<String>,
    /// The key of the request that submitted it; `None` without one, and once it was canceled.
    pub idempotency_key: Option<String>,
    pub tier: Tier,
    /// The price in credits, debited when it is done.
    pub cost: i32,
    pub state: JobState,
    /// The number of attempts so far.
    pub attempt: i32,
    pub failure: Option<Failure>,
    pub created_at: DateTime<Utc>,
    /// The start of the first attempt.
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl Job {
    /// Returns its class, which decides its stream in Redis and the model that serves it.
    pub const fn class(&self) -> JobClass {
        JobClass { tier: self.tier, tool: self.tool.name() }
    }
}

struct JobRow {
    id: JobId,
    owner: Option<UserId>,
    image: Option<ImageId>,
    tool: ToolName,
    factor: Option<i16>,
    mode: Option<FixMode>,
    prompt: Option<String>,
    idempotency_key: Option<String>,
    tier: Tier,
    cost: i32,
    state: JobState,
    attempt: i32,
    failure_code: Option<String>,
    failure_detail: Option<String>,
    created_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
}

impl TryFrom<JobRow> for Job {
    type Error = sqlx::Error;

    fn try_from(row: JobRow) -> Result<Self, sqlx::Error> {
        let tool = tool_from_columns(row.id, row.tool, row.factor, row.mode)?;
        Ok(Self {
            id: row.id,
            owner: row.owner,
            image: row.image,
            tool,
            prompt: row.prompt,
            idempotency_key: row.idempotency_key,
            tier: row.tier,
            cost: row.cost,
            state: row.state,
            attempt: row.attempt,
            failure: row
                .failure_code
                .map(|code| Failure { code, detail: row.failure_detail.unwrap_or_default() }),
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
        })
    }
}

fn tool_from_columns(
    job: JobId,
    name: ToolName,
    factor: Option<i16>,
    mode: Option<FixMode>,
) -> sqlx::Result<Tool> {
    Tool::from_columns(name, factor, mode).ok_or_else(|| {
        sqlx::Error::Decode(format!("job {job} uses a tool that this version does not know").into())
    })
}

/// Returns the job, whoever owns it.
pub async fn get(pool: &PgPool, id: JobId) -> sqlx::Result<Option<Job>> {
    Ok(load(pool, &[id]).await?.pop())
}

/// Returns the job that used up the free run of `tool` on `image`.
pub async fn free_run(pool: &PgPool, image: ImageId, tool: ToolName) -> sqlx::Result<Option<Job>> {
    let id = sqlx::query_scalar!(
        r#"select job_id as "id: JobId" from free_runs where image_id = $1 and tool = $2"#,
        image.uuid(),
        tool.as_str(),
    )
    .fetch_optional(pool)
    .await?;
    match id {
        Some(id) => get(pool, id).await,
        None => Ok(None),
    }
}

/// Returns the mask of an active or failed job: a PNG with one bit per pixel, white where the tool works.
pub async fn mask(pool: &PgPool, job: JobId) -> sqlx::Result<Option<Vec<u8>>> {
    sqlx::query_scalar!("select png from masks where job_id = $1", job.uuid())
        .fetch_optional(pool)
        .await
}

/// Returns the active jobs of `owner`, on one image or on all, the oldest first.
pub async fn active(
    pool: &PgPool,
    owner: UserId,
    image: Option<ImageId>,
) -> sqlx::Result<Vec<Job>> {
    let ids = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs
           where owner_id = $1 and state in ('queued', 'running') and ($2::uuid is null or image_id = $2)"#,
        owner.uuid(),
        image.map(ImageId::uuid),
    )
    .fetch_all(pool)
    .await?;
    load(pool, &ids).await
}

/// Returns the active jobs of `owner` and those submitted in the last minute, the oldest first. A caller that looks at
/// least once a minute misses no job, however quickly it ends.
pub async fn active_or_recent(pool: &PgPool, owner: UserId) -> sqlx::Result<Vec<Job>> {
    // Ids begin with the time of their creation in milliseconds, so the index of an owner's jobs finds the recent ones.
    // An API process sets this time, and its clock may be minutes behind the database's clock.
    let ids = sqlx::query_scalar!(
        r#"select id as "id!: JobId" from jobs where owner_id = $1 and state in ('queued', 'running')
           union
           select id from jobs
           where owner_id = $1 and created_at > now() - interval '1 minute'
             and id > (lpad(to_hex((extract(epoch from now() - interval '10 minutes') * 1000)::bigint), 12, '0')
                       || repeat('0', 20))::uuid"#,
        owner.uuid(),
    )
    .fetch_all(pool)
    .await?;
    load(pool, &ids).await
}

/// Returns the jobs with these ids, the oldest first.
pub async fn load(executor: impl sqlx::PgExecutor<'_>, ids: &[JobId]) -> sqlx::Result<Vec<Job>> {
    let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
    sqlx::query_as!(
        JobRow,
        r#"select id as "id: JobId", owner_id as "owner: UserId", image_id as "image: ImageId",
                  tool as "tool: ToolName", factor, mode as "mode: FixMode", prompt, tier as "tier: Tier", cost, state as "state: JobState",
                  attempt, failure_code, failure_detail, created_at, started_at, finished_at, idempotency_key
           from jobs where id = any($1) order by created_at, id"#,
        &ids,
    )
    .fetch_all(executor)
    .await?
    .into_iter()
    .map(Job::try_from)
    .collect()
}
