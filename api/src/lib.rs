//! The HTTP side of Retouch: `routes → usecases → core`.

pub mod auth;
pub mod config;
pub mod error;
pub mod mask;
pub mod news;
pub mod picture;
pub mod router;
pub mod routes;
pub mod signing;
pub mod state;
pub mod usecases;
pub mod visitors;
