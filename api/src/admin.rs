//! `retouch-api admin`: what an operator does without a screen, straight on the database.
//!
//! Every change is a line in the log, and in the ledger where credits move.

mod audit;
mod grant;
mod jobs;
mod nodes;
mod table;
mod user;

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use retouch_core::accounts::{self, Account};
use retouch_core::config::DatabaseConfig;
use retouch_core::db::{self, PgPool};
use serde_json::Value;

/// Look after accounts, jobs and the books.
#[derive(Debug, Args)]
pub struct Admin {
    #[command(flatten)]
    database: DatabaseConfig,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Show an account: its balance, its last jobs and changes.
    User(user::Show),
    /// Add credits to an account, or take some away.
    Grant(grant::Grant),
    /// See failed jobs, try one again, end one.
    #[command(subcommand)]
    Jobs(jobs::Jobs),
    /// Recompute every balance and hold, and compare the bucket with the database. Ends with 1 when
    /// something does not add up.
    Audit(Box<audit::Audit>),
    /// The same without the bucket.
    Books,
    /// Show the workers: their devices, models and problems.
    Nodes,
}

/// What a task has to say.
#[derive(Debug)]
pub struct Answer {
    /// For people.
    pub text: String,
    /// For programs.
    pub json: Value,
    /// Whether all is as it should be.
    pub is_good: bool,
}

impl Answer {
    fn good(text: String, json: Value) -> Self {
        Self { text, json, is_good: true }
    }
}

impl Admin {
    /// Does the task and prints its answer. Fails the process when something is not as it should be.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let answer = self.perform(&db::pool(&self.database)?).await?;
        if self.json {
            println!("{:#}", answer.json);
        } else {
            println!("{}", answer.text.trim_end());
        }
        Ok(if answer.is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Does the task on a database that is open.
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        match &self.task {
            Task::User(task) => task.perform(pool).await,
            Task::Grant(task) => task.perform(pool).await,
            Task::Jobs(task) => task.perform(pool).await,
            Task::Audit(task) => task.perform(pool).await,
            Task::Books => audit::books(pool).await,
            Task::Nodes => nodes::show(pool).await,
        }
    }
}

/// The one account that `name` means.
async fn account(pool: &PgPool, name: &str) -> anyhow::Result<Account> {
    let mut found = accounts::find(pool, name).await.context("looking for the account")?;
    if found.len() > 1 {
        let ids: Vec<String> = found.iter().map(|account| account.id.to_string()).collect();
        anyhow::bail!("several accounts are called so; name one by its id: {}", ids.join(", "));
    }
    found.pop().context("there is no such account")
}
