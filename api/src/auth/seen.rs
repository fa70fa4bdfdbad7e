//! Tokens that were found good a moment ago. Checking a signature costs more than all else that a request for a
//! small thing does, and a page or a program sends the same token again and again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use super::Identity;

/// How long a token is believed without another look; never beyond its own end.
const BELIEVED: TimeDelta = TimeDelta::minutes(1);
/// How many tokens are remembered.
const MOST: usize = 10_000;

/// The SHA-256 of a token, signature included: nothing else leads back to what was found.
pub(super) type Fingerprint = [u8; 32];

/// What one key has signed. It goes with the key: of a key that the provider withdraws nothing is remembered.
#[derive(Default)]
pub(super) struct Seen(Mutex<HashMap<Fingerprint, (Identity, DateTime<Utc>)>>);

impl Seen {
    /// Who a token speaks for that was found good within the last minute.
    pub fn find(&self, token: &Fingerprint, now: DateTime<Utc>) -> Option<Identity> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (identity, until) = seen.get(token)?;
        // A clock that was set back makes nothing last longer.
        let left = *until - now;
        (left > TimeDelta::zero() && left <= BELIEVED).then(|| identity.clone())
    }

    /// Remembers a token that was found good and is so until `expires`.
    pub fn remember(
        &self,
        token: Fingerprint,
        identity: &Identity,
        now: DateTime<Utc>,
        expires: DateTime<Utc>,
    ) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST {
            seen.retain(|_, (_, until)| *until > now);
        }
        if seen.len() < MOST {
            seen.insert(token, (identity.clone(), expires.min(now + BELIEVED)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { issuer: "i".into(), subject: "ada".into(), email: None, token_made_at: None }
    }

    #[test]
    fn a_token_is_believed_for_a_minute_and_not_beyond_its_end() {
        let now = "2026-03-01T10:00:00Z".parse().expect("a time");
        let after = |secs| now + TimeDelta::seconds(secs);
        let seen = Seen::default();
        seen.remember([1; 32], &identity(), now, after(3600));
        seen.remember([2; 32], &identity(), now, after(5));
        let is_believed = |token: u8, at| seen.find(&[token; 32], at).is_some();
        assert!(is_believed(1, after(59)) && !is_believed(1, after(60)));
        assert!(is_believed(2, after(4)) && !is_believed(2, after(5)), "it has expired");
        assert!(!is_believed(3, now), "nobody has seen it");
        assert!(!is_believed(1, after(-30)), "the clock was set back");
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let now = "2026-03-01T10:00:00Z".parse().expect("a time");
        let seen = Seen::default();
        for number in 0..MOST + 5 {
            let mut token = [0; 32];
            token[..8].copy_from_slice(&(number as u64).to_be_bytes());
            seen.remember(token, &identity(), now, now + TimeDelta::hours(1));
        }
        assert_eq!(seen.0.lock().expect("one").len(), MOST);
        let later = now + TimeDelta::minutes(2);
        seen.remember([9; 32], &identity(), later, later + TimeDelta::hours(1));
        assert_eq!(seen.0.lock().expect("one").len(), 1, "those whose minute is over make room");
    }
}
