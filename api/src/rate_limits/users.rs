//! The limits per minute of signed-in users, in browsers and programs together.

use std::time::Duration;

use retouch_core::UserId;
use retouch_core::queue::{Queue, Verdict};

use super::limiter::Limiter;
use crate::config::LimitsConfig;
use crate::error::ApiError;

/// The rate limits of signed-in users.
pub struct UserLimits {
    runs: Limiter,
    uploads: Limiter,
    selections: Limiter,
    samples: Limiter,
    renders: Limiter,
    deliveries: Limiter,
    webhook_addresses: Limiter,
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

/// Tests and repetitions of deliveries per minute.
const DELIVERIES_PER_MINUTE: u32 = 30;
/// Changed addresses of webhooks per minute. Resolving the name of one may keep a thread waiting.
const WEBHOOK_ADDRESSES_PER_MINUTE: u32 = 30;

impl UserLimits {
    /// Creates the limiters with the configured limits.
    pub fn new(limits: &LimitsConfig, queue: &Queue) -> Self {
        let limiter = |name, calls| Limiter::new(name, calls, Duration::from_mins(1), queue);
        Self {
            runs: limiter("user-runs", limits.user_runs_per_minute),
            uploads: limiter("user-uploads", limits.user_uploads_per_minute),
            // Clicks are as frequent as uploads may be, and counted by themselves.
            selections: limiter("user-selections", limits.user_uploads_per_minute),
            samples: limiter("user-samples", limits.user_uploads_per_minute),
            // Rendering takes about as much CPU time as an upload.
            renders: limiter("user-renders", limits.user_uploads_per_minute),
            deliveries: limiter("user-deliveries", DELIVERIES_PER_MINUTE),
            webhook_addresses: limiter("user-webhook-addresses", WEBHOOK_ADDRESSES_PER_MINUTE),
        }
    }

    /// Counts a run of `user`; an error if it exceeds the limit.
    pub async fn count_run(&self, user: UserId) -> Result<Allowance, RateLimited> {
        count(&self.runs, user, "runs").await
    }

    /// Counts an upload of `user`; an error if it exceeds the limit.
    pub async fn count_upload(&self, user: UserId) -> Result<Allowance, RateLimited> {
        count(&self.uploads, user, "uploads").await
    }

    /// Counts a selection of `user`; an error if it exceeds the limit.
    pub async fn count_selection(&self, user: UserId) -> Result<Allowance, RateLimited> {
        count(&self.selections, user, "selections").await
    }

    /// Counts a sample for `user`; an error if it exceeds the limit.
    pub async fn count_sample(&self, user: UserId) -> Result<Allowance, RateLimited> {
        count(&self.samples, user, "samples").await
    }

    /// Counts the rendering of a result for `user`; an error if it exceeds the limit.
    pub async fn count_render(&self, user: UserId) -> Result<Allowance, RateLimited> {
        count(&self.renders, user, "renders").await
    }

    /// Counts a delivery that `user` asked for; an error if it exceeds the limit.
    pub async fn count_delivery(&self, user: UserId) -> Result<Allowance, RateLimited> {
        count(&self.deliveries, user, "deliveries").await
    }

    /// Counts an address that `user` gives a webhook; an error if it exceeds the limit.
    pub async fn count_webhook_address(&self, user: UserId) -> Result<Allowance, RateLimited> {
        count(&self.webhook_addresses, user, "address checks").await
    }
}

async fn count(
    limiter: &Limiter,
    user: UserId,
    what: &'static str,
) -> Result<Allowance, RateLimited> {
    let limit = limiter.rate.calls;
    let allowance = |remaining| Allowance {
        limit,
        remaining,
        full_after: limiter.rate.interval() * (limit - remaining),
    };
    match limiter.count(&user.to_string()).await {
        Verdict::Within { remaining } => Ok(allowance(remaining)),
        Verdict::Beyond { retry_after } => Err(RateLimited {
            what,
            allowance: allowance(0),
            retry_after_secs: retry_after.as_secs() + 1,
        }),
    }
}
