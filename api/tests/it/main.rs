//! Tests of the API through its router, with real Postgres, Redis and S3 servers and an identity provider that signs
//! any claims. One file per group of routes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod account;
mod app;
mod collector;
mod credentials;
mod every_route;
mod files;
mod free;
mod heic;
mod hostile;
mod idempotency;
mod identity;
mod images;
mod images_archive;
mod images_from_results;
mod images_list;
mod jobs;
mod keys;
mod limits;
mod magic_images;
mod mcp;
mod objects;
mod openapi;
mod oversize_reports;
mod payments;
mod processes;
mod provider_keys;
mod remove_background;
mod removebg;
mod results;
mod sample;
mod select;
mod settings;
mod telemetry;
mod upscale;
mod webhooks;
