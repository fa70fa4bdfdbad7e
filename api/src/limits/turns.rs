//! Limits how much each caller may have in a shared queue, such as that for picture memory, so that no caller fills the
//! queue, or occupies all of the memory by reading slowly.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::limits::reserved_file::kept_with;

/// Lets each caller do something a few times at once. Further work of that caller waits; renderings also wait while its
/// unread files take its share of the memory.
pub struct Turns<CallerId> {
    at_once: usize,
    callers: Mutex<HashMap<CallerId, Weak<Own>>>,
}

/// The turns and the memory that a caller uses.
struct Own {
    turns: Arc<Semaphore>,
    /// The memory of files that are not sent yet, in bytes.
    unsent: watch::Sender<usize>,
}

/// A caller's turn, until it is dropped.
#[must_use]
pub struct Turn {
    own: Arc<Own>,
    _permit: OwnedSemaphorePermit,
}

/// A file that is not sent yet.
struct Unsent {
    own: Arc<Own>,
    bytes: usize,
}

impl<CallerId: Eq + Hash> Turns<CallerId> {
    pub fn new(at_once: usize) -> Self {
        Self { at_once, callers: Mutex::default() }
    }

    /// Waits for the turn of a caller who renders no files.
    pub async fn next(&self, caller: CallerId) -> anyhow::Result<Turn> {
        self.take(caller, usize::MAX).await
    }

    /// Waits for the turn of a caller whose share of the memory is `share` bytes.
    pub async fn take(&self, caller: CallerId, share: usize) -> anyhow::Result<Turn> {
        let own = self.of(caller);
        let permit = Arc::clone(&own.turns).acquire_owned().await?;
        own.unsent.subscribe().wait_for(|bytes| *bytes < share).await?;
        Ok(Turn { own, _permit: permit })
    }

    fn of(&self, caller: CallerId) -> Arc<Own> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|_, own| own.strong_count() > 0);
        if let Some(own) = callers.get(&caller).and_then(Weak::upgrade) {
            return own;
        }
        let turns = Arc::new(Semaphore::new(self.at_once));
        let own = Arc::new(Own { turns, unsent: watch::Sender::new(0) });
        callers.insert(caller, Arc::downgrade(&own));
        own
    }
}

impl Turn {
    /// Ends the turn, and counts `bytes` of memory as the caller's until the last copy of `file` is dropped.
    pub fn end_with(self, file: Bytes, bytes: usize) -> Bytes {
        self.own.unsent.send_modify(|unsent| *unsent += bytes);
        kept_with(file, Unsent { own: self.own, bytes })
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.own.unsent.send_modify(|unsent| *unsent -= self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_caller_waits_only_for_itself() {
        let turns = Turns::new(2);
        let take = |caller| turns.take(caller, 100).now_or_never();
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

    #[tokio::test]
    async fn a_turn_ends_with_its_file_and_a_caller_waits_while_its_unsent_files_fill_its_share() {
        let turns = Turns::new(1);
        let take = |caller| turns.take(caller, 100).now_or_never().map(|turn| turn.expect("open"));
        let file = || Bytes::from_static(b"file");
        let first = take("ada").expect("the first turn").end_with(file(), 60);
        // Only the finished file shows how large it is.
        let second = take("ada").expect("60 of 100 are used").end_with(file(), 900);
        assert!(take("ada").is_none() && take("bob").is_some());
        drop(first);
        assert!(take("ada").is_none(), "900 are used");
        drop(second);
        assert!(take("ada").is_some());
    }
}
