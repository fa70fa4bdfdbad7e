//! The core against a real Postgres, a real Redis or Valkey and a real S3 server.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod accounts;
mod audit;
mod credits;
mod janitor;
mod jobs;
mod ledger;
mod migrations;
mod operator;
mod orders;
mod queue;
mod storage;
