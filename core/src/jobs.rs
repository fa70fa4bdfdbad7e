//! A job's life: the only code that changes a job's state.
//!
//! ```text
//!         submit                claim                    finish
//!  (none) ─────▶ queued ───────────────▶ running ──────────────▶ done
//!                   │  cancel      │  lost ▲ │  │ fail / 3rd loss
//!                   ▼              └───────┘ │  ▼
//!               cancelled ◀──────── cancel ──┘  failed
//! ```
//!
//! Postgres is the truth. Each arrow is one transaction that says from which state it starts and checks
//! that it changed exactly one row, so running any of them twice changes nothing. Money moves with the
//! arrow it belongs to: the hold with `submit`, the debit with `finish`, the release with all others.
//! Leases are measured with the database's clock, the only one that all nodes share.

mod by_hand;
mod depth;
mod end;
mod finish;
mod forget;
mod lease;
mod submit;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use crate::{ImageId, JobId, UserId};
use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};

pub use by_hand::{RedriveError, fail_by_hand, failed, recent, redrive};
pub use depth::{QueueDepth, queue_depths};
pub(crate) use end::{AllOf, cancel_all};
pub use end::{cancel, fail};
pub use finish::{Finish, finish};
pub(crate) use forget::forget_all_of;
pub use forget::{forget_keys, forget_old};
pub use lease::{
    Claimed, Retry, Sweep, Turn, claim, hand_back, queued_by_class, renew, retry, suspects_waiting,
    sweep,
};
pub use submit::{Fix, MostWaiting, NewJob, SubmitError, Submitted, submit, submit_as};

/// After so many starts a job that never ended is given up.
pub const MAX_ATTEMPTS: i32 = 3;

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum JobState {
    /// Waiting for a worker; its cost is held.
    Queued,
    /// A worker holds its lease; its cost is held.
    Running,
    /// Its result is recorded and its cost debited.
    Done,
    /// It ended without a result and cost nothing.
    Failed,
    /// It was called off and cost nothing.
    Cancelled,
}

impl JobState {
    /// Its name in the database and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the job will change no more.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Done | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// For programs, e.g. `image_unreadable`.
    pub code: String,
    /// For people: what happened and what they can do.
    pub detail: String,
}

impl Failure {
    /// The failure of a job whose worker vanished each time it was started.
    pub(crate) fn crashed() -> Self {
        Self {
            code: "worker_crashed".into(),
            detail: "This picture could not be processed: each attempt broke off. You have not been charged.".into(),
        }
    }
}

/// One run of a tool.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Who pays; nobody for a visitor's.
    pub owner: Option<UserId>,
    /// The picture; gone when that has been deleted.
    pub image: Option<ImageId>,
    /// What is to be done.
    pub tool: Tool,
    /// The words of a Magic Fix.
    pub prompt: Option<String>,
    /// For whom.
    pub tier: Tier,
    /// What it costs when it is done, in credits.
    pub cost: i32,
    /// Where it is.
    pub state: JobState,
    /// How often it was started.
    pub attempt: i32,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// When it was submitted.
    pub created_at: DateTime<Utc>,
    /// When it was first started.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

impl Job {
    /// The stream it is announced on and the model that serves it.
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
        let tool = Tool::from_columns(row.tool, row.factor, row.mode).ok_or_else(|| {
            sqlx::Error::Decode(format!("job {} is of no tool this version knows", row.id).into())
        })?;
        Ok(Self {
            id: row.id,
            owner: row.owner,
            image: row.image,
            tool,
            prompt: row.prompt,
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

/// The job, whoever it belongs to.
pub async fn get(pool: &PgPool, id: JobId) -> sqlx::Result<Option<Job>> {
    Ok(load(pool, &[id]).await?.pop())
}

/// The mask of a job that has not ended: a PNG of one bit a pixel, white where to work.
pub async fn mask(pool: &PgPool, job: JobId) -> sqlx::Result<Option<Vec<u8>>> {
    sqlx::query_scalar!("select png from masks where job_id = $1", job.uuid())
        .fetch_optional(pool)
        .await
}

/// The jobs of `owner` that have not ended, on one picture or on all, the oldest first.
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

/// The jobs with these ids, the oldest first.
pub(crate) async fn load(
    executor: impl sqlx::PgExecutor<'_>,
    ids: &[JobId],
) -> sqlx::Result<Vec<Job>> {
    let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
    sqlx::query_as!(
        JobRow,
        r#"select id as "id: JobId", owner_id as "owner: UserId", image_id as "image: ImageId",
                  tool as "tool: ToolName", factor, mode as "mode: FixMode", prompt, tier as "tier: Tier", cost, state as "state: JobState",
                  attempt, failure_code, failure_detail, created_at, started_at, finished_at
           from jobs where id = any($1) order by created_at, id"#,
        &ids,
    )
    .fetch_all(executor)
    .await?
    .into_iter()
    .map(Job::try_from)
    .collect()
}

/// How long a job that has not ended will take yet.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    /// How many jobs will start before it; `None` once it runs.
    pub position: Option<i64>,
    /// Seconds until it ends, from how long the last ones took; `None` when nothing has been measured
    /// or no worker is there.
    pub eta_secs: Option<i64>,
}

/// Looks how long `job` will take yet.
pub async fn forecast(pool: &PgPool, job: &Job) -> sqlx::Result<Forecast> {
    let seen = sqlx::query!(
        r#"select
             (select count(*) from jobs j where j.state = 'queued' and (
                 array_position(array['paid', 'free', 'visitor'], j.tier)
                   < array_position(array['paid', 'free', 'visitor'], $1::text)
                 or j.tier = $1 and case j.tool
                     when $4 then (j.turn, j.created_at, j.id)
                       < ((select turn from jobs where id = $3), $2::timestamptz, $3::uuid)
                     else j.created_at < $2 end)
             ) as "ahead!",
             (select count(*) from jobs where state = 'running') as "running!",
             (select coalesce(sum(slots), 0) from workers where seen_at > now() - interval '20 seconds')
               as "slots!",
             (select avg(extract(epoch from finished_at - started_at))::float8 from (
                select finished_at, started_at from jobs
                where tool = $4 and tier = $1 and state = 'done' order by finished_at desc limit 20
             ) last) as mean_secs,
             extract(epoch from now() - $5::timestamptz)::float8 as elapsed_secs"#,
        job.tier.as_str(),
        job.created_at,
        job.id.uuid(),
        job.tool.name().as_str(),
        job.started_at,
    )
    .fetch_one(pool)
    .await?;
    let position = (job.state == JobState::Queued).then_some(seen.ahead);
    let slots = seen.slots as f64;
    let eta_secs = seen.mean_secs.filter(|_| slots >= 1.0).map(|mean| {
        let left = match (position, seen.elapsed_secs) {
            (None, Some(elapsed)) => (mean - elapsed).max(1.0),
            // Those ahead and those running share the slots; the job itself takes one run more.
            (ahead, _) => {
                let before = ahead.unwrap_or(0) + (seen.running - slots as i64 + 1).max(0);
                mean * (before as f64 / slots + 1.0)
            }
        };
        left.ceil() as i64
    });
    Ok(Forecast { position, eta_secs })
}
