//! Rate limits that all processes share. Redis may forget them, and then everybody starts with a full allowance.

use std::time::Duration;

use redis::RedisResult;

use super::{Queue, QueueError};

/// The generic cell rate algorithm (ITU-T I.371, annex A), on the clock of the Redis server. The value of a key is the
/// time in microseconds at which the caller's allowance is full again.
const COUNT: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, limit, calls = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + calls * interval
local used = math.max(full_at - now, 0)
if used <= limit * interval then
    if used == 0 then
        redis.call('DEL', KEYS[1])
    else
        redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil(used / 1000))
    end
end
return used
";

/// A rate limit: `calls` at once, replenished evenly over `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The greatest number of calls, at least 1.
    pub calls: u32,
    /// The time after which all calls are replenished.
    pub period: Duration,
}

impl Rate {
    /// Returns the time in which one call is replenished, in whole microseconds.
    pub fn interval(self) -> Duration {
        Duration::from_micros(self.period.as_micros() as u64 / u64::from(self.calls))
    }

    /// Judges a call after which the allowance takes `used` to be full again.
    pub fn judge(self, used: Duration) -> Verdict {
        let whole = self.interval() * self.calls;
        match whole.checked_sub(used) {
            Some(left) => {
                let remaining = left.as_micros() / self.interval().as_micros().max(1);
                Verdict::Within { remaining: remaining as u32 }
            }
            None => Verdict::Beyond { retry_after: used.saturating_sub(whole) },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call is within the limit and was counted.
    Within {
        /// The calls that are still allowed right now.
        remaining: u32,
    },
    /// The call exceeds the limit and was not counted.
    Beyond {
        /// When the next call is allowed.
        retry_after: Duration,
    },
}

impl Queue {
    /// Counts `calls` under `name`; a negative number undoes earlier calls.
    pub async fn count(&self, name: &str, rate: Rate, calls: i32) -> Result<Verdict, QueueError> {
        let used: RedisResult<u64> = redis::cmd("EVAL")
            .arg(COUNT)
            .arg(1)
            .arg(format!("{}:rate:{name}", self.prefix))
            .arg(rate.interval().as_micros() as u64)
            .arg(rate.calls)
            .arg(calls)
            .query_async(&mut self.conn.clone())
            .await;
        Ok(rate.judge(Duration::from_micros(used?)))
    }
}
