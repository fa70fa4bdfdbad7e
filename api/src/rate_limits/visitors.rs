//! The limits per hour of visitors, by their pseudonyms.

use std::time::Duration;

use retouch_core::queue::{Queue, Verdict};

use super::limiter::Limiter;
use crate::config::LimitsConfig;
use crate::error::ApiError;

/// The rate limits of visitors.
pub struct VisitorLimits {
    runs: Limiter,
    uploads: Limiter,
    samples: Limiter,
}

impl VisitorLimits {
    /// Creates the limiters with the configured limits.
    pub fn new(limits: &LimitsConfig, queue: &Queue) -> Self {
        let limiter = |name, calls| Limiter::new(name, calls, Duration::from_hours(1), queue);
        Self {
            runs: limiter("visitor-runs", limits.visitor_runs_per_hour),
            uploads: limiter("visitor-uploads", limits.visitor_uploads_per_hour),
            samples: limiter("visitor-samples", limits.visitor_uploads_per_hour),
        }
    }

    /// Counts a run; an error if it exceeds the limit.
    pub async fn count_run(&self, visitor: &str) -> Result<(), ApiError> {
        count(&self.runs, visitor, "free runs").await
    }

    /// Takes back a run that was refused because too many wait.
    pub async fn give_back_run(&self, visitor: &str) {
        self.runs.give_back(visitor).await;
    }

    /// Counts an upload, even one that is rejected later, because inspecting a file takes CPU time; an error if it
    /// exceeds the limit.
    pub async fn count_upload(&self, visitor: &str) -> Result<(), ApiError> {
        count(&self.uploads, visitor, "uploads").await
    }

    /// Counts a sample; an error if it exceeds the limit.
    pub async fn count_sample(&self, visitor: &str) -> Result<(), ApiError> {
        count(&self.samples, visitor, "samples").await
    }
}

async fn count(limiter: &Limiter, visitor: &str, what: &str) -> Result<(), ApiError> {
    let Verdict::Beyond { retry_after } = limiter.count(visitor).await else { return Ok(()) };
    let retry_after_secs = retry_after.as_secs() + 1;
    // At least two: the page translates the plural only.
    let minutes = retry_after_secs.div_ceil(60).max(2);
    Err(ApiError::RateLimited {
        detail: format!(
            "Too many {what} from your network. Try again in {minutes} minutes, or sign up."
        ),
        retry_after_secs,
    })
}
