//! Limits the work that callers can cause: memory and threads, connections and uploads, runs per hour.

pub mod container;
pub mod decode_budget;
pub mod fair_budget;
pub mod rate_limits;
mod reserved_file;
pub mod turns;
