//! The stand-in's data: sessions, disputes, events and idempotent responses, in memory and optionally in a file.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::StripeError;
use super::events::{Event, Fate};
use super::id::new_id;
use super::session::{Payment, PaymentState, Session};

const DAY: i64 = 24 * 60 * 60;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Store {
    /// By id, oldest first.
    pub sessions: BTreeMap<String, Session>,
    /// By id, oldest first.
    pub disputes: BTreeMap<String, Dispute>,
    /// Oldest first.
    pub events: Vec<Event>,
    /// The responses to requests with an idempotency key, by key.
    answers: BTreeMap<String, Answer>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dispute {
    /// `du_…`
    pub id: String,
    pub session: String,
    /// In the currency's smallest unit.
    pub amount: i64,
    /// Seconds since 1970.
    pub created: i64,
    pub status: DisputeStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisputeStatus {
    /// An inquiry, which withdraws no money.
    WarningNeedsResponse,
    /// An inquiry that ended without a dispute.
    WarningClosed,
    /// Undecided.
    NeedsResponse,
    /// The merchant keeps the money.
    Won,
    /// The buyer gets the money back.
    Lost,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    /// A digest of path and fields.
    request: String,
    body: Value,
    at: i64,
}

impl Store {
    /// Reads the file; a missing file is an empty store.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text)
                .with_context(|| format!("reading {}; delete it to start over", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Writes the file atomically.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let mut fresh = PathBuf::from(path).into_os_string();
        fresh.push(".new");
        let mut options = std::fs::OpenOptions::new();
        // Readable only by the owner: it contains email addresses.
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)?;
        Ok(())
    }

    pub fn session(&self, id: &str) -> Result<&Session, StripeError> {
        self.sessions.get(id).ok_or_else(|| StripeError::not_found("checkout.session", id))
    }

    pub fn session_mut(&mut self, id: &str) -> Result<&mut Session, StripeError> {
        self.sessions.get_mut(id).ok_or_else(|| StripeError::not_found("checkout.session", id))
    }

    /// Returns the payment of a paid session, and how much of it can still be refunded.
    fn charge(&mut self, session: &str) -> Result<(&mut Payment, i64), StripeError> {
        let session = self.session_mut(session)?;
        let amount = session.amount();
        let paid = session.payment.as_mut().filter(|it| it.state == PaymentState::Succeeded);
        let payment = paid.ok_or_else(|| {
            StripeError::invalid("This PaymentIntent does not have a successful charge.")
        })?;
        let left = amount - payment.refunded;
        Ok((payment, left))
    }

    /// Refunds `amount`, by default all that is left.
    pub fn refund(&mut self, session: &str, amount: Option<i64>) -> Result<(), StripeError> {
        let (payment, left) = self.charge(session)?;
        if payment.disputed {
            let message =
                format!("Charge {} has been charged back; cannot issue a refund.", payment.charge);
            return Err(StripeError::invalid(message).with_code("charge_disputed"));
        }
        if left == 0 {
            let message = format!("Charge {} has already been refunded.", payment.charge);
            return Err(StripeError::invalid(message).with_code("charge_already_refunded"));
        }
        let amount = amount.unwrap_or(left);
        if amount < 1 || amount > left {
            let message = format!("The refund must be between 1 and {left}, not {amount}.");
            return Err(StripeError::invalid(message).with_param("amount"));
        }
        payment.refunded += amount;
        Ok(())
    }

    /// Opens a dispute, or an inquiry, over `amount`, by default all that is left.
    pub fn open_dispute(
        &mut self,
        session: &str,
        amount: Option<i64>,
        status: DisputeStatus,
        now: i64,
    ) -> Result<Dispute, StripeError> {
        let (payment, left) = self.charge(session)?;
        if payment.disputed {
            return Err(StripeError::invalid("This charge has already been disputed."));
        }
        let amount = amount.unwrap_or(left);
        if amount < 1 || amount > left {
            let message = format!("The dispute must be between 1 and {left}, not {amount}.");
            return Err(StripeError::invalid(message).with_param("amount"));
        }
        payment.disputed = true;
        let dispute =
            Dispute { id: new_id("du"), session: session.to_owned(), amount, created: now, status };
        self.disputes.insert(dispute.id.clone(), dispute.clone());
        Ok(dispute)
    }

    /// Moves a dispute to its next status: an inquiry becomes a dispute or closes, a dispute is decided.
    pub fn move_dispute(&mut self, id: &str, next: DisputeStatus) -> Result<Dispute, StripeError> {
        use DisputeStatus::{Lost, NeedsResponse, WarningClosed, WarningNeedsResponse, Won};
        let dispute =
            self.disputes.get_mut(id).ok_or_else(|| StripeError::not_found("dispute", id))?;
        match (dispute.status, next) {
            (WarningNeedsResponse, NeedsResponse | WarningClosed) | (NeedsResponse, Won | Lost) => {
                dispute.status = next;
                Ok(dispute.clone())
            }
            (Won | Lost | WarningClosed, _) => {
                Err(StripeError::invalid("This dispute has already been closed."))
            }
            _ => Err(StripeError::invalid("This dispute cannot get that status.")),
        }
    }

    /// Returns the stored response for an idempotency key; an error if the key belongs to a different request.
    pub fn answer(&self, key: &str, request: &str) -> Result<Option<Value>, StripeError> {
        match self.answers.get(key) {
            Some(answer) if answer.request == request => Ok(Some(answer.body.clone())),
            Some(_) => Err(StripeError::key_reused(key)),
            None => Ok(None),
        }
    }

    /// Stores a response for a day. Errors are not stored, so the same key can be used again.
    pub fn remember(&mut self, key: &str, request: String, body: &Value, now: i64) {
        self.answers.insert(key.to_owned(), Answer { request, body: body.clone(), at: now });
    }

    /// Deletes responses after a day and delivered events after 30 days.
    pub fn delete_old(&mut self, now: i64) {
        self.answers.retain(|_, answer| now - answer.at < DAY);
        self.events.retain(|event| event.fate == Fate::Waiting || now - event.created < 30 * DAY);
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::Action;
    use super::super::session::tests::session;
    use super::DisputeStatus::{Lost, NeedsResponse, WarningClosed, WarningNeedsResponse, Won};
    use super::*;

    const ID: &str = "cs_test_1";

    fn store_with(action: Option<Action>) -> Store {
        let mut store = Store::default();
        let mut session = session();
        if let Some(action) = action {
            session.apply(action, Some("a@b.c"), 1500).unwrap();
        }
        store.sessions.insert(session.id.clone(), session);
        store
    }

    #[test]
    fn refunds_never_exceed_the_payment() {
        let mut store = store_with(Some(Action::Pay));
        assert!(store.refund(ID, Some(0)).is_err());
        assert!(store.refund(ID, Some(201)).is_err());
        store.refund(ID, Some(50)).unwrap();
        assert!(store.refund(ID, Some(151)).is_err());
        store.refund(ID, None).unwrap();
        assert_eq!(store.session(ID).unwrap().payment.as_ref().unwrap().refunded, 200);
        assert!(store.refund(ID, None).is_err());
    }

    #[test]
    fn only_paid_sessions_can_be_refunded_or_disputed() {
        for action in [None, Some(Action::PayLater)] {
            let mut store = store_with(action);
            assert!(store.refund(ID, None).is_err());
            assert!(store.open_dispute(ID, None, NeedsResponse, 1600).is_err());
        }
    }

    #[test]
    fn a_dispute_is_opened_and_closed_once_and_blocks_refunds() {
        let mut store = store_with(Some(Action::Pay));
        store.refund(ID, Some(50)).unwrap();
        let dispute = store.open_dispute(ID, None, NeedsResponse, 1600).unwrap();
        assert_eq!(dispute.amount, 150);
        assert!(store.open_dispute(ID, None, NeedsResponse, 1600).is_err());
        assert!(store.refund(ID, Some(1)).is_err());
        assert!(store.move_dispute(&dispute.id, WarningClosed).is_err());
        let closed = store.move_dispute(&dispute.id, Lost).unwrap();
        assert_eq!(closed.status, Lost);
        assert!(store.move_dispute(&dispute.id, Won).is_err());
    }

    #[test]
    fn an_inquiry_closes_or_becomes_a_dispute() {
        let mut store = store_with(Some(Action::Pay));
        let inquiry = store.open_dispute(ID, None, WarningNeedsResponse, 1600).unwrap();
        assert!(store.move_dispute(&inquiry.id, Won).is_err());
        store.move_dispute(&inquiry.id, NeedsResponse).unwrap();
        store.move_dispute(&inquiry.id, Won).unwrap();
    }

    #[test]
    fn a_key_returns_its_response_only_for_the_same_request() {
        let mut store = Store::default();
        assert_eq!(store.answer("k", "digest"), Ok(None));
        store.remember("k", "digest".into(), &"the response".into(), 1000);
        assert_eq!(store.answer("k", "digest"), Ok(Some("the response".into())));
        assert_eq!(store.answer("k", "other"), Err(StripeError::key_reused("k")));
        store.delete_old(1000 + DAY);
        assert_eq!(store.answer("k", "other"), Ok(None));
    }

    #[test]
    fn a_saved_store_loads_unchanged() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("stripe.json");
        assert!(Store::load(&path).unwrap().sessions.is_empty());
        let mut store = store_with(Some(Action::Pay));
        store.remember("k", "digest".into(), &"the response".into(), 1000);
        store.save(&path).unwrap();
        store.save(&path).unwrap();
        let loaded = Store::load(&path).unwrap();
        assert_eq!(serde_json::to_value(&loaded).unwrap(), serde_json::to_value(&store).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_error_for_a_damaged_file_names_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("stripe.json");
        std::fs::write(&path, "{").unwrap();
        assert!(format!("{:#}", Store::load(&path).unwrap_err()).contains("stripe.json"));
    }
}
