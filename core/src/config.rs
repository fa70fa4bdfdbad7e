//! The settings that the API and the workers share. Each process adds its own; `--help` documents them all.
//!
//! Every setting that can come from the variable `NAME` can also come from a file whose path is in `NAME_FILE`.

mod files;

use std::fmt;
use std::str::FromStr;

pub use files::parse;

/// The database settings.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Postgres")]
pub struct DatabaseConfig {
    /// The Postgres database, for example `postgres://user:password@host/retouch`.
    #[arg(long, env, hide_env_values = true)]
    pub database_url: Secret,
    /// Maximum number of connections that this process opens to Postgres, at least 4: up to two tasks at a time hold
    /// one for a lock, and use another.
    #[arg(long, env, default_value_t = 16, value_parser = clap::value_parser!(u32).range(4..))]
    pub database_connections: u32,
}

/// The Redis settings.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Redis")]
pub struct RedisConfig {
    /// The Redis (7 or newer) or Valkey (8 or newer) server, for example `redis://host:6379`.
    #[arg(long, env, hide_env_values = true)]
    pub redis_url: Secret,
    /// The prefix of every name in Redis, so that installations can share a server.
    #[arg(long, env, default_value = "retouch")]
    pub redis_prefix: String,
}

/// The object store settings.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Object store")]
pub struct StorageConfig {
    /// The S3 endpoint; empty for AWS itself.
    #[arg(long, env)]
    pub s3_endpoint: Option<String>,
    /// The region that requests are signed for.
    #[arg(long, env, default_value = "us-east-1")]
    pub s3_region: String,
    /// The bucket; `retouch-api migrate` creates it if it does not exist.
    #[arg(long, env, default_value = "retouch")]
    pub s3_bucket: String,
    /// The access key ID.
    #[arg(long, env, hide_env_values = true)]
    pub s3_access_key_id: String,
    /// The secret access key.
    #[arg(long, env, hide_env_values = true)]
    pub s3_secret_access_key: Secret,
    /// An S3 endpoint that browsers can reach; if set, it serves pictures instead of the API.
    #[arg(long, env)]
    pub s3_public_endpoint: Option<String>,
}

/// A text that must not appear in logs, such as a key, or a URL with a password.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Settings {
        #[command(flatten)]
        _database: DatabaseConfig,
    }

    #[test]
    fn fewer_connections_than_the_chores_need_are_refused() {
        let accepts = |connections| {
            let url = ["retouch", "--database-url", "postgres://host/retouch"];
            let connections = ["--database-connections", connections];
            Settings::try_parse_from(url.into_iter().chain(connections)).is_ok()
        };
        assert!(accepts("4"));
        assert!(!accepts("3"));
    }

    #[test]
    fn settings_show_no_password_in_debug_output() {
        let secret = |text: &str| Secret(text.to_owned());
        let settings = (
            DatabaseConfig {
                database_url: secret("postgres://ada:opensesame@host/retouch"),
                database_connections: 1,
            },
            RedisConfig {
                redis_url: secret("redis://:opensesame@host"),
                redis_prefix: "retouch".into(),
            },
        );
        let text = format!("{settings:?}");
        assert!(!text.contains("opensesame"), "{text}");
        assert!(text.contains("redis_prefix: \"retouch\""), "{text}");
    }
}
