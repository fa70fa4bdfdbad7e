//! Submitting: one transaction that holds the price and writes the row.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use super::{Job, JobState, load};
use crate::{ImageId, JobId, UserId, credits, db, telemetry};
use retouch_catalog::{FixMode, Tier, Tool};

/// What somebody wants done.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Who asks; nobody for a visitor.
    pub owner: Option<UserId>,
    /// The picture. The caller has checked that it is theirs.
    pub image: ImageId,
    /// What is to be done.
    pub tool: Tool,
    /// The words and the mask of a Magic Fix; nothing for other tools.
    pub fix: Option<Fix>,
    /// For whom: decides the price.
    pub tier: Tier,
    /// A key of the caller's choice that makes a repeat return the first job.
    pub idempotency_key: Option<String>,
    /// How many jobs of this tier may wait before another is refused; `None` for no limit.
    pub most_waiting: Option<MostWaiting>,
}

/// How many jobs of a tier may wait before another is refused.
#[derive(Clone, Copy, Debug)]
pub struct MostWaiting {
    /// Of everybody. Submissions at the same moment do not see each other, so that a few more may get in.
    pub in_all: i64,
    /// Of whoever submits; `None` for no limit of their own. This one is exact.
    pub of_owner: Option<i64>,
}

/// What a Magic Fix works with, besides the picture. The mode that the words mean is the tool's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The words, 1 to 500 characters.
    pub prompt: String,
    /// A PNG of one bit a pixel, white where to work.
    pub mask: Bytes,
    /// The mask's SHA-256.
    pub mask_sha256: Vec<u8>,
}

/// What became of a submission.
#[derive(Clone, Debug)]
pub enum Submitted {
    /// A new job waits; ring for it.
    New(Job),
    /// The same thing had been asked for before: this is that job.
    Joined(Job),
}

impl Submitted {
    /// The job, new or joined.
    pub fn into_job(self) -> Job {
        match self {
            Self::New(job) | Self::Joined(job) => job,
        }
    }
}

/// Why nothing was submitted. Nothing is held in any of these cases.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The user has less than the price left.
    #[error("Not enough credits")]
    NotEnoughCredits,
    /// The picture has had its free run with this tool.
    #[error("Free Exists")]
    FreeExists,
    /// The key was used before, for something else.
    #[error("This Idempotency-Key was used for a different request")]
    IdempotencyKeyReused,
    /// Too many jobs of this tier are waiting already.
    #[error("Too many {}runs are waiting; try again in a minute", if *.0 == Tier::Paid { "" } else { "free " })]
    QueueFull(Tier),
    /// Too many jobs of this user are waiting already.
    #[error("Too many of your runs are waiting; try again when some of them have ended")]
    OwnersQueueFull,
    /// The picture was deleted meanwhile.
    #[error("Image not found")]
    NoSuchImage,
    /// The database did not answer or refused.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Submits a job, or joins the one that the same request made before. Its turn (`migrations/0014_turns.sql`) is
/// settled here.
///
/// A repeat is recognised by its idempotency key; without one, an identical run that is still active is
/// joined. The holds of one user are serialised by the lock on their row, so that two requests can
/// neither spend the same credit nor both believe to be the first.
pub async fn submit(pool: &PgPool, new: &NewJob) -> Result<Submitted, SubmitError> {
    submit_as(pool, JobId::new(), new).await
}

/// The same, with an id of the caller's choice: who listens for news of that id before it can be known to
/// anybody misses none.
pub async fn submit_as(pool: &PgPool, id: JobId, new: &NewJob) -> Result<Submitted, SubmitError> {
    let cost = match (new.tier, new.owner) {
        (Tier::Paid, Some(_)) => credits::price(new.tool),
        _ => 0,
    };
    let mut tx = db::begin(pool).await?;
    // The lock, and the hold with it. When nothing is inserted, the hold goes with the transaction.
    let is_held = match new.owner {
        Some(owner) => credits::lock_and_hold(&mut tx, owner, cost).await?,
        None => true,
    };
    let decided = insert(&mut tx, id, new, cost, is_held).await?;
    if let Some(earlier) = decided.earlier {
        return join(&mut tx, earlier, new).await.map(Submitted::Joined);
    }
    let Some(created_at) = decided.created_at else {
        return Err(why_not(new, &decided));
    };
    if let Some(fix) = &new.fix {
        let mask = fix.mask.as_ref();
        sqlx::query!("insert into masks (job_id, png) values ($1, $2)", id.uuid(), mask)
            .execute(&mut *tx)
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
        .execute(&mut *tx)
        .await?;
        if first.rows_affected() == 0 {
            return Err(SubmitError::FreeExists);
        }
    }
    tx.commit().await?;
    Ok(Submitted::New(Job {
        id,
        owner: new.owner,
        image: Some(new.image),
        tool: new.tool,
        prompt: new.fix.as_ref().map(|fix| fix.prompt.clone()),
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

/// What was found when the job was to be inserted.
struct Decided {
    /// The job that this one repeats.
    earlier: Option<JobId>,
    is_image_there: bool,
    waiting_of_owner: i64,
    waiting_in_all: i64,
    /// Set when the job was inserted.
    created_at: Option<DateTime<Utc>>,
}

/// Inserts the job unless something speaks against it, in one statement: on the way from a click to a running
/// model, each answer that is waited for is felt. It sees whatever was committed before the owner's row was
/// locked.
async fn insert(
    conn: &mut PgConnection,
    id: JobId,
    new: &NewJob,
    cost: i32,
    is_held: bool,
) -> sqlx::Result<Decided> {
    let most = new.most_waiting;
    sqlx::query_as!(
        Decided,
        // The picture is locked shared: a delete of it waits, other submissions do not. The length of a queue
        // is counted no further than it has to be: nobody waits for the length of a long one.
        r#"with earlier as (
               select id from jobs where owner_id = $2 and idempotency_key = $8
               union all
               (select id from jobs
                where $8::text is null and owner_id = $2 and image_id = $3 and tool = $4 and tier = $6
                  and factor is not distinct from $5 and state in ('queued', 'running')
                  and prompt is not distinct from $10 and mask_sha256 is not distinct from $11
                order by created_at limit 1)
           ), picture as (
               select id from images where id = $3 for key share
           ), waiting as (
               select case when $13::bigint is null then 0 else (
                          select count(*) from jobs where owner_id = $2 and state = 'queued' and tier = $6
                      ) end as of_owner,
                      case when $14::bigint is null then 0 else (
                          select count(*) from (
                              select from jobs where state = 'queued' and tier = $6 limit $14
                          ) first
                      ) end as in_all
           ), served as (
               -- The greatest of the last few: one that was repeated ends long after its turn.
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
                                 prompt, mask_sha256, traceparent, turn)
               select $1, $2, picture.id, $4, $5, $6, $7, $8, $9, $10, $11, $12,
                      coalesce(greatest(served.now, served.before, served.own), 0) + 1
               from picture, waiting, served
               where $15 and not exists (select from earlier)
                 and of_owner < coalesce($13, 1) and in_all < coalesce($14, 1)
               returning created_at
           )
           select (select id from earlier) as "earlier: JobId",
                  exists (select from picture) as "is_image_there!",
                  of_owner as "waiting_of_owner!", in_all as "waiting_in_all!",
                  (select created_at from job) as created_at
           from waiting"#,
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
        most.filter(|_| new.owner.is_some()).and_then(|most| most.of_owner),
        most.map(|most| most.in_all),
        is_held,
    )
    .fetch_one(conn)
    .await
}

/// What spoke against a job that repeats none.
fn why_not(new: &NewJob, decided: &Decided) -> SubmitError {
    let most = new.most_waiting;
    let is_full = |most: Option<i64>, waiting| most.is_some_and(|most| waiting >= most);
    if !decided.is_image_there {
        SubmitError::NoSuchImage
    } else if is_full(most.and_then(|most| most.of_owner), decided.waiting_of_owner) {
        SubmitError::OwnersQueueFull
    } else if is_full(most.map(|most| most.in_all), decided.waiting_in_all) {
        SubmitError::QueueFull(new.tier)
    } else {
        SubmitError::NotEnoughCredits
    }
}

/// The job that `new` repeats, if it asks for the same.
async fn join(conn: &mut PgConnection, id: JobId, new: &NewJob) -> Result<Job, SubmitError> {
    let job = load(&mut *conn, &[id]).await?.pop().ok_or(sqlx::Error::RowNotFound)?;
    let same = job.tool == new.tool
        && job.tier == new.tier
        && job.prompt.as_deref() == new.fix.as_ref().map(|fix| fix.prompt.as_str())
        && is_of_picture(conn, &job, new.image).await?
        && has_mask(conn, id, new.fix.as_ref()).await?;
    if same { Ok(job) } else { Err(SubmitError::IdempotencyKeyReused) }
}

/// Whether a job is of this picture. What a program sends twice is two images with the same bytes.
async fn is_of_picture(
    conn: &mut PgConnection,
    job: &Job,
    image: ImageId,
) -> Result<bool, SubmitError> {
    // A job whose image was deleted since has nothing left to compare.
    let Some(of) = job.image.filter(|of| *of != image) else { return Ok(true) };
    let same = sqlx::query_scalar!(
        r#"select exists (
               select from images a join images b on b.content_sha256 = a.content_sha256
               where a.id = $1 and b.id = $2 and a.owner_id = b.owner_id
                 and a.expires_at is not null and b.expires_at is not null
           ) as "same!""#,
        of.uuid(),
        image.uuid(),
    );
    Ok(same.fetch_one(conn).await?)
}

/// Whether a job has this mask, or none where there is none.
async fn has_mask(
    conn: &mut PgConnection,
    job: JobId,
    fix: Option<&Fix>,
) -> Result<bool, SubmitError> {
    let mask = fix.map(|fix| fix.mask_sha256.as_slice());
    let same = sqlx::query_scalar!(
        r#"select mask_sha256 is not distinct from $2 as "same!" from jobs where id = $1"#,
        job.uuid(),
        mask,
    );
    Ok(same.fetch_one(conn).await?)
}
