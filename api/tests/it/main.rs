//! The API through its real router, on a real Postgres, Redis and S3 server, with an identity provider
//! that signs whatever a test asks for. One file for each group of routes.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod account;
mod app;
mod collector;
mod every_route;
mod files;
mod free;
mod idempotency;
mod identity;
mod images;
mod jobs;
mod keys;
mod limits;
mod magic_images;
mod openapi;
mod oversize_reports;
mod payments;
mod processes;
mod provider_keys;
mod remove_background;
mod removebg;
mod telemetry;
mod upscale;
