//! HTTP handlers: parse, authorize, call a use case, shape the JSON. No SQL, no Redis, no S3.

pub mod checkouts;
pub mod config;
pub mod events;
pub mod files;
pub mod health;
pub mod images;
pub mod jobs;
pub mod keys;
pub mod mcp;
pub mod payments;
pub mod preview;
pub mod removebg;
pub mod results;
pub mod tools;
pub mod user;
pub mod verify;
pub mod views;
pub mod webhooks;
