//! Counts calls in this process while Redis is unavailable.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use retouch_core::queue::{Rate, Verdict};
use tokio::time::Instant;

/// How many callers to remember at most.
const MAX_CALLERS: usize = 100_000;

/// The callers, and when the allowance of each is full again.
#[derive(Default)]
pub struct LocalCounts(Mutex<HashMap<String, Instant>>);

impl LocalCounts {
    /// Counts `calls` of `caller`, or takes them back if negative; the same rule as [`retouch_core::queue::Queue::count`].
    pub fn count(&self, caller: &str, rate: Rate, now: Instant, calls: i32) -> Verdict {
        let mut callers = self.callers();
        if callers.len() >= MAX_CALLERS {
            callers.retain(|_, full_at| *full_at > now);
            // Walking over all of them must stay rare. Redis may forget everybody, too.
            if callers.len() > MAX_CALLERS / 2 {
                callers.clear();
            }
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

    /// Forgets all callers.
    pub fn clear(&self) {
        *self.callers() = HashMap::new();
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.callers().is_empty()
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn countless_callers_take_neither_memory_nor_time() {
        let (counts, rate) =
            (LocalCounts::default(), Rate { calls: 1, period: Duration::from_hours(1) });
        let start = Instant::now();
        let mut most = 0;
        for caller in 0..3 * MAX_CALLERS {
            counts.count(&caller.to_string(), rate, start, 1);
            most = most.max(counts.callers().len());
        }
        assert_eq!(most, MAX_CALLERS);
        // Walking over all callers at every call would take an hour.
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        counts.clear();
        assert!(counts.is_empty());
    }
}
