//! The HTTP side of Retouch: `routes → usecases → core`.

pub mod admin;
mod attended_jobs;
mod auth;
pub mod config;
mod deleted_users;
mod error;
mod job_events;
mod limits;
pub mod metrics;
mod payments;
mod random_secret;
mod recent;
mod routes;
pub mod server;
mod signing;
pub mod state;
pub mod upkeep;
pub mod usecases;
mod visitors;
pub mod webhooks;
