//! Submitting a job: one transaction that holds the price, assigns the turn and writes the row.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use super::{Job, JobState, load};
use crate::{ImageId, JobId, UserId, credits, db, telemetry, users};
use retouch_catalog::{FixMode, Tier, Tool};

#[derive(Clone, Debug)]
pub struct NewJob {
    /// The paying user; `None` for visitors.
    pub owner: Option<UserId>,
    /// The uploaded image. The caller has checked that the owner may use it.
    pub image: ImageId,
    pub tool: Tool,
    /// The prompt and mask of a Magic Fix; `None` for other tools.
    pub fix: Option<FixParameters>,
    /// The tier, which decides the price.
    pub tier: Tier,
    /// Makes a repeat return the first job. The client chooses it, or [`submit_as`] says how long it counts.
    pub idempotency_key: Option<String>,
    /// When to refuse the job because too many are queued; `None` for no limit.
    pub queue_limit: Option<QueueLimit>,
}

/// How many jobs of a tier may be queued before another is refused.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimit {
    /// Over all owners. Concurrent submissions of users do not see each other, so a few more may get in.
    pub total: i64,
    /// Per user or visitor, enforced exactly; `None` for no such limit. As the queue fills, this shrinks to a quarter
    /// of the free places, but not below one, so that a few owners cannot fill the queue.
    pub per_owner: Option<i64>,
}

impl QueueLimit {
    /// Returns why another job is refused while `total` jobs of the tier are queued, `of_owner` of them of its owner.
    /// The insert statement has the same rule.
    fn refusal(self, tier: Tier, total: i64, of_owner: i64) -> Option<SubmitError> {
        let share = ((self.total - total) / 4).max(1);
        if total >= self.total {
            Some(SubmitError::QueueFull(tier))
        } else if self.per_owner.is_some_and(|most| of_owner >= most.min(share)) {
            Some(SubmitError::OwnerQueueFull)
        } else {
            None
        }
    }
}

/// The parameters of a Magic Fix. Its mode, which follows from the prompt, is part of [`Tool`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixParameters {
    /// 1 to 500 characters.
    pub prompt: String,
    /// A PNG with one bit per pixel, white where the tool works.
    pub mask: Bytes,
    pub mask_sha256: Vec<u8>,
    /// Whether no pixel outside the mask may change.
    pub is_mask_exact: bool,
}

#[derive(Clone, Debug)]
pub enum Submitted {
    /// A new job is queued; the caller rings the doorbell.
    New(Job),
    /// The request repeats an earlier one; this is its job.
    Joined(Job),
}

impl Submitted {
    /// Returns the job, new or joined.
    pub fn into_job(self) -> Job {
        match self {
            Self::New(job) | Self::Joined(job) => job,
        }
    }
}

/// Why a new job was refused. Nothing is held in any of these cases, except perhaps the last.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The balance less the holds is below the price.
    #[error("Not enough credits")]
    NotEnoughCredits,
    /// The image's free run with this tool is used up.
    #[error("Free Exists")]
    FreeExists,
    /// The key belongs to an earlier, different request.
    #[error("This Idempotency-Key was used for a different request")]
    IdempotencyKeyReused,
    /// Too many jobs of this tier are queued.
    #[error("Too many {}runs are waiting. Try again in a minute.", if *.0 == Tier::Paid { "" } else { "free " })]
    QueueFull(Tier),
    /// Too many jobs of this user or visitor are queued.
    #[error("Too many of your runs are waiting. Try again when some have finished.")]
    OwnerQueueFull,
    /// The image or its owner's account was deleted in the meantime.
    #[error("Image not found")]
    NoSuchImage,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The answer to the commit was lost: the job may be queued and its price held, or not.
    #[error("it is unknown whether the job was submitted: {0}")]
    OutcomeUnknown(#[source] sqlx::Error),
}

/// Submits a job and holds its price, or joins the job of an identical earlier request.
///
/// A repeat is recognized by its idempotency key; a request without a key joins an identical active job. The
/// lock on the user's row serializes the submissions of one user, so two requests cannot spend the same credit
/// or both count as the first.
pub async fn submit(pool: &PgPool, new: &NewJob) -> Result<Submitted, SubmitError> {
    submit_as(pool, JobId::new(), new, None).await
}

/// Like [`submit`], with the job's id chosen by the caller, who can subscribe to its events beforehand and so
/// misses none.
///
/// With `repeat_window`, the caller derived the idempotency key from the content of the request. Only a job that is
/// active, or that made a result within this time, then counts as the first; a failed or canceled one does not.
///
/// Waits for the database as [`db::within`] does, but separately for the commit: only a commit without an answer leaves
/// open whether there is a job.
pub async fn submit_as(
    pool: &PgPool,
    id: JobId,
    new: &NewJob,
    repeat_window: Option<Duration>,
) -> Result<Submitted, SubmitError> {
    let mut tx = db::begin(pool).await?;
    let submitted = db::within(submit_in(&mut tx, id, new, repeat_window)).await?;
    // If no job is inserted, the rollback also undoes the hold.
    if matches!(submitted, Submitted::New(_)) {
        db::within(tx.commit()).await.map_err(SubmitError::OutcomeUnknown)?;
    }
    Ok(submitted)
}

async fn submit_in(
    conn: &mut PgConnection,
    id: JobId,
    new: &NewJob,
    repeat_window: Option<Duration>,
) -> Result<Submitted, SubmitError> {
    let cost = match (new.tier, new.owner) {
        (Tier::Paid, Some(_)) => credits::price(new.tool),
        _ => 0,
    };
    let is_held = if let Some(owner) = new.owner {
        let held = credits::lock_and_hold(conn, owner, cost).await?;
        // The images of a deleted account are being erased.
        held.ok_or(SubmitError::NoSuchImage)?
    } else {
        lock_visitors(conn).await?;
        true
    };
    if let (Some(window), Some(owner), Some(key)) = (repeat_window, new.owner, &new.idempotency_key)
    {
        release_key(conn, owner, key, window).await?;
    }
    let insertion = insert(conn, id, new, cost, is_held).await?;
    if let Some(earlier) = insertion.earlier {
        let is_derived = repeat_window.is_some();
        return join(conn, earlier, new, is_derived).await.map(Submitted::Joined);
    }
    let Some(created_at) = insertion.created_at else {
        return Err(refusal(new, &insertion));
    };
    if let Some(fix) = &new.fix {
        let mask = fix.mask.as_ref();
        sqlx::query!("insert into masks (job_id, png) values ($1, $2)", id.uuid(), mask)
            .execute(&mut *conn)
            .await?;
    }
    if new.tier != Tier::Paid {
        let first = sqlx::query!(
            "insert into free_runs (image_id, tool, job_id) values ($1, $2, $3)
             on conflict on constraint free_run_once do nothing",
            new.image.uuid(),
            new.tool.name().as_str(),
            id.uuid(),
        )
        .execute(conn)
        .await?;
        if first.rows_affected() == 0 {
            return Err(SubmitError::FreeExists);
        }
    }
    Ok(Submitted::New(Job {
        id,
        owner: new.owner,
        image: Some(new.image),
        tool: new.tool,
        prompt: new.fix.as_ref().map(|fix| fix.prompt.clone()),
        idempotency_key: new.idempotency_key.clone(),
        tier: new.tier,
        cost,
        state: JobState::Queued,
        attempt: 0,
        failure: None,
        created_at,
        started_at: None,
        finished_at: None,
    }))
}

/// Serializes the submissions of visitors, whose queue is short, so that its limits hold exactly.
async fn lock_visitors(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended('visitors'' queue', 0))")
        .execute(conn)
        .await
        .map(drop)
}

/// Returns the job of `owner` that counts as the first with a derived key; see [`submit_as`].
pub async fn repeated(
    pool: &PgPool,
    owner: UserId,
    key: &str,
    repeat_window: Duration,
) -> sqlx::Result<Option<Job>> {
    let mut tx = db::begin(pool).await?;
    users::lock(&mut tx, owner).await?;
    release_key(&mut tx, owner, key, repeat_window).await?;
    let first = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs where owner_id = $1 and idempotency_key = $2"#,
        owner.uuid(),
        key,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let first = match first {
        Some(id) => load(&mut *tx, &[id]).await?.pop(),
        None => None,
    };
    tx.commit().await?;
    Ok(first)
}

/// Clears the idempotency key of a job that no longer counts as the first. The caller has locked the owner's row.
async fn release_key(
    conn: &mut PgConnection,
    owner: UserId,
    key: &str,
    window: Duration,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update jobs set idempotency_key = null
         where owner_id = $1 and idempotency_key = $2
           and (state in ('failed', 'cancelled') or finished_at < now() - $3::interval
                or result_deleted_at is not null)",
        owner.uuid(),
        key,
        db::interval(window),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Returns why a visitor's job would be refused now, before its picture is prepared. [`submit`] decides.
pub async fn check_visitor_queue(
    pool: &PgPool,
    visitor: &str,
    limit: QueueLimit,
) -> Result<(), SubmitError> {
    let queued = sqlx::query!(
        r#"select count(*) as "total!", count(*) filter (where i.visitor = $1) as "of_visitor!"
           from jobs j left join images i on i.id = j.image_id
           where j.state = 'queued' and j.tier = $2"#,
        visitor,
        Tier::Visitor.as_str(),
    )
    .fetch_one(pool)
    .await?;
    limit.refusal(Tier::Visitor, queued.total, queued.of_visitor).map_or(Ok(()), Err)
}

/// The outcome of the insert statement.
struct Insertion {
    /// The earlier job that this request repeats.
    earlier: Option<JobId>,
    image_exists: bool,
    /// Queued jobs of the tier and its owner or visitor; 0 without a limit.
    queued_of_owner: i64,
    /// Queued jobs of the tier, counted up to the limit; 0 without a limit.
    queued_total: i64,
    /// `None` if the job was not inserted.
    created_at: Option<DateTime<Utc>>,
}

/// Inserts the job unless something prevents it. One statement, because every round trip delays the start of
/// the run. It sees everything committed before the owner's row was locked.
async fn insert(
    conn: &mut PgConnection,
    id: JobId,
    new: &NewJob,
    cost: i32,
    is_held: bool,
) -> sqlx::Result<Insertion> {
    let limit = new.queue_limit;
    sqlx::query_as!(
        Insertion,
        // The shared lock on the image blocks its deletion but not other submissions. `limit $14` stops counting
        // the queue at the limit, however long it is.
        r#"with earlier as (
               select id from jobs where owner_id = $2 and idempotency_key = $8
               union all
               (select id from jobs
                where $8::text is null and owner_id = $2 and image_id = $3 and tool = $4 and tier = $6
                  and factor is not distinct from $5 and state in ('queued', 'running')
                  and prompt is not distinct from $10 and mask_sha256 is not distinct from $11
                  and exact_mask = $16
                order by created_at limit 1)
           ), picture as (
               select id from images where id = $3 for key share
           ), queued as (
               select case when $13::bigint is null then 0
                           when $2::uuid is null then (
                          select count(*) from jobs j join images i on i.id = j.image_id
                          where j.state = 'queued' and j.tier = $6
                            and i.visitor = (select visitor from images where id = $3)
                      ) else (
                          select count(*) from jobs where owner_id = $2 and state = 'queued' and tier = $6
                      ) end as of_owner,
                      case when $14::bigint is null then 0 else (
                          select count(*) from (
                              select from jobs where state = 'queued' and tier = $6 limit $14
                          ) first
                      ) end as total
           ), served as (
               -- The greatest turn of the last few: a retried job ends long after its turn.
               select (select max(turn) from jobs where state = 'running' and tier = $6 and tool = $4) as now,
                      (select max(turn) from (
                           select turn from jobs where state = 'done' and tier = $6 and tool = $4
                           order by finished_at desc limit 8
                       ) ended) as before,
                      (select max(turn) from jobs
                       where owner_id = $2 and state in ('queued', 'running') and tier = $6 and tool = $4
                      ) as own
           ), job as (
               insert into jobs (id, owner_id, image_id, tool, factor, tier, cost, idempotency_key, mode,
                                 prompt, mask_sha256, exact_mask, traceparent, turn, created_at)
               select $1, $2, picture.id, $4, $5, $6, $7, $8, $9, $10, $11, $16, $12,
                      coalesce(greatest(served.now, served.before, served.own), 0) + 1,
                      -- Not the start of the transaction, which waited for the owner's lock: `take_owed` compares it.
                      clock_timestamp()
               from picture, queued, served
               where $15 and not exists (select from earlier)
                 and ($14::bigint is null or total < $14)
                 -- A share of the free places, as in `QueueLimit::refusal`.
                 and ($13::bigint is null or of_owner < least($13, greatest(($14 - total) / 4, 1)))
               returning created_at
           )
           select (select id from earlier) as "earlier: JobId",
                  exists (select from picture) as "image_exists!",
                  of_owner as "queued_of_owner!", total as "queued_total!",
                  (select created_at from job) as created_at
           from queued"#,
        id.uuid(),
        new.owner.map(UserId::uuid),
        new.image.uuid(),
        new.tool.name().as_str(),
        new.tool.factor_column(),
        new.tier.as_str(),
        cost,
        new.idempotency_key,
        new.tool.mode().map(FixMode::as_str),
        new.fix.as_ref().map(|fix| fix.prompt.as_str()),
        new.fix.as_ref().map(|fix| fix.mask_sha256.as_slice()),
        telemetry::current_trace(),
        limit.and_then(|limit| limit.per_owner),
        limit.map(|limit| limit.total),
        is_held,
        is_mask_exact(new.fix.as_ref()),
    )
    .fetch_one(conn)
    .await
}

fn refusal(new: &NewJob, insertion: &Insertion) -> SubmitError {
    if !insertion.image_exists {
        return SubmitError::NoSuchImage;
    }
    let limit = new.queue_limit;
    limit
        .and_then(|limit| {
            limit.refusal(new.tier, insertion.queued_total, insertion.queued_of_owner)
        })
        .unwrap_or(SubmitError::NotEnoughCredits)
}

/// Returns the job with this id if `new` is the same request, judging by what the job still stores. With a derived key the
/// masks may differ: a worker made both from the same clicks.
async fn join(
    conn: &mut PgConnection,
    id: JobId,
    new: &NewJob,
    is_derived: bool,
) -> Result<Job, SubmitError> {
    let job = load(&mut *conn, &[id]).await?.pop().ok_or(sqlx::Error::RowNotFound)?;
    let fix = new.fix.as_ref();
    let same = sqlx::query_scalar!(
        // A program that sends a picture twice creates two images with the same bytes. If the job's image has been
        // deleted, any upload of a program counts. An empty checksum stands for a prompt and a mask that were deleted.
        r#"select (j.image_id is not distinct from $2 or exists (
                      select from images b left join images a on a.id = j.image_id
                      where b.id = $2 and b.expires_at is not null
                        and (a.id is null or a.expires_at is not null
                                             and a.owner_id = b.owner_id and a.content_sha256 = b.content_sha256)))
                  and (coalesce(j.mask_sha256 = '', false)
                       or j.prompt is not distinct from $3
                          and ($4 or j.mask_sha256 is not distinct from $5 and j.exact_mask = $6)) as "same!"
           from jobs j where j.id = $1"#,
        id.uuid(),
        new.image.uuid(),
        fix.map(|fix| fix.prompt.as_str()),
        is_derived,
        fix.map(|fix| fix.mask_sha256.as_slice()),
        is_mask_exact(fix),
    );
    let same = same.fetch_one(conn).await? && job.tool == new.tool && job.tier == new.tier;
    if same { Ok(job) } else { Err(SubmitError::IdempotencyKeyReused) }
}

fn is_mask_exact(fix: Option<&FixParameters>) -> bool {
    fix.is_some_and(|fix| fix.is_mask_exact)
}
