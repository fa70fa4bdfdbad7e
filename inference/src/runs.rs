//! The runs in progress on model threads, and the loads of models that gave way. The watchdog reads them to notice one
//! that hangs, and a lost device.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// The runs in progress in one process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Runs(Arc<State>);

#[derive(Debug, Default)]
struct State {
    running: Mutex<HashMap<u64, Running>>,
    started: AtomicU64,
    loads: AtomicU64,
    device_lost: OnceLock<String>,
    device_loss: CancellationToken,
}

#[derive(Debug)]
struct Running {
    kind: Kind,
    model: String,
    heartbeat: Instant,
}

/// The activity of a model's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Run,
    /// It loads the model again, which gives no heartbeat.
    Load,
}

impl Runs {
    /// Records the start of a run of `model`. The run ends when the returned guard is dropped.
    pub fn start(&self, model: &str) -> Run {
        let number = self.0.started.fetch_add(1, Ordering::Relaxed) + 1;
        self.insert(number, Kind::Run, model)
    }

    /// Records that `model` is being loaded again, until the returned guard is dropped.
    pub fn start_load(&self, model: &str) -> Run {
        // Counts down, because runs are numbered from 1 without gaps.
        let number = u64::MAX - self.0.loads.fetch_add(1, Ordering::Relaxed);
        self.insert(number, Kind::Load, model)
    }

    fn insert(&self, number: u64, kind: Kind, model: &str) -> Run {
        let running = Running { kind, model: model.to_owned(), heartbeat: Instant::now() };
        self.lock().insert(number, running);
        Run { runs: self.clone(), number }
    }

    /// Returns the model of the run, or the load, whose last heartbeat is oldest, and the time since then.
    pub fn longest_silent(&self, kind: Kind) -> Option<(String, Duration)> {
        let running = self.lock();
        let of_kind = running.values().filter(|running| running.kind == kind);
        let Running { model, heartbeat, .. } = of_kind.min_by_key(|running| running.heartbeat)?;
        Some((model.clone(), heartbeat.elapsed()))
    }

    /// Marks the device as lost for this process. Only the first reason is kept.
    pub fn set_device_lost(&self, reason: &str) {
        let _ = self.0.device_lost.set(reason.to_owned());
        self.0.device_loss.cancel();
    }

    /// Returns why the device is lost; `None` while it works.
    pub fn device_lost(&self) -> Option<&str> {
        self.0.device_lost.get().map(String::as_str)
    }

    pub async fn wait_for_device_loss(&self) {
        self.0.device_loss.cancelled().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Running>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run or load of a model, in progress until this is dropped.
#[derive(Debug)]
pub struct Run {
    runs: Runs,
    number: u64,
}

impl Run {
    /// Returns the number of this run in the process, from 1.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Records that the run still makes progress. Runs of many steps call this after each.
    pub fn heartbeat(&self) {
        if let Some(running) = self.runs.lock().get_mut(&self.number) {
            running.heartbeat = Instant::now();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let run = self.runs.lock().remove(&self.number);
        // Before the callers hear of it: their run may be the cause.
        if std::thread::panicking() {
            let model = run.map_or_else(String::new, |run| run.model);
            self.runs.set_device_lost(&format!("a run of model {model} panicked"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_with_the_oldest_heartbeat_is_found() {
        let runs = Runs::default();
        assert_eq!(runs.longest_silent(Kind::Run), None);
        let first = runs.start("first");
        std::thread::sleep(Duration::from_millis(5));
        let second = runs.start("second");
        assert_eq!(runs.longest_silent(Kind::Run).unwrap().0, "first");
        first.heartbeat();
        assert_eq!(runs.longest_silent(Kind::Run).unwrap().0, "second");
        drop(second);
        assert_eq!(runs.longest_silent(Kind::Run).unwrap().0, "first");
        let load = runs.start_load("third");
        assert_eq!(runs.longest_silent(Kind::Load).unwrap().0, "third");
        drop((first, load));
        assert_eq!(runs.longest_silent(Kind::Load), None);
        assert_eq!(runs.longest_silent(Kind::Run), None);
    }

    #[tokio::test]
    async fn only_the_first_reason_for_a_lost_device_is_kept() {
        let runs = Runs::default();
        assert_eq!(runs.device_lost(), None);
        runs.set_device_lost("an illegal address");
        runs.set_device_lost("a consequence of the first");
        runs.wait_for_device_loss().await;
        assert_eq!(runs.device_lost(), Some("an illegal address"));
    }
}
