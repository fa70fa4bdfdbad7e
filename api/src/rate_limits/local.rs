//! Counts calls in this process, for the time in which Redis is away.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use retouch_core::queue::{Rate, Verdict};
use tokio::time::Instant;

/// How many callers to remember before forgetting those whose allowance is full again.
const MAX_CALLERS: usize = 100_000;

/// The callers, and when the allowance of each is full again.
#[derive(Default)]
pub struct LocalCounts(Mutex<HashMap<String, Instant>>);

impl LocalCounts {
    /// Counts `calls` of `caller`, or takes them back if negative; the same rule as [`retouch_core::queue::Queue::count`].
    pub fn count(&self, caller: &str, rate: Rate, now: Instant, calls: i32) -> Verdict {
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() > MAX_CALLERS {
            callers.retain(|_, full_at| *full_at > now);
        }
        let full_at = callers.get(caller).copied().unwrap_or(now).max(now);
        let cost = rate.interval() * calls.unsigned_abs();
        let full_at = if calls < 0 {
            full_at.checked_sub(cost).map_or(now, |earlier| earlier.max(now))
        } else {
            full_at + cost
        };
        let verdict = rate.judge(full_at - now);
        if matches!(verdict, Verdict::Within { .. }) {
            callers.insert(caller.to_owned(), full_at);
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_are_replenished_evenly_and_can_be_taken_back() {
        let (counts, rate) =
            (LocalCounts::default(), Rate { calls: 3, period: Duration::from_mins(1) });
        let start = Instant::now();
        let count = |caller, secs, calls| {
            counts.count(caller, rate, start + Duration::from_secs(secs), calls)
        };
        for remaining in [2, 1, 0] {
            assert_eq!(count("ada", 0, 1), Verdict::Within { remaining });
        }
        let beyond = |secs| Verdict::Beyond { retry_after: Duration::from_secs(secs) };
        assert_eq!(count("ada", 5, 1), beyond(15));
        assert_eq!(count("ada", 5, 1), beyond(15), "a refused call does not count");
        assert_eq!(count("bob", 5, 1), Verdict::Within { remaining: 2 });
        assert_eq!(count("ada", 20, 1), Verdict::Within { remaining: 0 });
        count("ada", 20, -1);
        assert_eq!(count("ada", 20, 1), Verdict::Within { remaining: 0 });
        assert_eq!(count("ada", 500, -1), Verdict::Within { remaining: 3 });
        assert_eq!(count("ada", 500, 1), Verdict::Within { remaining: 2 }, "never above the limit");
    }
}
