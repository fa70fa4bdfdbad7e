//! Turns at something that takes much memory, so that no caller fills the queue for it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets each caller do a few things at once; the others of the same caller wait.
pub struct Turns<Caller> {
    at_once: usize,
    callers: Mutex<HashMap<Caller, Weak<Semaphore>>>,
}

/// A caller's turn, until it is dropped.
#[must_use]
pub struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl<Caller: Eq + Hash> Turns<Caller> {
    pub fn new(at_once: usize) -> Self {
        Self { at_once, callers: Mutex::default() }
    }

    /// Waits for the caller's turn.
    pub async fn take(&self, caller: Caller) -> anyhow::Result<Turn> {
        let own = self.of(caller);
        Ok(Turn { _permit: own.acquire_owned().await? })
    }

    fn of(&self, caller: Caller) -> Arc<Semaphore> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|_, own| own.strong_count() > 0);
        if let Some(own) = callers.get(&caller).and_then(Weak::upgrade) {
            return own;
        }
        let own = Arc::new(Semaphore::new(self.at_once));
        callers.insert(caller, Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_caller_waits_only_for_itself() {
        let turns = Turns::new(2);
        let take = |caller| turns.take(caller).now_or_never();
        let first = take("ada");
        let second = take("ada");
        assert!(first.is_some() && second.is_some() && take("ada").is_none());
        assert!(take("bob").is_some());
        drop(first);
        let third = take("ada");
        assert!(third.is_some() && take("ada").is_none());
        drop((second, third));
        assert!(take("bob").is_some());
        assert_eq!(turns.callers.lock().map(|callers| callers.len()).ok(), Some(1));
    }
}
