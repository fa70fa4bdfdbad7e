//! The one place that changes the books: it keeps the time, saves what changed, and sends the events.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use clap::ValueEnum;
use retouch_core::clock::Clock;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use super::books::{Books, Dispute, DisputeStatus, Refund};
use super::delivery::{Delivery, Parcel};
use super::events::{Event, EventKind, Fate, News};
use super::refusal::Refusal;
use super::sessions::{Outcome, Session};
use super::wire::{self, Cause};
use super::{Settings, new_id};

/// What a buyer, or whoever tests, does to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Pays by card.
    Pay,
    /// Pays by a method whose money comes later.
    PayLater,
    /// Tries a card that is declined.
    Fail,
    /// Waits too long.
    Expire,
    /// The money that was to come later comes, or does not.
    Settle(Outcome),
}

/// How the next requests to create a session go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Failure {
    /// 500; no session is made.
    ServerError,
    /// 429; no session is made.
    RateLimit,
    /// No answer ever; no session is made.
    Hang,
    /// A session is made, but the answer never arrives.
    Lost,
}

/// How often the API was called, and what became of the events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// Requests to create a session, failed ones and repetitions included.
    pub creates: usize,
    /// Those that only repeated an earlier one, by their idempotency key.
    pub replays: usize,
    /// Requests for one session.
    pub retrieves: usize,
    /// Requests to expire a session.
    pub expires: usize,
    /// Requests to give money back.
    pub refunds: usize,
    /// Requests without the right key.
    pub wrong_keys: usize,
    /// Events that a webhook took, copies counted one by one.
    pub webhooks_taken: usize,
    /// Tries that it refused or did not answer.
    pub webhooks_refused: usize,
    /// The `Stripe-Version` of the latest request.
    pub stripe_version: Option<String>,
}

/// Resolves after the first try to deliver the event, or at once where nobody should wait for it.
pub type FirstTry = Option<oneshot::Receiver<()>>;

/// The stand-in's state and all that may happen to it.
pub struct Desk {
    /// Keys and addresses.
    pub settings: Settings,
    clock: Clock,
    state: Mutex<State>,
    outbox: UnboundedSender<Parcel>,
}

struct State {
    books: Books,
    webhooks: Vec<String>,
    delivery: Delivery,
    failing: Option<(Failure, usize)>,
    calls: Calls,
    ahead_secs: i64,
}

impl Desk {
    /// Opens the books; what comes out of the receiver is to be delivered.
    pub fn open(settings: Settings) -> anyhow::Result<(Arc<Self>, UnboundedReceiver<Parcel>)> {
        let books = match file(&settings) {
            Some(path) => Books::load(&path)?,
            None => Books::default(),
        };
        let (outbox, parcels) = mpsc::unbounded_channel();
        let state = State {
            webhooks: settings.webhooks.clone(),
            delivery: settings.delivery.clone(),
            failing: settings.failing,
            books,
            calls: Calls::default(),
            ahead_secs: 0,
        };
        let desk = Self { settings, clock: Clock::system(), state: Mutex::new(state), outbox };
        let waiting = desk.look(|books| {
            let waiting = books.events.iter().filter(|event| event.fate == Fate::Waiting);
            waiting.map(|event| event.id.clone()).collect::<Vec<_>>()
        });
        for event in waiting {
            desk.post(event);
        }
        Ok((Arc::new(desk), parcels))
    }

    /// Reads the books.
    pub fn look<T>(&self, look: impl FnOnce(&Books) -> T) -> T {
        look(&self.up_to_date().books)
    }

    /// Changes the books and sends what is new. `act` must not change anything where it refuses.
    pub fn change<T>(
        &self,
        cause: &Cause,
        act: impl FnOnce(&mut Books, i64) -> Result<(T, Option<News>), Refusal>,
    ) -> Result<(T, FirstTry), Refusal> {
        let mut state = self.up_to_date();
        let now = self.now(&state);
        let (result, news) = act(&mut state.books, now)?;
        let first_try = news.map(|news| self.publish(&mut state, &news, cause, now));
        self.save(&mut state, now);
        Ok((result, first_try))
    }

    /// Does `action` to a session.
    pub fn act(
        &self,
        id: &str,
        action: Action,
        email: Option<&str>,
        cause: &Cause,
    ) -> Result<FirstTry, Refusal> {
        let changed = self.change(cause, |books, now| {
            let session = books.session_mut(id)?;
            let kind = match action {
                Action::Pay => session.pay(email, now).map(Some),
                Action::PayLater => session.pay_later(email, now).map(Some),
                Action::Fail => session.fail(now).map(|()| None),
                Action::Expire => session.expire().map(Some),
                Action::Settle(outcome) => session.settle(outcome).map(Some),
            }?;
            let object = || wire::session(session, &self.settings.public_url);
            Ok(((), kind.map(|kind| News { kind, object: object() })))
        });
        changed.map(|((), first_try)| first_try)
    }

    /// Opens a dispute over the money that came for a session.
    pub fn open_dispute(
        &self,
        session: &str,
        amount: Option<i64>,
        reason: Option<&str>,
    ) -> Result<(Dispute, FirstTry), Refusal> {
        self.change(&Cause::default(), |books, now| {
            let dispute = books.open_dispute(session, amount, reason, now)?;
            let news = dispute_news(books, &dispute, EventKind::DisputeCreated)?;
            Ok((dispute, Some(news)))
        })
    }

    /// Closes a dispute.
    pub fn close_dispute(
        &self,
        id: &str,
        end: DisputeStatus,
    ) -> Result<(Dispute, FirstTry), Refusal> {
        self.change(&Cause::default(), |books, _| {
            let dispute = books.close_dispute(id, end)?;
            let news = dispute_news(books, &dispute, EventKind::DisputeClosed)?;
            Ok((dispute, Some(news)))
        })
    }

    /// Gives money back as somebody at the merchant's would, by hand.
    pub fn refund(
        &self,
        session: &str,
        amount: Option<i64>,
    ) -> Result<(Refund, FirstTry), Refusal> {
        self.change(&Cause::default(), |books, now| {
            let refund = books.refund(session, amount, None, BTreeMap::new(), now)?;
            let news = refund_news(books, &refund)?;
            Ok((refund, Some(news)))
        })
    }

    /// Sends an event once more.
    pub fn resend(&self, event: &str) -> Result<FirstTry, Refusal> {
        let mut state = self.locked();
        let mut events = state.books.events.iter_mut();
        let known = events.find(|known| known.id == event);
        known.ok_or_else(|| Refusal::no_such("event", event))?.fate = Fate::Waiting;
        Ok(Some(self.post(event.to_owned())))
    }

    /// Notices what has expired.
    pub fn tick(&self) {
        drop(self.up_to_date());
    }

    /// Moves the clock of sessions on. Signatures keep to the real time.
    pub fn advance(&self, secs: i64) {
        self.locked().ahead_secs += secs;
        self.tick();
    }

    /// The switches.
    pub fn delivery(&self) -> Delivery {
        self.locked().delivery.clone()
    }

    /// Turns the switches.
    pub fn set_delivery(&self, delivery: Delivery) {
        self.locked().delivery = delivery;
    }

    /// Where events go.
    pub fn webhooks(&self) -> Vec<String> {
        self.locked().webhooks.clone()
    }

    /// Sends events from now on to these addresses.
    pub fn set_webhooks(&self, webhooks: Vec<String>) {
        self.locked().webhooks = webhooks;
    }

    /// Lets the next `count` requests to create a session fail.
    pub fn fail_next(&self, failure: Failure, count: usize) {
        self.locked().failing = Some((failure, count)).filter(|(_, count)| *count > 0);
    }

    /// Takes note of a request to create a session: how it must fail, if it must.
    pub fn begin_create(&self) -> Option<Failure> {
        let mut state = self.locked();
        state.calls.creates += 1;
        let (failure, count) = state.failing?;
        state.failing = Some((failure, count - 1)).filter(|(_, count)| *count > 0);
        Some(failure)
    }

    /// How often what was called.
    pub fn calls(&self) -> Calls {
        self.locked().calls.clone()
    }

    /// Counts a call.
    pub fn count(&self, count: impl FnOnce(&mut Calls)) {
        count(&mut self.locked().calls);
    }

    /// Counts a try to deliver an event.
    pub fn count_webhook(&self, is_taken: bool) {
        let calls = &mut self.locked().calls;
        *(if is_taken { &mut calls.webhooks_taken } else { &mut calls.webhooks_refused }) += 1;
    }

    /// The body of an event and a fresh signature, as right or wrong as the switches want it.
    pub fn signed(&self, event: &str) -> Option<(String, String)> {
        let state = self.locked();
        let event = state.books.events.iter().find(|known| known.id == event)?;
        Some((event.body.clone(), self.signature(&state, &event.body)))
    }

    /// All events with fresh signatures, oldest first; those of one kind where one is named.
    pub fn signed_events(&self, kind: Option<EventKind>) -> Vec<(String, String)> {
        let state = self.up_to_date();
        let events = state.books.events.iter().filter(|it| kind.is_none_or(|kind| it.kind == kind));
        events.map(|it| (it.body.clone(), self.signature(&state, &it.body))).collect()
    }

    /// Notes what became of an event.
    pub fn set_fate(&self, id: &str, fate: Fate) {
        let mut state = self.locked();
        if let Some(event) = state.books.events.iter_mut().find(|event| event.id == id) {
            event.fate = fate;
        }
        let now = self.now(&state);
        self.save(&mut state, now);
    }

    fn signature(&self, state: &State, body: &str) -> String {
        let now = self.clock.now().timestamp();
        state.delivery.sign(&self.settings.webhook_secret, body, now)
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panicked with the books open")
    }

    fn now(&self, state: &State) -> i64 {
        self.clock.now().timestamp() + state.ahead_secs
    }

    /// The state, after everything expired that should have.
    fn up_to_date(&self) -> MutexGuard<'_, State> {
        let mut state = self.locked();
        let now = self.now(&state);
        let overdue = state.books.sessions.values_mut().filter(|session| session.is_overdue(now));
        let expired: Vec<News> = overdue.filter_map(|session| self.expire(session)).collect();
        for news in &expired {
            self.publish(&mut state, news, &Cause::default(), now);
        }
        if !expired.is_empty() {
            self.save(&mut state, now);
        }
        state
    }

    fn expire(&self, session: &mut Session) -> Option<News> {
        let kind = session.expire().ok()?;
        Some(News { kind, object: wire::session(session, &self.settings.public_url) })
    }

    fn publish(
        &self,
        state: &mut State,
        news: &News,
        cause: &Cause,
        now: i64,
    ) -> oneshot::Receiver<()> {
        let id = new_id("evt");
        let envelope = wire::event(&id, news, cause, now, state.webhooks.len());
        state.books.events.push(Event {
            id: id.clone(),
            kind: news.kind,
            created: now,
            // Indented like Stripe's: whoever checks a signature over JSON written anew is found out.
            body: format!("{envelope:#}"),
            fate: Fate::Waiting,
        });
        self.post(id)
    }

    fn post(&self, event: String) -> oneshot::Receiver<()> {
        let (first_try, tried) = oneshot::channel();
        // Nobody listens any more when everything is being stopped; the event is saved.
        self.outbox.send(Parcel { event, first_try }).ok();
        tried
    }

    fn save(&self, state: &mut State, now: i64) {
        let Some(path) = file(&self.settings) else { return };
        state.books.forget_old(now);
        if let Err(error) = state.books.save(&path) {
            tracing::error!(error = format!("{error:#}"), "Could not save {}", path.display());
        }
    }
}

fn file(settings: &Settings) -> Option<PathBuf> {
    settings.data.as_ref().map(|folder| folder.join("stripe.json"))
}

/// The news that money went back.
pub fn refund_news(books: &Books, refund: &Refund) -> Result<News, Refusal> {
    let session = books.session(&refund.session)?;
    let payment = session.payment.as_ref().expect("only what was paid goes back");
    Ok(News { kind: EventKind::ChargeRefunded, object: wire::charge(session, payment) })
}

fn dispute_news(books: &Books, dispute: &Dispute, kind: EventKind) -> Result<News, Refusal> {
    let session = books.session(&dispute.session)?;
    let payment = session.payment.as_ref().expect("only what was paid is disputed");
    Ok(News { kind, object: wire::dispute(session, payment, dispute) })
}
