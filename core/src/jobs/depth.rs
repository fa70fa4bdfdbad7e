//! How long the queue is, for whoever watches it.

use sqlx::PgPool;

use retouch_catalog::{JobClass, Tier, ToolName};

/// What waits in one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueDepth {
    /// The class.
    pub class: JobClass,
    /// How many jobs wait.
    pub waiting: i64,
    /// How long the oldest of them has waited, in seconds; 0 where none does.
    pub oldest_secs: f64,
}

/// What waits in each class, those included where nothing does.
pub async fn queue_depths(pool: &PgPool) -> sqlx::Result<Vec<QueueDepth>> {
    let rows = sqlx::query!(
        r#"select tool as "tool: ToolName", tier as "tier: Tier", count(*) as "waiting!",
                  extract(epoch from now() - min(created_at))::float8 as "oldest_secs!"
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
