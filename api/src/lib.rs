//! The HTTP side of Retouch: `routes → usecases → core`.

pub mod admin;
pub mod attended_jobs;
pub mod auth;
pub mod config;
pub mod container;
pub mod decode_budget;
pub mod deleted_users;
pub mod error;
pub mod fair_budget;
pub mod job_events;
pub mod metrics;
pub mod payments;
pub mod random_secret;
pub mod rate_limits;
pub mod router;
pub mod routes;
pub mod security_headers;
pub mod serve;
pub mod signing;
pub mod state;
pub mod upkeep;
pub mod usecases;
pub mod visitors;
pub mod webhooks;
