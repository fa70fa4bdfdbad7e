//! `retouch-api admin`: the operator's commands, which work directly on the database.
//!
//! Every change is logged; changes of a balance are also in the ledger.

mod answer;
mod audit;
mod credentials;
mod deletions;
mod find;
mod grant;
mod issuer;
mod jobs;
mod objects;
mod table;
mod user;
mod workers;

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use retouch_core::config::{DatabaseConfig, Secret};
use retouch_core::db::{self, PgPool};

pub use answer::Answer;

/// Maximum number of connections that a command opens to Postgres.
const CONNECTIONS: u32 = 4;

/// Manage accounts and jobs, and audit the books.
#[derive(Debug, Args)]
pub struct Admin {
    /// The Postgres database; `credentials` needs none.
    #[arg(long, env, hide_env_values = true)]
    database_url: Option<Secret>,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Show an account: its balance, recent jobs and ledger entries.
    User(user::Show),
    /// Add credits to an account, or take some away.
    Grant(grant::Grant),
    /// Keep the accounts when the URL of the identity provider changes. Run it while the API is stopped.
    Issuer(issuer::Issuer),
    /// List failed jobs, retry one, or end one.
    #[command(subcommand)]
    Jobs(jobs::Jobs),
    /// Audit the books: recompute every balance and hold. Also compare the bucket with the database. Exits
    /// with 1 if anything does not match.
    Audit(Box<audit::Audit>),
    /// Audit only the books.
    Books,
    /// Show the workers: their devices, models and problems.
    #[command(alias = "nodes")]
    Workers,
    /// Make or check the key of Content Credentials.
    #[command(subcommand)]
    Credentials(credentials::Task),
    /// After a restore, repeat people's deletions and changes of webhooks since the backup. Run it before you start the API.
    Deletions(deletions::Deletions),
    /// List the objects in the bucket, or copy them to or from a folder.
    Objects(Box<objects::Objects>),
}

impl Admin {
    /// Runs the command and prints its answer. The exit code is 1 if the command found a problem.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let answer = if let Task::Credentials(task) = &self.task {
            task.perform()?
        } else {
            let database_url = self.database_url.clone().context("set DATABASE_URL")?;
            let database = DatabaseConfig { database_url, database_connections: CONNECTIONS };
            let pool = db::connected_pool(&database).await.context("connecting to DATABASE_URL")?;
            self.perform(&pool).await?
        };
        if self.json {
            println!("{:#}", answer.json);
        } else {
            println!("{}", answer.text.trim_end());
        }
        Ok(if answer.is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Runs the command on an open database.
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        match &self.task {
            Task::User(task) => task.perform(pool).await,
            Task::Grant(task) => task.perform(pool).await,
            Task::Issuer(task) => task.perform(pool).await,
            Task::Jobs(task) => task.perform(pool).await,
            Task::Audit(task) => task.perform(pool).await,
            Task::Books => audit::books(pool).await,
            Task::Workers => workers::show(pool).await,
            Task::Deletions(task) => task.perform(pool).await,
            Task::Objects(task) => task.perform(pool).await,
            Task::Credentials(task) => task.perform(),
        }
    }
}
