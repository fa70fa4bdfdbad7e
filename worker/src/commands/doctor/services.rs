//! Checks Postgres, Redis and the object store if their URLs are set.

use std::time::Duration;

use clap::Args;
use retouch_core::config::{DatabaseConfig, RedisConfig, Secret, StorageConfig};
use retouch_core::db::{self, PgPool};
use retouch_core::queue::Queue;
use retouch_core::storage::{OwnerError, Storage, check_owner};
use retouch_core::with_causes;

use super::finding::Finding;

const POSTGRES_ADVICE: &str = "check DATABASE_URL, and that this host can reach the server";

/// Maximum time for a service to answer.
const TIMEOUT: Duration = Duration::from_secs(8);

/// The addresses of the services: the same variables as for `serve`, but optional.
#[derive(Args)]
#[command(next_help_heading = "Services")]
pub struct Addresses {
    /// The Postgres database.
    #[arg(long, env, hide_env_values = true)]
    database_url: Option<Secret>,
    /// The Redis or Valkey server.
    #[arg(long, env, hide_env_values = true)]
    redis_url: Option<Secret>,
    /// The S3 endpoint; empty for AWS itself.
    #[arg(long, env)]
    s3_endpoint: Option<String>,
    /// The S3 region, used to sign requests.
    #[arg(long, env, default_value = "us-east-1")]
    s3_region: String,
    /// The bucket.
    #[arg(long, env, default_value = "retouch")]
    s3_bucket: String,
    /// The S3 access key ID.
    #[arg(long, env, hide_env_values = true)]
    s3_access_key_id: Option<String>,
    /// The S3 secret access key.
    #[arg(long, env, hide_env_values = true)]
    s3_secret_access_key: Option<Secret>,
}

impl Addresses {
    /// Connects to the database; `None` without its URL.
    async fn database_pool(&self) -> Option<anyhow::Result<PgPool>> {
        let database_url = self.database_url.clone()?;
        Some(db::connected_pool(&DatabaseConfig { database_url, database_connections: 1 }).await)
    }
}

pub async fn check(addresses: &Addresses) -> Vec<Finding> {
    vec![postgres(addresses).await, redis(addresses).await, store(addresses).await]
}

async fn postgres(addresses: &Addresses) -> Finding {
    let pool = match addresses.database_pool().await {
        None => return Finding::note("Postgres was not checked, because DATABASE_URL is not set"),
        Some(Ok(pool)) => pool,
        Some(Err(error)) => {
            return Finding::bad(
                format!("Postgres: {}", with_causes(error.as_ref())),
                POSTGRES_ADVICE,
            );
        }
    };
    match in_time(db::missing_migrations(&pool)).await {
        Ok(0) => Finding::good("Postgres answers and its schema is up to date"),
        Ok(missing) => Finding::bad(
            format!("Postgres answers, but lacks {missing} migrations of this version"),
            "run `retouch-api migrate` of the same version",
        ),
        Err(error) => Finding::bad(format!("Postgres: {error}"), POSTGRES_ADVICE),
    }
}

async fn redis(addresses: &Addresses) -> Finding {
    let Some(redis_url) = addresses.redis_url.clone() else {
        return Finding::note("Redis was not checked, because REDIS_URL is not set");
    };
    let config = RedisConfig { redis_url, redis_prefix: "retouch".to_owned() };
    let queue = match Queue::new(&config) {
        Ok(queue) => queue,
        Err(error) => return Finding::bad(error.to_string(), "fix REDIS_URL"),
    };
    match in_time(queue.ping()).await {
        Ok(()) => Finding::good("Redis answers"),
        Err(error) => Finding::bad(
            format!("Redis: {error}"),
            "check REDIS_URL, and that this host can reach the server",
        ),
    }
}

async fn store(addresses: &Addresses) -> Finding {
    let (Some(id), Some(secret)) = (&addresses.s3_access_key_id, &addresses.s3_secret_access_key)
    else {
        return Finding::note(
            "the object store was not checked, because S3_ACCESS_KEY_ID or S3_SECRET_ACCESS_KEY is not set",
        );
    };
    let storage = Storage::new(&StorageConfig {
        s3_endpoint: addresses.s3_endpoint.clone().filter(|endpoint| !endpoint.is_empty()),
        s3_region: addresses.s3_region.clone(),
        s3_bucket: addresses.s3_bucket.clone(),
        s3_access_key_id: id.clone(),
        s3_secret_access_key: secret.clone(),
        s3_public_endpoint: None,
    });
    if let Err(error) = in_time(storage.ping()).await {
        return Finding::bad(
            format!("bucket {}: {error}", addresses.s3_bucket),
            "check S3_ENDPOINT, S3_BUCKET and the keys; `retouch-api migrate` creates a missing bucket",
        );
    }
    if let Some(Ok(pool)) = addresses.database_pool().await
        && let Ok(Err(error @ OwnerError::Foreign { .. })) =
            tokio::time::timeout(TIMEOUT, check_owner(&pool, &storage)).await
    {
        return Finding::bad(error.to_string(), "correct the setting that is wrong");
    }
    Finding::good(format!("the object store answers; bucket {}", addresses.s3_bucket))
}

async fn in_time<T, E: std::fmt::Display>(
    request: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match tokio::time::timeout(TIMEOUT, request).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
    }
}
