//! Limits how many runs and uploads users and visitors start. All API processes count together, in Redis; while
//! Redis is away, each counts for itself.

mod limiter;
mod local;
mod users;
mod visitors;

use retouch_core::queue::Queue;

use crate::config::LimitsConfig;

pub use users::{Allowance, UserLimits};
pub use visitors::VisitorLimits;

pub struct RateLimits {
    pub users: UserLimits,
    pub visitors: VisitorLimits,
}

impl RateLimits {
    /// Creates the limiters with the configured limits.
    pub fn new(limits: &LimitsConfig, queue: &Queue) -> Self {
        Self { users: UserLimits::new(limits, queue), visitors: VisitorLimits::new(limits, queue) }
    }
}
