//! A lock on the device: recording a CUDA graph needs the device exclusively; everything else shares it.
//!
//! If another thread of the process calls the device during a recording, for example to allocate memory, that call
//! fails and disturbs the recording.
//!
//! Loads take seconds to minutes, and every run would wait behind a recording that waits for a load. So no thread
//! records while a model is being loaded.

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use ort::session::Session as OrtSession;

static DEVICE: RwLock<()> = RwLock::new(());
/// Shared by loads. Locked before [`DEVICE`].
static LOADS: RwLock<()> = RwLock::new(());

/// Shares the device with all threads that do not record, until the guard is dropped. A thread must not share it twice.
pub fn share() -> RwLockReadGuard<'static, ()> {
    DEVICE.read().unwrap_or_else(PoisonError::into_inner)
}

/// A session that shares the device while it frees its memory there. Drop it last, because bindings keep it alive, and only
/// while you do not share the device yourself.
pub struct OpenSession(Option<OrtSession>);

impl From<OrtSession> for OpenSession {
    fn from(session: OrtSession) -> Self {
        Self(Some(session))
    }
}

impl Deref for OpenSession {
    type Target = OrtSession;

    fn deref(&self) -> &OrtSession {
        match &self.0 {
            Some(session) => session,
            None => unreachable!("only a drop takes it"),
        }
    }
}

impl DerefMut for OpenSession {
    fn deref_mut(&mut self) -> &mut OrtSession {
        match &mut self.0 {
            Some(session) => session,
            None => unreachable!("only a drop takes it"),
        }
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        let _device = share();
        self.0 = None;
    }
}

/// The use of the device for a load, until it is dropped.
#[must_use]
pub struct LoadUse {
    _device: RwLockReadGuard<'static, ()>,
    _loads: RwLockReadGuard<'static, ()>,
}

/// Same as [`share`], to load a model.
pub fn share_to_load() -> LoadUse {
    let loads = LOADS.read().unwrap_or_else(PoisonError::into_inner);
    LoadUse { _device: share(), _loads: loads }
}

/// The use of the device until it is dropped.
#[must_use]
pub enum Use {
    /// Shared with other threads.
    Shared { _device: RwLockReadGuard<'static, ()> },
    /// Exclusive.
    Alone { _device: RwLockWriteGuard<'static, ()>, _loads: RwLockWriteGuard<'static, ()> },
}

/// Holds the device alone to record graphs, and shares it otherwise. `None` if a recording would wait for a load.
pub fn claim(records: bool) -> Option<Use> {
    if !records {
        return Some(Use::Shared { _device: share() });
    }
    let loads = match LOADS.try_write() {
        Ok(loads) => loads,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    let device = DEVICE.write().unwrap_or_else(PoisonError::into_inner);
    Some(Use::Alone { _device: device, _loads: loads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_records_during_a_load() {
        let load = share_to_load();
        let recorder = std::thread::spawn(|| claim(true).is_none());
        assert!(recorder.join().unwrap(), "it does not wait for the load");
        drop(load);
        // Loads of other tests may be under way.
        while claim(true).is_none() {
            std::thread::yield_now();
        }
    }
}
