//! A cache for a value that is expensive to compute: however often it is requested, it is computed once per interval.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// A value that all requests share while it is recent. One of them computes it, and the others wait for it.
pub struct Recent<T> {
    max_age: Duration,
    value: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> Recent<T> {
    /// Creates a value that has not been computed.
    pub fn new(max_age: Duration) -> Self {
        Self { max_age, value: Mutex::new(None) }
    }

    /// Returns the value; `compute` makes it if it is too old. Forgets errors at once.
    pub async fn get<E>(&self, compute: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let mut value = self.value.lock().await;
        if let Some((since, known)) = &*value
            && since.elapsed() < self.max_age
        {
            return Ok(known.clone());
        }
        let made = compute.await?;
        *value = Some((Instant::now(), made.clone()));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_value_is_computed_once_until_it_is_too_old() {
        let (recent, count) = (Recent::new(Duration::from_millis(200)), Cell::new(0));
        let get = || {
            recent.get(async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                count.set(count.get() + 1);
                if count.get() == 1 { Err("an outage") } else { Ok(count.get()) }
            })
        };
        assert_eq!(get().await, Err("an outage"));
        assert_eq!(tokio::join!(get(), get(), get()), (Ok(2), Ok(2), Ok(2)));
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(get().await, Ok(3));
    }
}
