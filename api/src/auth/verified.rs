//! A cache of recently verified tokens. Verifying a signature is the most expensive part of a small request, and
//! clients send the same token again and again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use super::identity::Identity;

/// How long a verification counts, at most until the token expires.
const LIFETIME: TimeDelta = TimeDelta::minutes(1);
/// The maximum number of cached tokens.
const CAPACITY: usize = 10_000;

/// The SHA-256 of a whole token, including its signature.
pub(super) type Fingerprint = [u8; 32];

/// The verified tokens of one key. The cache lives as long as the key, so that tokens of a withdrawn key are no longer
/// accepted.
#[derive(Default)]
pub(super) struct VerifiedTokens(Mutex<HashMap<Fingerprint, (Identity, DateTime<Utc>)>>);

impl VerifiedTokens {
    /// Returns the identity of a token that was verified within the last minute.
    pub fn find(&self, token: &Fingerprint, now: DateTime<Utc>) -> Option<Identity> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (identity, until) = tokens.get(token)?;
        // The upper bound keeps entries from living longer if the clock is set back.
        let left = *until - now;
        (left > TimeDelta::zero() && left <= LIFETIME).then(|| identity.clone())
    }

    /// Caches a verified token that expires at `expires`. Does nothing if the cache is full.
    pub fn insert(
        &self,
        token: Fingerprint,
        identity: &Identity,
        now: DateTime<Utc>,
        expires: DateTime<Utc>,
    ) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= CAPACITY {
            tokens.retain(|_, (_, until)| *until > now);
        }
        if tokens.len() < CAPACITY {
            tokens.insert(token, (identity.clone(), expires.min(now + LIFETIME)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { issuer: "i".into(), subject: "ada".into(), email: None, token_issued_at: None }
    }

    #[test]
    fn a_token_stays_for_a_minute_but_not_beyond_its_expiry() {
        let now = "2026-03-01T10:00:00Z".parse().expect("a time");
        let after = |secs| now + TimeDelta::seconds(secs);
        let tokens = VerifiedTokens::default();
        tokens.insert([1; 32], &identity(), now, after(3600));
        tokens.insert([2; 32], &identity(), now, after(5));
        let is_cached = |token: u8, at| tokens.find(&[token; 32], at).is_some();
        assert!(is_cached(1, after(59)) && !is_cached(1, after(60)));
        assert!(is_cached(2, after(4)) && !is_cached(2, after(5)), "the token has expired");
        assert!(!is_cached(3, now), "an unknown token");
        assert!(!is_cached(1, after(-30)), "the clock was set back");
    }

    #[test]
    fn a_full_cache_drops_only_stale_tokens() {
        let now = "2026-03-01T10:00:00Z".parse().expect("a time");
        let tokens = VerifiedTokens::default();
        for number in 0..CAPACITY + 5 {
            let mut token = [0; 32];
            token[..8].copy_from_slice(&(number as u64).to_be_bytes());
            tokens.insert(token, &identity(), now, now + TimeDelta::hours(1));
        }
        assert_eq!(tokens.0.lock().expect("no panic").len(), CAPACITY);
        let later = now + TimeDelta::minutes(2);
        tokens.insert([9; 32], &identity(), later, later + TimeDelta::hours(1));
        assert_eq!(tokens.0.lock().expect("no panic").len(), 1, "stale tokens make room");
    }
}
