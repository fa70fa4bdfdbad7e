//! The core against a real Postgres, a real Redis or Valkey and a real S3 server.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod credits;
mod jobs;
mod queue;
mod storage;
