//! Counts calls in Redis, and in this process while Redis is away.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use retouch_core::queue::{Queue, Rate, Verdict};
use tokio::time::{Instant, timeout};

use super::local::LocalCounts;

/// Maximum wait of a request for Redis before the process counts for itself.
const REDIS_TIMEOUT: Duration = Duration::from_millis(250);
/// How long a process counts for itself before it tries Redis again.
const REDIS_PAUSE: Duration = Duration::from_secs(5);

/// Counts one kind of call.
pub struct Limiter {
    /// Names the counts in Redis.
    name: &'static str,
    pub rate: Rate,
    queue: Queue,
    local: LocalCounts,
    /// Until when Redis is not asked.
    redis_away_until: Mutex<Option<Instant>>,
}

impl Limiter {
    pub fn new(name: &'static str, calls: u32, period: Duration, queue: &Queue) -> Self {
        Self {
            name,
            rate: Rate { calls: calls.max(1), period },
            queue: queue.clone(),
            local: LocalCounts::default(),
            redis_away_until: Mutex::new(None),
        }
    }

    /// Counts a call of `caller`, unless it exceeds the limit.
    pub async fn count(&self, caller: &str) -> Verdict {
        match self.shared(caller, 1).await {
            Some(verdict) => verdict,
            None => self.local.count(caller, self.rate, Instant::now(), 1),
        }
    }

    /// Takes back a call that was counted but could not be served.
    pub async fn give_back(&self, caller: &str) {
        if self.shared(caller, -1).await.is_none() {
            self.local.count(caller, self.rate, Instant::now(), -1);
        }
    }

    /// Counts in Redis; `None` while it is away.
    async fn shared(&self, caller: &str, calls: i32) -> Option<Verdict> {
        let now = Instant::now();
        if self.away_until().is_some_and(|until| now < until) {
            return None;
        }
        let name = format!("{}:{caller}", self.name);
        let error = match timeout(REDIS_TIMEOUT, self.queue.count(&name, self.rate, calls)).await {
            Ok(Ok(verdict)) => {
                // By then, each allowance that was counted here is full again.
                let is_over = |until: &mut Instant| now > *until + self.rate.period;
                if self.away_until().take_if(is_over).is_some() {
                    self.local.clear();
                }
                return Some(verdict);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        tracing::warn!(error, "Could not count {} in Redis; counting in this process", self.name);
        *self.away_until() = Some(now + REDIS_PAUSE);
        None
    }

    fn away_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.redis_away_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use retouch_standins::redis_server::RedisServer;

    use super::*;

    #[tokio::test]
    async fn what_this_process_counted_is_forgotten_once_it_no_longer_matters() {
        let redis = RedisServer::start();
        let queue = Queue::new(&redis.config()).expect("an address");
        let limiter = Limiter::new("test", 3, Duration::from_mins(1), &queue);
        for (secs_ago, is_forgotten) in [(50, false), (70, true)] {
            let until = Instant::now().checked_sub(Duration::from_secs(secs_ago));
            *limiter.away_until() = until;
            limiter.local.count("ada", limiter.rate, Instant::now(), 1);
            assert!(matches!(limiter.count("bob").await, Verdict::Within { .. }));
            assert_eq!(limiter.local.is_empty(), is_forgotten, "{secs_ago} s ago");
        }
    }
}
