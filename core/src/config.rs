//! The settings that the API and the workers share; each process adds its own. `--help` is the manual.
//!
//! Wherever a setting can come from the variable `NAME`, it can come from the file that `NAME_FILE` names.

mod files;

use std::fmt;
use std::str::FromStr;

pub use files::parse;

/// Where the truth is kept.
#[derive(Clone, Debug, clap::Args)]
pub struct DatabaseConfig {
    /// The Postgres database, e.g. `postgres://user:password@host/retouch`.
    #[arg(long, env, hide_env_values = true)]
    pub database_url: String,
    /// The most connections this process opens to Postgres.
    #[arg(long, env, default_value_t = 16)]
    pub database_connections: u32,
}

/// Where the doorbells and the progress of jobs go.
#[derive(Clone, Debug, clap::Args)]
pub struct RedisConfig {
    /// The Redis (7 or newer) or Valkey (8 or newer) server, e.g. `redis://host:6379`.
    #[arg(long, env, hide_env_values = true)]
    pub redis_url: String,
    /// Put before every name we use in Redis, so that installations can share a server.
    #[arg(long, env, default_value = "retouch")]
    pub redis_prefix: String,
}

/// Where pictures are kept.
#[derive(Clone, Debug, clap::Args)]
pub struct StorageConfig {
    /// The S3 endpoint; empty for AWS itself.
    #[arg(long, env)]
    pub s3_endpoint: Option<String>,
    /// The region that requests are signed for.
    #[arg(long, env, default_value = "us-east-1")]
    pub s3_region: String,
    /// The bucket; `retouch-api migrate` creates it when it is missing.
    #[arg(long, env, default_value = "retouch")]
    pub s3_bucket: String,
    /// The access key id.
    #[arg(long, env, hide_env_values = true)]
    pub s3_access_key_id: String,
    /// The secret of the access key.
    #[arg(long, env, hide_env_values = true)]
    pub s3_secret_access_key: Secret,
    /// An S3 endpoint that browsers reach; when set, pictures are served by it and not by the API.
    #[arg(long, env)]
    pub s3_public_endpoint: Option<String>,
}

/// A text that must not appear in a log.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
