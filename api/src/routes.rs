//! HTTP handlers: parse, authorize, call a use case, shape the JSON. No SQL, no Redis, no S3.

pub mod account;
pub mod body;
pub mod caller;
pub mod checkouts;
pub mod config;
pub(crate) mod deadline;
pub mod fallback;
pub mod files;
pub mod free;
pub mod health;
pub mod images;
pub mod jobs;
pub mod keys;
pub mod magic_images;
pub mod multipart;
pub mod payments;
pub mod problem;
pub mod remove_background;
pub mod removebg;
pub mod request;
pub mod run;
pub mod ui;
pub mod upscale;
pub mod user;
pub mod views;
