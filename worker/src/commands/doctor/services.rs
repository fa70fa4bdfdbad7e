//! Postgres, Redis and the object store, as far as their addresses are known.

use std::time::Duration;

use clap::Args;
use retouch_core::config::{DatabaseConfig, RedisConfig, Secret, StorageConfig};
use retouch_core::db;
use retouch_core::queue::Queue;
use retouch_core::storage::Storage;

use super::Finding;

/// How long a service may take to answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// Where they are: the same variables as `serve` reads, none of them compulsory.
#[derive(Args)]
pub struct Addresses {
    /// The Postgres database.
    #[arg(long, env, hide_env_values = true)]
    database_url: Option<String>,
    /// The Redis or Valkey server.
    #[arg(long, env, hide_env_values = true)]
    redis_url: Option<String>,
    /// The S3 endpoint; empty for AWS itself.
    #[arg(long, env)]
    s3_endpoint: Option<String>,
    /// The region that requests are signed for.
    #[arg(long, env, default_value = "us-east-1")]
    s3_region: String,
    /// The bucket.
    #[arg(long, env, default_value = "retouch")]
    s3_bucket: String,
    /// The access key id.
    #[arg(long, env, hide_env_values = true)]
    s3_access_key_id: Option<String>,
    /// The secret of the access key.
    #[arg(long, env, hide_env_values = true)]
    s3_secret_access_key: Option<Secret>,
}

pub async fn look(addresses: &Addresses) -> Vec<Finding> {
    vec![postgres(addresses).await, redis(addresses).await, store(addresses).await]
}

async fn postgres(addresses: &Addresses) -> Finding {
    let Some(url) = addresses.database_url.clone() else {
        return Finding::note("Postgres was not asked: DATABASE_URL is not set");
    };
    let pool = match db::pool(&DatabaseConfig { database_url: url, database_connections: 1 }) {
        Ok(pool) => pool,
        Err(error) => return Finding::bad(format!("{error:#}"), "mend DATABASE_URL"),
    };
    match in_time(db::missing_migrations(&pool)).await {
        Ok(0) => Finding::good("Postgres answers, its schema is this version's"),
        Ok(missing) => Finding::bad(
            format!("Postgres answers, but {missing} migrations of this version are missing"),
            "run `retouch-api migrate` of the same version",
        ),
        Err(why) => Finding::bad(
            format!("Postgres: {why}"),
            "check DATABASE_URL, and that this host may reach it",
        ),
    }
}

async fn redis(addresses: &Addresses) -> Finding {
    let Some(redis_url) = addresses.redis_url.clone() else {
        return Finding::note("Redis was not asked: REDIS_URL is not set");
    };
    let config = RedisConfig { redis_url, redis_prefix: "retouch".to_owned() };
    let queue = match Queue::new(&config) {
        Ok(queue) => queue,
        Err(error) => return Finding::bad(error.to_string(), "mend REDIS_URL"),
    };
    match in_time(queue.ping()).await {
        Ok(()) => Finding::good("Redis answers"),
        Err(why) => Finding::bad(
            format!("Redis: {why}"),
            "check REDIS_URL, and that this host may reach it",
        ),
    }
}

async fn store(addresses: &Addresses) -> Finding {
    let (Some(id), Some(secret)) = (&addresses.s3_access_key_id, &addresses.s3_secret_access_key)
    else {
        return Finding::note("the object store was not asked: S3_ACCESS_KEY_ID is not set");
    };
    let storage = Storage::new(&StorageConfig {
        s3_endpoint: addresses.s3_endpoint.clone().filter(|endpoint| !endpoint.is_empty()),
        s3_region: addresses.s3_region.clone(),
        s3_bucket: addresses.s3_bucket.clone(),
        s3_access_key_id: id.clone(),
        s3_secret_access_key: secret.clone(),
        s3_public_endpoint: None,
    });
    match in_time(storage.ping()).await {
        Ok(()) => Finding::good(format!("the bucket {} answers", addresses.s3_bucket)),
        Err(why) => Finding::bad(
            format!("the bucket {}: {why}", addresses.s3_bucket),
            "check S3_ENDPOINT, S3_BUCKET and the key; `retouch-api migrate` creates a missing bucket",
        ),
    }
}

async fn in_time<T, E: std::fmt::Display>(
    asked: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}
