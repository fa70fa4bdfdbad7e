//! The limits per minute of signed-in users, in browsers and programs together.

use std::time::Duration;

use retouch_core::UserId;
use retouch_core::queue::{Queue, Verdict};

use super::limiter::Limiter;
use crate::config::LimitsConfig;
use crate::error::ApiError;

pub struct UserLimits {
    pub runs: UserLimit,
    pub uploads: UserLimit,
    /// Clicks that select an area. As frequent as uploads may be, but counted separately.
    pub selections: UserLimit,
    pub samples: UserLimit,
    /// Files rendered from results. One takes about as much CPU time as an upload.
    pub renders: UserLimit,
    /// Payment pages that are opened at the provider.
    pub purchases: UserLimit,
    /// Payments that we look up at the provider.
    pub payment_checks: UserLimit,
    /// Deliveries that a user triggers.
    pub deliveries: UserLimit,
    /// Webhook addresses that a user sets.
    pub webhook_addresses: UserLimit,
}

/// The limit of one kind of call.
pub struct UserLimit {
    /// The kind of call, in the plural.
    what: &'static str,
    limiter: Limiter,
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
        // At least two: the page translates the plural only.
        let seconds = retry_after_secs.max(2);
        Self::RateLimited {
            detail: format!(
                "You can start {} {what} per minute. Try again in {seconds} seconds.",
                allowance.limit
            ),
            retry_after_secs,
        }
    }
}

/// Samples are allowed this many times less often than uploads: enough of them together would be a free upscale.
const SAMPLES_SHARE: u32 = 6;
/// Payment pages per minute.
const PURCHASES_PER_MINUTE: u32 = 30;
/// Questions to the payment provider per minute.
const PAYMENT_CHECKS_PER_MINUTE: u32 = 30;
/// Tests and repetitions of deliveries per minute.
const DELIVERIES_PER_MINUTE: u32 = 30;
/// Changed addresses of webhooks per minute. Resolving the name of one may keep a thread waiting.
const WEBHOOK_ADDRESSES_PER_MINUTE: u32 = 30;

impl UserLimits {
    /// Creates the limiters with the configured limits.
    pub fn new(limits: &LimitsConfig, queue: &Queue) -> Self {
        let limit = |what, name, calls| UserLimit {
            what,
            limiter: Limiter::new(name, calls, Duration::from_mins(1), queue),
        };
        let uploads = limits.user_uploads_per_minute;
        Self {
            runs: limit("runs", "user-runs", limits.user_runs_per_minute),
            uploads: limit("uploads", "user-uploads", uploads),
            selections: limit("selections", "user-selections", uploads),
            samples: limit("samples", "user-samples", (uploads / SAMPLES_SHARE).max(1)),
            renders: limit("renders", "user-renders", uploads),
            purchases: limit("purchases", "user-purchases", PURCHASES_PER_MINUTE),
            payment_checks: limit(
                "payment checks",
                "user-payment-checks",
                PAYMENT_CHECKS_PER_MINUTE,
            ),
            deliveries: limit("deliveries", "user-deliveries", DELIVERIES_PER_MINUTE),
            webhook_addresses: limit(
                "address checks",
                "user-webhook-addresses",
                WEBHOOK_ADDRESSES_PER_MINUTE,
            ),
        }
    }
}

impl UserLimit {
    /// Counts a call of `user`; an error if it exceeds the limit.
    pub async fn count(&self, user: UserId) -> Result<Allowance, RateLimited> {
        let limiter = &self.limiter;
        let limit = limiter.rate.calls;
        let allowance = |remaining| Allowance {
            limit,
            remaining,
            full_after: limiter.rate.interval() * (limit - remaining),
        };
        match limiter.count(&user.to_string()).await {
            Verdict::Within { remaining } => Ok(allowance(remaining)),
            Verdict::Beyond { retry_after } => Err(RateLimited {
                what: self.what,
                allowance: allowance(0),
                retry_after_secs: retry_after.as_secs() + 1,
            }),
        }
    }
}
