//! The threads that own models. A process waits for them before it exits: exit handlers would unload CUDA while a
//! thread still frees its memory on the card, which may end the process with a signal.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

static COUNT: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// Counts a thread until it is dropped.
pub(super) struct Alive(());

impl Alive {
    pub(super) fn new() -> Self {
        *COUNT.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        *COUNT.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_all();
    }
}

/// Waits until all of these threads have ended, for up to `limit`.
pub fn wait_until_freed(limit: Duration) {
    let count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
    drop(ENDED.wait_timeout_while(count, limit, |count| *count > 0));
}
