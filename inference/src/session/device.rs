//! Who may use the device, so that CUDA can record a graph.
//!
//! A recording is disturbed by what any thread of the process asks of the device meanwhile, an allocation for example, and
//! that call fails. So whoever records holds the device alone, and everybody else shares it.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static DEVICE: RwLock<()> = RwLock::new(());

/// Shares the device with all others that do not record, until the guard is dropped. A thread must not share it twice.
pub fn share() -> RwLockReadGuard<'static, ()> {
    DEVICE.read().unwrap_or_else(PoisonError::into_inner)
}

/// The use of the device until it is dropped.
#[must_use]
pub enum Use {
    /// Beside others.
    Shared { _guard: RwLockReadGuard<'static, ()> },
    /// Alone.
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

/// Holds the device alone to record graphs, and shares it otherwise.
pub fn claim(records: bool) -> Use {
    if records {
        Use::Alone { _guard: DEVICE.write().unwrap_or_else(PoisonError::into_inner) }
    } else {
        Use::Shared { _guard: share() }
    }
}
