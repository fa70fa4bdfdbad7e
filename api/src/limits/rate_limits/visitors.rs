//! The limits per hour of visitors, by their pseudonyms, and of the visitors of one IPv6 site together.

use std::time::Duration;

use retouch_core::queue::{Queue, Verdict};

use super::limiter::Limiter;
use crate::auth::visitors::Visitor;
use crate::config::LimitsConfig;
use crate::error::ApiError;

/// How many times as much as one visitor the visitors of one site may do together.
const VISITORS_OF_SITE: u32 = 16;

pub struct VisitorLimits {
    pub runs: VisitorLimit,
    /// Uploads, also of files that are rejected later, because inspecting a file takes CPU time.
    pub uploads: VisitorLimit,
    pub samples: VisitorLimit,
}

/// The limit of one kind of call.
pub struct VisitorLimit {
    /// The kind of call, in the plural.
    what: &'static str,
    visitor: Limiter,
    site: Limiter,
}

impl VisitorLimits {
    /// Creates the limiters with the configured limits.
    pub fn new(limits: &LimitsConfig, queue: &Queue) -> Self {
        let limiter = |name, calls| Limiter::new(name, calls, Duration::from_hours(1), queue);
        let limit = |what, name, name_of_site, calls: u32| VisitorLimit {
            what,
            visitor: limiter(name, calls),
            site: limiter(name_of_site, calls.saturating_mul(VISITORS_OF_SITE)),
        };
        let (runs, uploads) = (limits.visitor_runs_per_hour, limits.visitor_uploads_per_hour);
        Self {
            runs: limit("free runs", "visitor-runs", "site-runs", runs),
            uploads: limit("uploads", "visitor-uploads", "site-uploads", uploads),
            samples: limit("samples", "visitor-samples", "site-samples", uploads),
        }
    }
}

impl VisitorLimit {
    /// Counts a call of `visitor`; an error if it exceeds the limit.
    pub async fn count(&self, visitor: &Visitor) -> Result<(), ApiError> {
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
        let (what, minutes) = (self.what, retry_after_secs.div_ceil(60).max(2));
        Err(ApiError::RateLimited {
            detail: format!(
                "Too many {what} from your network. Try again in {minutes} minutes, or sign up."
            ),
            retry_after_secs,
        })
    }

    /// Takes back a call that was counted but could not be served.
    pub async fn give_back(&self, visitor: &Visitor) {
        self.visitor.give_back(&visitor.pseudonym).await;
        if let Some(site) = &visitor.site {
            self.site.give_back(site).await;
        }
    }
}
