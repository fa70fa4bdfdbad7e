//! Simulates overload, by refusing a share of the requests with `SlowDown` as S3 does, and missing rights.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use hyper::{Method, Request};

/// Which requests are refused.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Share of requests to refuse with 503 `SlowDown`, from 0 to 1.
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    pub fail_share: f64,
    /// Seed for choosing them: the same seed refuses the same requests, in order of arrival.
    #[arg(long, default_value_t = 0)]
    pub fail_seed: u64,
    /// Refuse to store objects with 403 `AccessDenied`.
    #[arg(long)]
    pub refuse_puts: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("not between 0 and 1".into()) }
}

/// Decides which requests to refuse.
#[derive(Debug)]
pub(super) struct Overload {
    faults: Faults,
    arrived: AtomicU64,
}

impl Overload {
    pub(super) fn new(faults: Faults) -> Self {
        Self { faults, arrived: AtomicU64::new(0) }
    }

    /// Counts a request and returns true if it is to be refused.
    pub(super) fn refuses(&self) -> bool {
        let number = self.arrived.fetch_add(1, Ordering::Relaxed);
        let refused = fraction(self.faults.fail_seed, number) < self.faults.fail_share;
        if refused {
            tracing::info!("Refused request {number}");
        }
        refused
    }

    /// Returns whether the request stores an object, and is to be refused.
    pub(super) fn refuses_to_store<B>(&self, request: &Request<B>) -> bool {
        // Without a key, it creates a bucket.
        let has_key = request.uri().path().trim_matches('/').contains('/');
        self.faults.refuse_puts && request.method() == Method::PUT && has_key
    }
}

/// Returns a pseudorandom number from 0 to 1 that depends only on the arguments (splitmix64).
fn fraction(seed: u64, number: u64) -> f64 {
    let mut mixed = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    mixed as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(fail_share: f64, fail_seed: u64) -> Vec<bool> {
        let overload = Overload::new(Faults { fail_share, fail_seed, ..Faults::default() });
        (0..10_000).map(|_| overload.refuses()).collect()
    }

    #[test]
    fn the_configured_share_is_refused() {
        let count = |share| refused(share, 1).into_iter().filter(|refused| *refused).count();
        assert_eq!(count(0.0), 0);
        assert!((1_900..2_100).contains(&count(0.2)), "{} of 10,000", count(0.2));
        assert_eq!(count(1.0), 10_000);
    }

    #[test]
    fn the_seed_determines_which_requests_are_refused() {
        assert_eq!(refused(0.2, 1), refused(0.2, 1));
        assert_ne!(refused(0.2, 1), refused(0.2, 2));
    }
}
