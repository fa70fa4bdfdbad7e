//! Limits how many runs and uploads a user starts per minute, in browsers and programs together. Each API
//! process counts for itself.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use retouch_core::UserId;

use crate::config::LimitsConfig;
use crate::error::ApiError;

/// The rate limits of signed-in users.
pub struct RateLimits {
    runs: Limiter,
    uploads: Limiter,
}

/// A user's remaining allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Calls per minute.
    pub limit: u32,
    /// Calls allowed right now.
    pub remaining: u32,
    /// The time until `remaining` is back at `limit` if no call follows.
    pub full_after: Duration,
}

/// The error for a call beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimited {
    /// The kind of call, in the plural.
    what: &'static str,
    /// The allowance, with nothing remaining.
    pub allowance: Allowance,
    /// Seconds until the next call is allowed.
    pub retry_after_secs: u64,
}

impl From<RateLimited> for ApiError {
    fn from(error: RateLimited) -> Self {
        let RateLimited { what, allowance, retry_after_secs } = error;
        let unit = if retry_after_secs == 1 { "second" } else { "seconds" };
        Self::RateLimited {
            detail: format!(
                "You can start {} {what} per minute. Try again in {retry_after_secs} {unit}.",
                allowance.limit
            ),
            retry_after_secs,
        }
    }
}

impl RateLimits {
    /// Creates the limiters with the configured limits.
    pub fn new(limits: &LimitsConfig) -> Self {
        Self {
            runs: Limiter::new("runs", limits.user_runs_per_minute),
            uploads: Limiter::new("uploads", limits.user_uploads_per_minute),
        }
    }

    /// Counts a run of `user`; an error if it exceeds the limit.
    pub fn count_run(&self, user: UserId) -> Result<Allowance, RateLimited> {
        self.runs.count(user)
    }

    /// Counts an upload of `user`; an error if it exceeds the limit.
    pub fn count_upload(&self, user: UserId) -> Result<Allowance, RateLimited> {
        self.uploads.count(user)
    }
}

struct Limiter {
    what: &'static str,
    limit: NonZeroU32,
    users: DefaultKeyedRateLimiter<UserId, StateInformationMiddleware>,
}

impl Limiter {
    fn new(what: &'static str, per_minute: u32) -> Self {
        let limit = NonZeroU32::new(per_minute).unwrap_or(NonZeroU32::MIN);
        let users = RateLimiter::keyed(Quota::per_minute(limit));
        Self { what, limit, users: users.with_middleware() }
    }

    fn count(&self, user: UserId) -> Result<Allowance, RateLimited> {
        if self.users.len() > 100_000 {
            self.users.retain_recent();
        }
        match self.users.check_key(&user) {
            Ok(state) => Ok(self.allowance(state.remaining_burst_capacity())),
            Err(until) => {
                let wait = until.wait_time_from(DefaultClock::default().now());
                Err(RateLimited {
                    what: self.what,
                    allowance: self.allowance(0),
                    retry_after_secs: wait.as_secs() + 1,
                })
            }
        }
    }

    fn allowance(&self, remaining: u32) -> Allowance {
        let limit = self.limit.get();
        let replenish_interval = Duration::from_mins(1) / limit;
        Allowance { limit, remaining, full_after: replenish_interval * (limit - remaining) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_and_each_kind_of_call_has_an_allowance() {
        let limiter = Limiter::new("runs", 3);
        let (ada, bob) = (UserId::new(), UserId::new());
        for remaining in [2, 1, 0] {
            let allowance = limiter.count(ada).expect("within the limit");
            assert_eq!((allowance.limit, allowance.remaining), (3, remaining));
            assert_eq!(allowance.full_after.as_secs(), 20 * u64::from(3 - remaining));
        }
        let refused = limiter.count(ada).expect_err("a fourth");
        assert!((1..=20).contains(&refused.retry_after_secs), "{refused:?}");
        assert_eq!((refused.allowance.limit, refused.allowance.remaining), (3, 0));
        limiter.count(bob).expect("another user");
        Limiter::new("uploads", 3).count(ada).expect("another kind of call");
    }
}
