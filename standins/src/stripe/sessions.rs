//! A checkout session and the ways it can go: open, then complete or expired, never back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::events::EventKind;
use super::new_id;
use super::refusal::Refusal;

/// One checkout, from its creation to the end of its payment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    /// `cs_test_…`
    pub id: String,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// When it expires if nobody pays.
    pub expires_at: i64,
    /// Whether it can still be paid.
    pub status: Status,
    /// Where the payment form is shown.
    pub ui_mode: UiMode,
    /// What is bought.
    pub items: Vec<Item>,
    /// The currency of all items, in lower case.
    pub currency: String,
    /// Where the buyer goes after paying (hosted page).
    pub success_url: Option<String>,
    /// Where the buyer goes instead of paying.
    pub cancel_url: Option<String>,
    /// Where the buyer goes after paying (embedded page).
    pub return_url: Option<String>,
    /// The caller's own name for it.
    pub client_reference_id: Option<String>,
    /// The caller's own notes.
    pub metadata: BTreeMap<String, String>,
    /// The caller's notes on the payment.
    pub intent_metadata: BTreeMap<String, String>,
    /// The email address that the caller gave.
    pub customer_email: Option<String>,
    /// The email address that the buyer left with us.
    pub paid_by: Option<String>,
    /// Opens the embedded page.
    pub client_secret: Option<String>,
    /// The payment, once there is one.
    pub payment: Option<Payment>,
}

/// Whether a session can still be paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits for the buyer.
    Open,
    /// The buyer did all there is to do; the money may still be on its way.
    Complete,
    /// It is too late to pay.
    Expired,
}

/// Where the payment form is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UiMode {
    /// On a page of Stripe's.
    HostedPage,
    /// Inside a page of the caller's.
    EmbeddedPage,
}

/// One thing that is bought.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Item {
    /// `li_…`
    pub id: String,
    /// What it is called.
    pub name: String,
    /// More about it.
    pub description: Option<String>,
    /// The price of one, in the currency's smallest unit.
    pub unit_amount: i64,
    /// How many.
    pub quantity: i64,
}

/// The payment of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payment {
    /// `pi_…`
    pub intent: String,
    /// `ch_…`
    pub charge: String,
    /// When the buyer paid, or promised to.
    pub created: i64,
    /// Where the money is.
    pub state: PaymentState,
    /// How much of it went back.
    pub refunded: i64,
    /// Whether the buyer's bank ever asked for it back.
    pub disputed: bool,
}

/// Where the money of a payment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentState {
    /// On its way.
    Processing,
    /// Here.
    Succeeded,
    /// It will never come.
    Failed,
}

/// How a payment by a slow method ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The money came.
    Succeeded,
    /// It did not.
    Failed,
}

impl Session {
    /// The sum of all items.
    pub fn amount(&self) -> i64 {
        self.items.iter().map(|item| item.unit_amount * item.quantity).sum()
    }

    /// Whether the money is here; a refund does not change that.
    pub fn is_paid(&self) -> bool {
        self.payment.as_ref().is_some_and(|payment| payment.state == PaymentState::Succeeded)
    }

    /// Whether the buyer paid by a slow method and the money is on its way.
    pub fn is_settling(&self) -> bool {
        self.payment.as_ref().is_some_and(|payment| payment.state == PaymentState::Processing)
    }

    /// The buyer pays by card.
    pub fn pay(&mut self, email: Option<&str>, now: i64) -> Result<EventKind, Refusal> {
        self.complete(email, PaymentState::Succeeded, now)
    }

    /// The buyer chooses a method whose money comes days later, or never.
    pub fn pay_later(&mut self, email: Option<&str>, now: i64) -> Result<EventKind, Refusal> {
        self.complete(email, PaymentState::Processing, now)
    }

    /// The card is declined: the session stays open, and the buyer may try another.
    pub fn fail(&self, now: i64) -> Result<(), Refusal> {
        self.check_open(now)
    }

    /// The money of a slow method comes, or does not.
    pub fn settle(&mut self, outcome: Outcome) -> Result<EventKind, Refusal> {
        let settling = self.payment.as_mut().filter(|it| it.state == PaymentState::Processing);
        let payment = settling
            .ok_or_else(|| Refusal::invalid("No payment of this session is on its way."))?;
        let (state, kind) = match outcome {
            Outcome::Succeeded => (PaymentState::Succeeded, EventKind::AsyncPaymentSucceeded),
            Outcome::Failed => (PaymentState::Failed, EventKind::AsyncPaymentFailed),
        };
        payment.state = state;
        Ok(kind)
    }

    /// Nobody may pay any more.
    pub fn expire(&mut self) -> Result<EventKind, Refusal> {
        if self.status != Status::Open {
            let message = "Only Checkout Sessions with a status in [\"open\"] can be expired.";
            return Err(Refusal::invalid(message));
        }
        self.status = Status::Expired;
        Ok(EventKind::SessionExpired)
    }

    /// Whether it should have expired by now.
    pub fn is_overdue(&self, now: i64) -> bool {
        self.status == Status::Open && now >= self.expires_at
    }

    /// Where the buyer goes after paying.
    pub fn after_paying(&self) -> Option<String> {
        let address = self.success_url.as_ref().or(self.return_url.as_ref())?;
        Some(address.replace("{CHECKOUT_SESSION_ID}", &self.id))
    }

    fn complete(
        &mut self,
        email: Option<&str>,
        state: PaymentState,
        now: i64,
    ) -> Result<EventKind, Refusal> {
        self.check_open(now)?;
        self.status = Status::Complete;
        // What the caller gave cannot be changed by the buyer.
        self.paid_by = self.customer_email.clone().or_else(|| email.map(str::to_owned));
        self.payment = Some(Payment {
            intent: new_id("pi"),
            charge: new_id("ch"),
            created: now,
            state,
            refunded: 0,
            disputed: false,
        });
        Ok(EventKind::SessionCompleted)
    }

    fn check_open(&self, now: i64) -> Result<(), Refusal> {
        match self.status {
            Status::Complete => Err(Refusal::invalid("This checkout is already complete.")),
            Status::Open if now < self.expires_at => Ok(()),
            Status::Open | Status::Expired => {
                Err(Refusal::invalid("This checkout has expired.").coded("resource_expired"))
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An open session over 200 cents, made at 1000, that expires at 2000.
    pub fn session() -> Session {
        let item = Item {
            id: "li_1".into(),
            name: "20 credits".into(),
            description: None,
            unit_amount: 100,
            quantity: 2,
        };
        Session {
            id: "cs_test_1".into(),
            created: 1000,
            expires_at: 2000,
            status: Status::Open,
            ui_mode: UiMode::HostedPage,
            items: vec![item],
            currency: "usd".into(),
            success_url: Some("http://ui.test/return?session_id={CHECKOUT_SESSION_ID}".into()),
            cancel_url: Some("http://ui.test/pricing".into()),
            return_url: None,
            client_reference_id: Some("u1".into()),
            metadata: BTreeMap::from([("pack".into(), "1".into())]),
            intent_metadata: BTreeMap::new(),
            customer_email: None,
            paid_by: None,
            client_secret: None,
            payment: None,
        }
    }

    #[test]
    fn a_session_is_paid_once() {
        let mut session = session();
        assert_eq!(session.pay(Some("a@b.c"), 1500), Ok(EventKind::SessionCompleted));
        assert!(session.is_paid());
        assert_eq!(session.paid_by.as_deref(), Some("a@b.c"));
        assert!(session.pay(None, 1501).is_err());
        assert!(session.pay_later(None, 1501).is_err());
        assert!(session.fail(1501).is_err());
        assert!(session.settle(Outcome::Failed).is_err());
        assert!(session.expire().is_err());
        assert!(session.is_paid());
    }

    #[test]
    fn the_money_of_a_slow_method_comes_once() {
        let mut session = session();
        assert_eq!(session.pay_later(None, 1500), Ok(EventKind::SessionCompleted));
        assert_eq!(session.status, Status::Complete);
        assert!(session.is_settling() && !session.is_paid());
        assert_eq!(session.settle(Outcome::Succeeded), Ok(EventKind::AsyncPaymentSucceeded));
        assert!(session.is_paid() && !session.is_settling());
        assert!(session.settle(Outcome::Failed).is_err());
    }

    #[test]
    fn money_that_never_came_cannot_come_later() {
        let mut session = session();
        session.pay_later(None, 1500).unwrap();
        assert_eq!(session.settle(Outcome::Failed), Ok(EventKind::AsyncPaymentFailed));
        assert!(session.settle(Outcome::Succeeded).is_err());
        assert!(!session.is_paid());
    }

    #[test]
    fn an_expired_session_cannot_be_paid() {
        let mut session = session();
        assert_eq!(session.expire(), Ok(EventKind::SessionExpired));
        assert!(session.pay(None, 1500).is_err());
        assert!(session.expire().is_err());
    }

    #[test]
    fn nobody_pays_after_the_hour_even_before_it_is_noticed() {
        let mut session = session();
        assert!(!session.is_overdue(1999));
        assert!(session.is_overdue(2000));
        assert!(session.pay(None, 2000).is_err());
        assert!(session.pay(None, 1999).is_ok());
        assert!(!session.is_overdue(3000));
    }

    #[test]
    fn a_declined_card_leaves_the_session_open() {
        let mut session = session();
        assert_eq!(session.fail(1500), Ok(()));
        assert!(session.pay(None, 1501).is_ok());
    }

    #[test]
    fn the_email_that_the_caller_gave_stays() {
        let mut session = Session { customer_email: Some("own@b.c".into()), ..session() };
        session.pay(Some("other@b.c"), 1500).unwrap();
        assert_eq!(session.paid_by.as_deref(), Some("own@b.c"));
    }

    #[test]
    fn the_way_back_carries_the_session() {
        assert_eq!(session().after_paying().unwrap(), "http://ui.test/return?session_id=cs_test_1");
    }
}
