//! Everything that was bought, given back, disputed and answered here. In memory, and in a file where one is given.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::events::{Event, Fate};
use super::new_id;
use super::refusal::Refusal;
use super::sessions::{Payment, PaymentState, Session};

const DAY: i64 = 24 * 60 * 60;

/// The state of the stand-in.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Books {
    /// By id; ids made later are greater.
    pub sessions: BTreeMap<String, Session>,
    /// By id.
    pub refunds: BTreeMap<String, Refund>,
    /// By id.
    pub disputes: BTreeMap<String, Dispute>,
    /// In the order in which they happened.
    pub events: Vec<Event>,
    /// What was answered to requests with an idempotency key, by key.
    answers: BTreeMap<String, Answer>,
}

/// Money that went back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refund {
    /// `re_…`
    pub id: String,
    /// The session whose money it was.
    pub session: String,
    /// How much, in the currency's smallest unit.
    pub amount: i64,
    /// Why.
    pub reason: Option<String>,
    /// The caller's own notes.
    pub metadata: BTreeMap<String, String>,
    /// When, in seconds since 1970.
    pub created: i64,
}

/// Money that the buyer's bank asks back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dispute {
    /// `du_…`
    pub id: String,
    /// The session whose money it is about.
    pub session: String,
    /// How much, in the currency's smallest unit.
    pub amount: i64,
    /// Why.
    pub reason: String,
    /// When, in seconds since 1970.
    pub created: i64,
    /// How it stands.
    pub status: DisputeStatus,
}

/// How a dispute stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisputeStatus {
    /// The merchant must answer.
    NeedsResponse,
    /// The merchant keeps the money.
    Won,
    /// The buyer has it back.
    Lost,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    /// A digest of path and fields; the fields themselves are nobody's business later.
    request: String,
    body: Value,
    at: i64,
}

impl Books {
    /// Reads what an earlier run left in the file; an absent file is an empty state.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text)
                .with_context(|| format!("reading {}; delete it to begin anew", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Writes everything to a new file that takes the old one's place, so that there is always a whole one.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let mut fresh = PathBuf::from(path).into_os_string();
        fresh.push(".new");
        let mut options = std::fs::OpenOptions::new();
        // Only the owner reads it: it holds email addresses.
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)?;
        Ok(())
    }

    /// The session of this id.
    pub fn session(&self, id: &str) -> Result<&Session, Refusal> {
        self.sessions.get(id).ok_or_else(|| Refusal::no_such("checkout.session", id))
    }

    /// The session of this id, to change it.
    pub fn session_mut(&mut self, id: &str) -> Result<&mut Session, Refusal> {
        self.sessions.get_mut(id).ok_or_else(|| Refusal::no_such("checkout.session", id))
    }

    /// The session of a payment, by the id of its intent or its charge.
    pub fn session_of_payment(&self, id: &str) -> Result<&Session, Refusal> {
        let holds = |payment: &Payment| payment.intent == id || payment.charge == id;
        let mut sessions = self.sessions.values();
        let found = sessions.find(|session| session.payment.as_ref().is_some_and(holds));
        let what = if id.starts_with("ch_") { "charge" } else { "payment_intent" };
        found.ok_or_else(|| Refusal::no_such(what, id))
    }

    /// The money that came for a session.
    fn charged(&mut self, session: &str) -> Result<(i64, &mut Payment), Refusal> {
        let session = self.session_mut(session)?;
        let amount = session.amount();
        let paid = session.payment.as_mut().filter(|it| it.state == PaymentState::Succeeded);
        let payment = paid.ok_or_else(|| {
            Refusal::invalid("This PaymentIntent does not have a successful charge.")
        })?;
        Ok((amount, payment))
    }

    /// Gives back `amount`, or what is left, of the money that came for a session.
    pub fn refund(
        &mut self,
        session: &str,
        amount: Option<i64>,
        reason: Option<String>,
        metadata: BTreeMap<String, String>,
        now: i64,
    ) -> Result<Refund, Refusal> {
        let (charged, payment) = self.charged(session)?;
        if payment.disputed {
            let message =
                format!("Charge {} has been charged back; cannot issue a refund.", payment.charge);
            return Err(Refusal::invalid(message).coded("charge_disputed"));
        }
        let left = charged - payment.refunded;
        if left == 0 {
            let message = format!("Charge {} has already been refunded.", payment.charge);
            return Err(Refusal::invalid(message).coded("charge_already_refunded"));
        }
        let amount = amount.unwrap_or(left);
        if amount < 1 {
            return Err(Refusal::invalid("Refund amount must be positive.").about("amount"));
        }
        if amount > left {
            let message = format!(
                "Refund amount ({amount}) is greater than unrefunded amount on charge ({left})"
            );
            return Err(Refusal::invalid(message).about("amount"));
        }
        payment.refunded += amount;
        let session = session.to_owned();
        let refund = Refund { id: new_id("re"), session, amount, reason, metadata, created: now };
        self.refunds.insert(refund.id.clone(), refund.clone());
        Ok(refund)
    }

    /// The buyer's bank asks for `amount`, or for what is left, of the money that came for a session.
    pub fn open_dispute(
        &mut self,
        session: &str,
        amount: Option<i64>,
        reason: Option<&str>,
        now: i64,
    ) -> Result<Dispute, Refusal> {
        let (charged, payment) = self.charged(session)?;
        if payment.disputed {
            return Err(Refusal::invalid("This charge has been disputed already."));
        }
        let left = charged - payment.refunded;
        let amount = amount.unwrap_or(left);
        if amount < 1 || amount > left {
            let message = format!("A dispute must be about 1 to {left}, not about {amount}.");
            return Err(Refusal::invalid(message).about("amount"));
        }
        payment.disputed = true;
        let dispute = Dispute {
            id: new_id("du"),
            session: session.to_owned(),
            amount,
            reason: reason.unwrap_or("fraudulent").to_owned(),
            created: now,
            status: DisputeStatus::NeedsResponse,
        };
        self.disputes.insert(dispute.id.clone(), dispute.clone());
        Ok(dispute)
    }

    /// It is decided who keeps the money.
    pub fn close_dispute(&mut self, id: &str, end: DisputeStatus) -> Result<Dispute, Refusal> {
        let dispute = self.disputes.get_mut(id).ok_or_else(|| Refusal::no_such("dispute", id))?;
        if dispute.status != DisputeStatus::NeedsResponse {
            return Err(Refusal::invalid("This dispute has already been closed."));
        }
        dispute.status = end;
        Ok(dispute.clone())
    }

    /// What was answered before to the request with this key; refused if that was another request.
    pub fn answer(&self, key: &str, request: &str) -> Result<Option<Value>, Refusal> {
        match self.answers.get(key) {
            Some(answer) if answer.request == request => Ok(Some(answer.body.clone())),
            Some(_) => Err(Refusal::key_reused(key)),
            None => Ok(None),
        }
    }

    /// Keeps an answer for a day. Refusals are not kept: the same key may try again.
    pub fn remember(&mut self, key: &str, request: String, body: &Value, now: i64) {
        self.answers.insert(key.to_owned(), Answer { request, body: body.clone(), at: now });
    }

    /// Forgets answers that nobody may repeat any more, and events that are long over.
    pub fn forget_old(&mut self, now: i64) {
        self.answers.retain(|_, answer| now - answer.at < DAY);
        self.events.retain(|event| event.fate == Fate::Waiting || now - event.created < 30 * DAY);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sessions::tests::session;
    use super::*;

    fn books_with_a_paid_session() -> Books {
        let mut books = Books::default();
        let mut session = session();
        session.pay(Some("a@b.c"), 1500).unwrap();
        books.sessions.insert(session.id.clone(), session);
        books
    }

    fn refund(books: &mut Books, amount: Option<i64>) -> Result<Refund, Refusal> {
        books.refund("cs_test_1", amount, None, BTreeMap::new(), 1600)
    }

    #[test]
    fn never_more_is_given_back_than_was_paid() {
        let mut books = books_with_a_paid_session();
        assert!(refund(&mut books, Some(0)).is_err());
        assert!(refund(&mut books, Some(201)).is_err());
        assert_eq!(refund(&mut books, Some(50)).unwrap().amount, 50);
        assert!(refund(&mut books, Some(151)).is_err());
        assert_eq!(refund(&mut books, None).unwrap().amount, 150);
        assert!(refund(&mut books, None).is_err());
    }

    #[test]
    fn only_money_that_came_can_go_back() {
        let mut books = Books::default();
        books.sessions.insert("cs_test_1".into(), session());
        assert!(refund(&mut books, None).is_err());
        books.session_mut("cs_test_1").unwrap().pay_later(None, 1500).unwrap();
        assert!(refund(&mut books, None).is_err());
        assert!(books.open_dispute("cs_test_1", None, None, 1600).is_err());
    }

    #[test]
    fn a_dispute_is_opened_once_closed_once_and_blocks_refunds() {
        let mut books = books_with_a_paid_session();
        refund(&mut books, Some(50)).unwrap();
        let dispute = books.open_dispute("cs_test_1", None, None, 1600).unwrap();
        assert_eq!(dispute.amount, 150);
        assert!(books.open_dispute("cs_test_1", None, None, 1600).is_err());
        assert!(refund(&mut books, Some(1)).is_err());
        let closed = books.close_dispute(&dispute.id, DisputeStatus::Lost).unwrap();
        assert_eq!(closed.status, DisputeStatus::Lost);
        assert!(books.close_dispute(&dispute.id, DisputeStatus::Won).is_err());
    }

    #[test]
    fn a_key_repeats_its_answer_and_refuses_another_request() {
        let mut books = Books::default();
        assert_eq!(books.answer("k", "digest"), Ok(None));
        books.remember("k", "digest".into(), &"the answer".into(), 1000);
        assert_eq!(books.answer("k", "digest"), Ok(Some("the answer".into())));
        assert_eq!(books.answer("k", "other"), Err(Refusal::key_reused("k")));
        books.forget_old(1000 + DAY);
        assert_eq!(books.answer("k", "other"), Ok(None));
    }

    #[test]
    fn what_was_saved_is_there_again() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("stripe.json");
        assert!(Books::load(&path).unwrap().sessions.is_empty());
        let mut books = books_with_a_paid_session();
        refund(&mut books, Some(50)).unwrap();
        books.remember("k", "digest".into(), &"the answer".into(), 1000);
        books.save(&path).unwrap();
        books.save(&path).unwrap();
        let again = Books::load(&path).unwrap();
        assert_eq!(serde_json::to_value(&again).unwrap(), serde_json::to_value(&books).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_broken_file_is_named_and_not_overwritten() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("stripe.json");
        std::fs::write(&path, "{").unwrap();
        assert!(format!("{:#}", Books::load(&path).unwrap_err()).contains("stripe.json"));
    }
}
