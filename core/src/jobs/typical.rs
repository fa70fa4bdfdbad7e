//! Typical durations of runs, for people who have not started one yet.

use sqlx::PgPool;

use retouch_catalog::{Tier, ToolName};

/// A picture of 256 × 256 pixels, in megapixels: about one tile of an upscaler. Icons take as long.
const SMALLEST_MEGAPIXELS: f64 = 0.065_536;

/// The typical time of a model, from its recent runs.
#[derive(Clone, Debug, PartialEq)]
pub struct TypicalTime {
    pub tool: ToolName,
    pub tier: Tier,
    pub model: String,
    /// The median of the seconds that a run took.
    pub secs: f64,
    /// The median of the seconds per megapixel of the picture that the run worked on. A picture smaller than 256 × 256
    /// pixels counts as one of that size.
    pub secs_per_megapixel: f64,
}

/// Returns the typical time of each model among the last 40 runs of each tool and tier whose results exist. Looks at no more
/// than 200 runs: people may have deleted the results of very many runs.
pub async fn typical_times(pool: &PgPool) -> sqlx::Result<Vec<TypicalTime>> {
    let (mut tools, mut tiers) = (Vec::new(), Vec::new());
    for tool in ToolName::ALL {
        for tier in Tier::ALL {
            tools.push(tool.as_str().to_owned());
            tiers.push(tier.as_str().to_owned());
        }
    }
    sqlx::query_as!(
        TypicalTime,
        // An upscale's result is larger than its picture by the square of its factor.
        r#"select class.tool as "tool!: ToolName", class.tier as "tier!: Tier", last.model as "model!",
                  percentile_cont(0.5) within group (order by last.secs) as "secs!",
                  percentile_cont(0.5) within group (order by last.secs / last.megapixels) as "secs_per_megapixel!"
           from unnest($1::text[], $2::text[]) as class (tool, tier)
           cross join lateral (
               select r.model, r.duration_ms::float8 / 1000 as secs,
                      greatest(r.width::float8 * r.height / coalesce(r.factor * r.factor, 1) / 1000000, $3) as megapixels
               from (
                   select id, finished_at from jobs
                   where tool = class.tool and tier = class.tier and state = 'done'
                   order by finished_at desc limit 200
               ) j join results r on r.job_id = j.id
               order by j.finished_at desc limit 40
           ) last
           group by class.tool, class.tier, last.model order by 1, 2, 3"#,
        &tools,
        &tiers,
        SMALLEST_MEGAPIXELS,
    )
    .fetch_all(pool)
    .await
}
