//! Builds of engines in the background: one at a time, and not while models are being loaded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time without a load or unload that must pass before a build begins.
pub const QUIET: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Builds {
    one: Mutex<()>,
    is_running: AtomicBool,
    ended: AtomicU64,
}

/// A build in progress. Ends when dropped.
pub struct Build<'a> {
    builds: &'a Builds,
    _only: MutexGuard<'a, ()>,
}

impl Drop for Build<'_> {
    fn drop(&mut self) {
        self.builds.is_running.store(false, Ordering::SeqCst);
        self.builds.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl Builds {
    /// Begins a build once no other one runs and, for a moment, `loads` has not changed. `begin_load` blocks while a load is
    /// measured.
    pub fn begin<L>(&self, begin_load: impl Fn() -> L, loads: impl Fn() -> u64) -> Build<'_> {
        let only = self.one.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let before = loads();
            std::thread::sleep(QUIET);
            let load = begin_load();
            if loads() == before {
                // Set this before the load ends, so that the next measured load knows of the build.
                self.is_running.store(true, Ordering::SeqCst);
                drop(load);
                return Build { builds: self, _only: only };
            }
        }
    }

    pub fn is_running(&self) -> bool {
        self.is_running.load(Ordering::SeqCst)
    }

    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }
}
