//! The HTTP side of Retouch: `routes → usecases → core`.

pub mod admin;
mod attended_jobs;
mod auth;
pub mod config;
mod container;
mod decode_budget;
mod deleted_users;
mod error;
mod fair_budget;
mod job_events;
mod kept;
pub mod metrics;
mod paced_stream;
mod payments;
mod random_secret;
mod rate_limits;
pub mod router;
mod routes;
mod security_headers;
pub mod serve;
mod signing;
pub mod state;
mod turns;
pub mod upkeep;
pub mod usecases;
mod visitors;
pub mod webhooks;
