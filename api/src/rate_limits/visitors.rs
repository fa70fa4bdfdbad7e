//! The limits per hour of visitors, by their pseudonyms, and of the visitors of one IPv6 site together.

use std::time::Duration;

use retouch_core::queue::{Queue, Verdict};

use super::limiter::Limiter;
use crate::config::LimitsConfig;
use crate::error::ApiError;
use crate::visitors::Visitor;

/// How many times as much as one visitor the visitors of one site may do together.
const VISITORS_OF_SITE: u32 = 16;

/// The rate limits of visitors.
pub struct VisitorLimits {
    runs: Limit,
    uploads: Limit,
    samples: Limit,
}

impl VisitorLimits {
    /// Creates the limiters with the configured limits.
    pub fn new(limits: &LimitsConfig, queue: &Queue) -> Self {
        let limiter = |name, calls| Limiter::new(name, calls, Duration::from_hours(1), queue);
        let limit = |name, name_of_site, calls: u32| Limit {
            visitor: limiter(name, calls),
            site: limiter(name_of_site, calls.saturating_mul(VISITORS_OF_SITE)),
        };
        let (runs, uploads) = (limits.visitor_runs_per_hour, limits.visitor_uploads_per_hour);
        Self {
            runs: limit("visitor-runs", "site-runs", runs),
            uploads: limit("visitor-uploads", "site-uploads", uploads),
            samples: limit("visitor-samples", "site-samples", uploads),
        }
    }

    /// Counts a run; an error if it exceeds the limit.
    pub async fn count_run(&self, visitor: &Visitor) -> Result<(), ApiError> {
        self.runs.count(visitor, "free runs").await
    }

    /// Takes back a run that was refused because too many wait.
    pub async fn give_back_run(&self, visitor: &Visitor) {
        self.runs.give_back(visitor).await;
    }

    /// Counts an upload, even one that is rejected later, because inspecting a file takes CPU time; an error if it
    /// exceeds the limit.
    pub async fn count_upload(&self, visitor: &Visitor) -> Result<(), ApiError> {
        self.uploads.count(visitor, "uploads").await
    }

    /// Counts a sample; an error if it exceeds the limit.
    pub async fn count_sample(&self, visitor: &Visitor) -> Result<(), ApiError> {
        self.samples.count(visitor, "samples").await
    }
}

/// The limit of one kind of call.
struct Limit {
    visitor: Limiter,
    site: Limiter,
}

impl Limit {
    async fn count(&self, visitor: &Visitor, what: &str) -> Result<(), ApiError> {
        let mut verdict = self.visitor.count(&visitor.pseudonym).await;
        if let (Verdict::Within { .. }, Some(site)) = (verdict, &visitor.site) {
            verdict = self.site.count(site).await;
            if matches!(verdict, Verdict::Beyond { .. }) {
                self.visitor.give_back(&visitor.pseudonym).await;
            }
        }
        let Verdict::Beyond { retry_after } = verdict else { return Ok(()) };
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

    async fn give_back(&self, visitor: &Visitor) {
        self.visitor.give_back(&visitor.pseudonym).await;
        if let Some(site) = &visitor.site {
            self.site.give_back(site).await;
        }
    }
}
