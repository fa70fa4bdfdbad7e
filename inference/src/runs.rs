//! What the models' threads are running right now: so that a run that hangs is noticed from outside, and a device that
//! is lost from anywhere.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// The runs of one process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Runs(Arc<All>);

#[derive(Debug, Default)]
struct All {
    running: Mutex<HashMap<u64, (String, Instant)>>,
    begun: AtomicU64,
    lost: OnceLock<String>,
    is_lost: CancellationToken,
}

impl Runs {
    /// `model` begins to run; it ends when what is returned is dropped.
    pub fn begin(&self, model: &str) -> Run {
        let number = self.0.begun.fetch_add(1, Ordering::Relaxed) + 1;
        self.lock().insert(number, (model.to_owned(), Instant::now()));
        Run { all: self.clone(), number }
    }

    /// The model that has been running longest without a sign of life, and for how long.
    pub fn longest(&self) -> Option<(String, Duration)> {
        let running = self.lock();
        let (model, since) = running.values().min_by_key(|(_, since)| *since)?;
        Some((model.clone(), since.elapsed()))
    }

    /// The device answers nobody in this process any more. Only the first reason is kept.
    pub fn lose_device(&self, why: &str) {
        let _ = self.0.lost.set(why.to_owned());
        self.0.is_lost.cancel();
    }

    /// Why the device is lost, if it is.
    pub fn lost(&self) -> Option<&str> {
        self.0.lost.get().map(String::as_str)
    }

    /// Waits until the device is lost.
    pub async fn wait_for_loss(&self) {
        self.0.is_lost.cancelled().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (String, Instant)>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run of a model.
#[derive(Debug)]
pub struct Run {
    all: Runs,
    number: u64,
}

impl Run {
    /// Which run of this process it is, from 1.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// A sign of life: a run of many steps takes one more.
    pub fn goes_on(&self) {
        if let Some((_, since)) = self.all.lock().get_mut(&self.number) {
            *since = Instant::now();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.all.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_without_a_sign_of_life_for_longest_is_known() {
        let runs = Runs::default();
        assert_eq!(runs.longest(), None);
        let first = runs.begin("first");
        std::thread::sleep(Duration::from_millis(5));
        let second = runs.begin("second");
        assert_eq!(runs.longest().unwrap().0, "first");
        first.goes_on();
        assert_eq!(runs.longest().unwrap().0, "second");
        drop(second);
        assert_eq!(runs.longest().unwrap().0, "first");
        drop(first);
        assert_eq!(runs.longest(), None);
    }

    #[tokio::test]
    async fn a_lost_device_stays_lost_for_its_first_reason() {
        let runs = Runs::default();
        assert_eq!(runs.lost(), None);
        runs.lose_device("an illegal address");
        runs.lose_device("what came of it");
        runs.wait_for_loss().await;
        assert_eq!(runs.lost(), Some("an illegal address"));
    }
}
