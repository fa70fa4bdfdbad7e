//! Submitting: one transaction that holds the price and writes the row.

use bytes::Bytes;
use sqlx::{PgConnection, PgPool};

use super::{Job, load};
use crate::magic_fix::FixMode;
use crate::tool::{Tier, Tool};
use crate::{ImageId, JobId, UserId, credits, db, telemetry};

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

/// Submits a job, or joins the one that the same request made before.
///
/// A repeat is recognised by its idempotency key; without one, an identical run that is still active is
/// joined. The holds of one user are serialised by the lock on their row, so that two requests can
/// neither spend the same credit nor both believe to be the first.
pub async fn submit(pool: &PgPool, new: &NewJob) -> Result<Submitted, SubmitError> {
    let mut tx = db::begin(pool).await?;
    if let Some(owner) = new.owner {
        sqlx::query!("select id from users where id = $1 for update", owner.uuid())
            .fetch_one(&mut *tx)
            .await?;
        if let Some(job) = earlier(&mut tx, owner, new).await? {
            return Ok(Submitted::Joined(job));
        }
    }
    // Shared: a delete of the image waits, other submissions do not.
    let image = sqlx::query!("select id from images where id = $1 for key share", new.image.uuid());
    if image.fetch_optional(&mut *tx).await?.is_none() {
        return Err(SubmitError::NoSuchImage);
    }
    check_room(&mut tx, new).await?;
    let cost = match (new.tier, new.owner) {
        (Tier::Paid, Some(owner)) => {
            let cost = new.tool.cost();
            if !credits::hold(&mut tx, owner, cost).await? {
                return Err(SubmitError::NotEnoughCredits);
            }
            cost
        }
        _ => 0,
    };
    let id = JobId::new();
    sqlx::query!(
        "insert into jobs (id, owner_id, image_id, tool, factor, tier, cost, idempotency_key, mode, prompt,
                           mask_sha256, traceparent)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
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
    )
    .execute(&mut *tx)
    .await?;
    if let Some(fix) = &new.fix {
        sqlx::query!(
            "insert into masks (job_id, png) values ($1, $2)",
            id.uuid(),
            fix.mask.as_ref(),
        )
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
    let job = load(&mut *tx, &[id]).await?.pop().ok_or(sqlx::Error::RowNotFound)?;
    tx.commit().await?;
    Ok(Submitted::New(job))
}

/// Refuses a job when too many wait already. The caller has locked the owner's row.
async fn check_room(conn: &mut PgConnection, new: &NewJob) -> Result<(), SubmitError> {
    let Some(most) = new.most_waiting else { return Ok(()) };
    if let (Some(owner), Some(most)) = (new.owner, most.of_owner) {
        let waiting = sqlx::query_scalar!(
            r#"select count(*) as "count!" from jobs
               where owner_id = $1 and state = 'queued' and tier = $2"#,
            owner.uuid(),
            new.tier.as_str(),
        )
        .fetch_one(&mut *conn)
        .await?;
        if waiting >= most {
            return Err(SubmitError::OwnersQueueFull);
        }
    }
    // Counts no further than it has to: nobody waits for the length of a long queue.
    let waiting = sqlx::query_scalar!(
        r#"select count(*) as "count!" from (
               select from jobs where state = 'queued' and tier = $1 limit $2
           ) first"#,
        new.tier.as_str(),
        most.in_all,
    )
    .fetch_one(conn)
    .await?;
    if waiting >= most.in_all { Err(SubmitError::QueueFull(new.tier)) } else { Ok(()) }
}

/// The job that `new` repeats, if there is one.
async fn earlier(
    conn: &mut PgConnection,
    owner: UserId,
    new: &NewJob,
) -> Result<Option<Job>, SubmitError> {
    let found = match &new.idempotency_key {
        Some(key) => sqlx::query_scalar!(
            r#"select id as "id: JobId" from jobs where owner_id = $1 and idempotency_key = $2"#,
            owner.uuid(),
            key,
        )
        .fetch_optional(&mut *conn)
        .await?,
        None => {
            sqlx::query_scalar!(
                r#"select id as "id: JobId" from jobs
                   where owner_id = $1 and image_id = $2 and tool = $3 and tier = $4
                     and factor is not distinct from $5 and state in ('queued', 'running')
                     and prompt is not distinct from $6 and mask_sha256 is not distinct from $7
                   order by created_at limit 1"#,
                owner.uuid(),
                new.image.uuid(),
                new.tool.name().as_str(),
                new.tier.as_str(),
                new.tool.factor_column(),
                new.fix.as_ref().map(|fix| fix.prompt.as_str()),
                new.fix.as_ref().map(|fix| fix.mask_sha256.as_slice()),
            )
            .fetch_optional(&mut *conn)
            .await?
        }
    };
    let Some(id) = found else { return Ok(None) };
    let job = load(&mut *conn, &[id]).await?.pop().ok_or(sqlx::Error::RowNotFound)?;
    let same = job.tool == new.tool
        && job.tier == new.tier
        && job.prompt.as_deref() == new.fix.as_ref().map(|fix| fix.prompt.as_str())
        && is_of_picture(conn, &job, new.image).await?
        && has_mask(conn, id, new.fix.as_ref()).await?;
    if same { Ok(Some(job)) } else { Err(SubmitError::IdempotencyKeyReused) }
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
