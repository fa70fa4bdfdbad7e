//! How fast one user may go: their browser and their programs together, counted in this process.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use retouch_core::UserId;

use crate::config::LimitsConfig;
use crate::error::ApiError;

/// Counts what users start.
pub struct Rates {
    runs: Limiter,
    uploads: Limiter,
}

/// What a user has left after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// How many calls a minute there are.
    pub limit: u32,
    /// How many could follow at once.
    pub remaining: u32,
    /// Until there are `limit` of them again, if none follows.
    pub full_after: Duration,
}

/// A call too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFast {
    /// What was called too often.
    what: &'static str,
    /// What is left: nothing.
    pub allowance: Allowance,
    /// When to try again.
    pub retry_after_secs: u64,
}

impl From<TooFast> for ApiError {
    fn from(early: TooFast) -> Self {
        let TooFast { what, allowance, retry_after_secs } = early;
        let unit = if retry_after_secs == 1 { "second" } else { "seconds" };
        Self::TooMuchOfOne {
            detail: format!(
                "That was more than {} {what} in a minute. Try again in {retry_after_secs} {unit}",
                allowance.limit
            ),
            retry_after_secs,
        }
    }
}

impl Rates {
    /// With the limits that are configured.
    pub fn new(limits: &LimitsConfig) -> Self {
        Self {
            runs: Limiter::new("runs", limits.user_runs_per_minute),
            uploads: Limiter::new("uploads", limits.user_uploads_per_minute),
        }
    }

    /// Counts a run of `user`, or refuses it.
    pub fn count_run(&self, user: UserId) -> Result<Allowance, TooFast> {
        self.runs.count(user)
    }

    /// Counts an upload of `user`, or refuses it.
    pub fn count_upload(&self, user: UserId) -> Result<Allowance, TooFast> {
        self.uploads.count(user)
    }
}

struct Limiter {
    what: &'static str,
    limit: NonZeroU32,
    users: DefaultKeyedRateLimiter<UserId, StateInformationMiddleware>,
}

impl Limiter {
    fn new(what: &'static str, a_minute: u32) -> Self {
        let limit = NonZeroU32::new(a_minute).unwrap_or(NonZeroU32::MIN);
        let users = RateLimiter::keyed(Quota::per_minute(limit));
        Self { what, limit, users: users.with_middleware() }
    }

    fn count(&self, user: UserId) -> Result<Allowance, TooFast> {
        if self.users.len() > 100_000 {
            self.users.retain_recent();
        }
        match self.users.check_key(&user) {
            Ok(state) => Ok(self.allowance(state.remaining_burst_capacity())),
            Err(early) => {
                let wait = early.wait_time_from(DefaultClock::default().now());
                Err(TooFast {
                    what: self.what,
                    allowance: self.allowance(0),
                    retry_after_secs: wait.as_secs() + 1,
                })
            }
        }
    }

    fn allowance(&self, remaining: u32) -> Allowance {
        let limit = self.limit.get();
        let one_comes_back_after = Duration::from_mins(1) / limit;
        Allowance { limit, remaining, full_after: one_comes_back_after * (limit - remaining) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_counted_for_each_user_and_each_kind() {
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
        limiter.count(bob).expect("somebody else");
        Limiter::new("uploads", 3).count(ada).expect("something else");
    }
}
