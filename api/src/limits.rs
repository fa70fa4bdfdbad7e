//! Limits the work that callers can cause: memory and threads, connections and uploads, runs per hour.

pub mod container;
pub mod decode_budget;
pub mod fair_budget;
mod kept;
pub mod rate_limits;
pub mod turns;
