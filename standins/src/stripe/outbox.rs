//! The queue of events to deliver.

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

#[derive(Debug)]
pub struct Delivery {
    pub event: String,
    /// Receives a message after the first attempt, or is dropped if there is none.
    pub first_attempt: oneshot::Sender<()>,
}

/// Resolves after the first attempt to deliver an event.
pub type FirstAttempt = oneshot::Receiver<()>;

pub struct Outbox(UnboundedSender<Delivery>);

impl Outbox {
    pub fn new() -> (Self, UnboundedReceiver<Delivery>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    pub fn send(&self, event: String) -> FirstAttempt {
        let (first_attempt, attempted) = oneshot::channel();
        // Fails only on shutdown; the event is stored and sent after the restart.
        self.0.send(Delivery { event, first_attempt }).ok();
        attempted
    }
}
