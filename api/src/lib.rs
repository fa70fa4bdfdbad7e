//! The HTTP side of Retouch: `server → routes → usecases → core`. Routes share the parts of HTTP in `http`.

pub mod admin;
mod auth;
pub mod config;
mod error;
mod http;
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
