//! The HTTP side of Retouch: `routes → usecases → core`.

pub mod admin;
mod auth;
pub mod config;
mod error;
mod limits;
pub mod metrics;
mod payments;
mod random_secret;
mod routes;
pub mod server;
mod signing;
pub mod state;
pub mod upkeep;
pub mod usecases;
mod waiting;
pub mod webhooks;
