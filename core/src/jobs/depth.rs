//! The length of the queue, for monitoring.

use sqlx::PgPool;

use retouch_catalog::{JobClass, Tier, ToolName};

/// The queued jobs of one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueDepth {
    pub class: JobClass,
    pub waiting: i64,
    /// How long the oldest has waited since a worker could claim it, in seconds; 0 if there is none. A job between two
    /// attempts does not wait for a worker.
    pub oldest_secs: f64,
}

/// Returns the queue depth of every class, including empty ones.
pub async fn queue_depths(pool: &PgPool) -> sqlx::Result<Vec<QueueDepth>> {
    let rows = sqlx::query!(
        r#"select tool as "tool: ToolName", tier as "tier: Tier", count(*) as "waiting!",
                  coalesce(extract(epoch from now() - min(greatest(created_at, run_after))
                                              filter (where run_after <= now())), 0)::float8 as "oldest_secs!"
           from jobs where state = 'queued' group by tool, tier"#,
    )
    .fetch_all(pool)
    .await?;
    let classes =
        ToolName::ALL.into_iter().flat_map(|tool| Tier::ALL.map(|tier| JobClass { tier, tool }));
    let depth = |class: JobClass| {
        let row = rows.iter().find(|row| row.tool == class.tool && row.tier == class.tier);
        QueueDepth {
            class,
            waiting: row.map_or(0, |row| row.waiting),
            oldest_secs: row.map_or(0.0, |row| row.oldest_secs),
        }
    };
    Ok(classes.map(depth).collect())
}
