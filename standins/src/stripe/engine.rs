//! Changes the store: applies actions, publishes the resulting events, expires sessions and saves the file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use retouch_core::clock::Clock;
use tokio::sync::mpsc::UnboundedReceiver;

use super::error::StripeError;
use super::events::{Event, EventData, EventKind, Fate, sign};
use super::id::new_id;
use super::objects;
use super::outbox::{Delivery, FirstAttempt, Outbox};
use super::session::Action;
use super::settings::Settings;
use super::store::{Dispute, DisputeStatus, Store};

/// The stand-in's state and everything that can change it.
pub struct Engine {
    pub settings: Settings,
    clock: Clock,
    state: Mutex<State>,
    outbox: Outbox,
}

struct State {
    store: Store,
    /// How many requests to create a session are still to fail.
    failures: usize,
}

impl Engine {
    /// Loads the store and enqueues its undelivered events.
    pub fn open(
        settings: Settings,
        clock: Clock,
    ) -> anyhow::Result<(Arc<Self>, UnboundedReceiver<Delivery>)> {
        let store = match file(&settings) {
            Some(path) => Store::load(&path)?,
            None => Store::default(),
        };
        let (outbox, deliveries) = Outbox::new();
        let state = Mutex::new(State { store, failures: 0 });
        let engine = Self { settings, clock, state, outbox };
        let waiting = engine.read(|store| {
            let waiting = store.events.iter().filter(|event| event.fate == Fate::Waiting);
            waiting.map(|event| event.id.clone()).collect::<Vec<_>>()
        });
        for event in waiting {
            engine.outbox.send(event);
        }
        Ok((Arc::new(engine), deliveries))
    }

    pub fn read<T>(&self, read: impl FnOnce(&Store) -> T) -> T {
        read(&self.up_to_date().store)
    }

    /// Changes the store and publishes the events that `change` returns. `change` must not change anything if it fails.
    /// Returns the first attempt to deliver the last event.
    pub fn change<T, E: IntoIterator<Item = EventData>>(
        &self,
        change: impl FnOnce(&mut Store, i64) -> Result<(T, E), StripeError>,
    ) -> Result<(T, Option<FirstAttempt>), StripeError> {
        let mut state = self.up_to_date();
        let now = self.now();
        let (result, events) = change(&mut state.store, now)?;
        let publish = |event| self.publish(&mut state.store, &event, now);
        let first_attempt = events.into_iter().map(publish).last();
        self.save(&mut state.store, now);
        Ok((result, first_attempt))
    }

    pub fn act(
        &self,
        id: &str,
        action: Action,
        email: Option<&str>,
    ) -> Result<Option<FirstAttempt>, StripeError> {
        let changed = self.change(|store, now| {
            let session = store.session_mut(id)?;
            let kind = session.apply(action, email, now)?;
            let object = objects::session(session, &self.settings.public_url);
            Ok(((), kind.map(|kind| EventData { kind, object })))
        });
        changed.map(|((), first_attempt)| first_attempt)
    }

    /// Refunds `amount`, by default all that is left.
    pub fn refund(
        &self,
        session: &str,
        amount: Option<i64>,
    ) -> Result<Option<FirstAttempt>, StripeError> {
        let changed = self.change(|store, _| {
            store.refund(session, amount)?;
            let session = store.session(session)?;
            let payment = session.payment.as_ref().expect("a refunded session has a payment");
            let object = objects::charge(session, payment);
            Ok(((), Some(EventData { kind: EventKind::ChargeRefunded, object })))
        });
        changed.map(|((), first_attempt)| first_attempt)
    }

    /// Opens a dispute, or an inquiry, over `amount`, by default all that is left.
    pub fn open_dispute(
        &self,
        session: &str,
        amount: Option<i64>,
        status: DisputeStatus,
    ) -> Result<(Dispute, Option<FirstAttempt>), StripeError> {
        self.change(|store, now| {
            let dispute = store.open_dispute(session, amount, status, now)?;
            let events = dispute_events(store, &dispute, EventKind::DisputeCreated)?;
            Ok((dispute, events))
        })
    }

    pub fn move_dispute(
        &self,
        id: &str,
        next: DisputeStatus,
    ) -> Result<Option<FirstAttempt>, StripeError> {
        let changed = self.change(|store, _| {
            let dispute = store.move_dispute(id, next)?;
            let kind = match next {
                DisputeStatus::NeedsResponse | DisputeStatus::WarningNeedsResponse => {
                    EventKind::DisputeUpdated
                }
                DisputeStatus::Won | DisputeStatus::Lost | DisputeStatus::WarningClosed => {
                    EventKind::DisputeClosed
                }
            };
            Ok(((), dispute_events(store, &dispute, kind)?))
        });
        changed.map(|((), first_attempt)| first_attempt)
    }

    /// Expires overdue sessions.
    pub fn tick(&self) {
        drop(self.up_to_date());
    }

    pub fn fail_next(&self, count: usize) {
        self.lock().failures = count;
    }

    /// Counts a request to create a session; returns true if it must fail.
    pub fn take_failure(&self) -> bool {
        let mut state = self.lock();
        let fails = state.failures > 0;
        state.failures = state.failures.saturating_sub(1);
        fails
    }

    /// Returns the body of an event and its current signature.
    pub fn signed(&self, event: &str) -> Option<(String, String)> {
        let state = self.lock();
        let event = state.store.events.iter().find(|known| known.id == event)?;
        Some((event.body.clone(), self.signature(&event.body)))
    }

    /// Returns all events, or all events of one kind, with their current signatures, oldest first.
    pub fn signed_events(&self, kind: Option<EventKind>) -> Vec<(String, String)> {
        let state = self.up_to_date();
        let events = state.store.events.iter().filter(|it| kind.is_none_or(|kind| it.kind == kind));
        events.map(|it| (it.body.clone(), self.signature(&it.body))).collect()
    }

    /// Records whether an event was delivered.
    pub fn set_fate(&self, id: &str, fate: Fate) {
        let mut state = self.lock();
        if let Some(event) = state.store.events.iter_mut().find(|event| event.id == id) {
            event.fate = fate;
        }
        let now = self.now();
        self.save(&mut state.store, now);
    }

    fn signature(&self, body: &str) -> String {
        sign(&self.settings.webhook_secret, body, self.now())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the store was locked")
    }

    fn now(&self) -> i64 {
        self.clock.now().timestamp()
    }

    /// Returns the state after expiring overdue sessions.
    fn up_to_date(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let now = self.now();
        let overdue = state.store.sessions.values_mut().filter(|session| session.is_overdue(now));
        let expired: Vec<EventData> = overdue
            .filter_map(|session| {
                let kind = session.apply(Action::Expire, None, now).ok()??;
                let object = objects::session(session, &self.settings.public_url);
                Some(EventData { kind, object })
            })
            .collect();
        if !expired.is_empty() {
            for event in &expired {
                self.publish(&mut state.store, event, now);
            }
            self.save(&mut state.store, now);
        }
        state
    }

    fn publish(&self, store: &mut Store, event: &EventData, now: i64) -> FirstAttempt {
        let id = new_id("evt");
        let pending_webhooks = usize::from(self.settings.webhook.is_some());
        let envelope = objects::event(&id, event, now, pending_webhooks);
        store.events.push(Event {
            id: id.clone(),
            kind: event.kind,
            created: now,
            // Indented like Stripe's, so that verifying a signature over re-serialized JSON fails here, too.
            body: format!("{envelope:#}"),
            fate: Fate::Waiting,
        });
        self.outbox.send(id)
    }

    fn save(&self, store: &mut Store, now: i64) {
        let Some(path) = file(&self.settings) else { return };
        store.delete_old(now);
        if let Err(error) = store.save(&path) {
            tracing::error!(error = format!("{error:#}"), "Could not save {}", path.display());
        }
    }
}

fn file(settings: &Settings) -> Option<PathBuf> {
    settings.data.as_ref().map(|folder| folder.join("stripe.json"))
}

/// Returns the event of a new status, and the one of the money that moves with it.
fn dispute_events(
    store: &Store,
    dispute: &Dispute,
    kind: EventKind,
) -> Result<Vec<EventData>, StripeError> {
    let session = store.session(&dispute.session)?;
    let payment = session.payment.as_ref().expect("a disputed session has a payment");
    let object = objects::dispute(session, payment, dispute);
    let money = match dispute.status {
        DisputeStatus::NeedsResponse => Some(EventKind::FundsWithdrawn),
        DisputeStatus::Won => Some(EventKind::FundsReinstated),
        DisputeStatus::Lost
        | DisputeStatus::WarningNeedsResponse
        | DisputeStatus::WarningClosed => None,
    };
    let kinds = std::iter::once(kind).chain(money);
    Ok(kinds.map(|kind| EventData { kind, object: object.clone() }).collect())
}
