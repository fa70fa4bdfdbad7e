//! The HTTP side of Retouch: `routes → usecases → core`.

pub mod admin;
pub mod auth;
pub mod config;
pub mod error;
pub mod former;
pub mod measure;
pub mod news;
pub mod payments;
pub mod rates;
pub mod router;
pub mod routes;
pub mod serve;
pub mod signing;
pub mod state;
pub mod uploads;
pub mod usecases;
pub mod visitors;
