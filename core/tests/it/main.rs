//! The core against real Postgres, Redis or Valkey, and S3 servers.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod accounts;
mod audit;
mod bucket_owner;
mod credits;
mod janitor;
mod jobs;
mod ledger;
mod migrations;
mod operator;
mod orders;
mod plans;
mod queue;
mod relay;
mod restored;
mod shared_objects;
mod simultaneous;
mod storage;
mod webhooks;
