//! The API through its real router, on a real Postgres, Redis and S3 server, with an identity provider
//! that signs whatever a test asks for. One file for each group of routes.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod app;
mod files;
mod free;
mod identity;
mod images;
mod jobs;
mod magic_images;
mod openapi;
mod pictures;
mod remove_background;
mod upscale;
