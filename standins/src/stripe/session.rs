//! Checkout sessions: open, then complete or expired.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::StripeError;
use super::events::EventKind;
use super::id::new_id;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    /// `cs_test_…`
    pub id: String,
    /// When it was created, in seconds since 1970.
    pub created: i64,
    /// When it expires unless the buyer pays.
    pub expires_at: i64,
    pub status: Status,
    pub items: Vec<Item>,
    /// The currency of all items, in lower case.
    pub currency: String,
    /// True if the buyer may pay in the currency of their country.
    #[serde(default)]
    pub has_adaptive_pricing: bool,
    /// Where the buyer goes after paying.
    pub success_url: Option<String>,
    /// Where the buyer goes instead of paying.
    pub cancel_url: Option<String>,
    pub client_reference_id: Option<String>,
    pub metadata: BTreeMap<String, String>,
    /// The caller's metadata for the payment.
    pub intent_metadata: BTreeMap<String, String>,
    /// The email address that the caller specified.
    pub customer_email: Option<String>,
    /// The email address of the buyer who paid.
    pub paid_by: Option<String>,
    pub payment: Option<Payment>,
}

/// Whether the buyer can still pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The buyer has not paid yet.
    Open,
    /// The buyer has finished; the payment may still be processing.
    Complete,
    /// The buyer did not pay in time.
    Expired,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Item {
    pub name: String,
    /// The price of one unit, in the currency's smallest unit.
    pub unit_amount: i64,
    pub quantity: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payment {
    /// `pi_…`
    pub intent: String,
    /// `ch_…`
    pub charge: String,
    /// When the buyer paid.
    pub created: i64,
    pub state: PaymentState,
    /// In the currency's smallest unit.
    pub refunded: i64,
    /// True if there was ever a dispute.
    pub disputed: bool,
}

/// Whether the money of a payment has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentState {
    /// Not yet.
    Processing,
    /// It has.
    Succeeded,
    /// It never will.
    Failed,
}

/// How a delayed payment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    Failed,
}

/// An action of the buyer, or of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The buyer pays by card.
    Pay,
    /// The buyer chooses a payment method that takes days.
    PayLater,
    /// The card is declined; the session stays open.
    Decline,
    Expire,
    Settle(Outcome),
}

impl Session {
    /// Returns the sum of all items.
    pub fn amount(&self) -> i64 {
        self.items.iter().map(|item| item.unit_amount * item.quantity).sum()
    }

    /// Returns true if the money has arrived, even if it was refunded later.
    pub fn is_paid(&self) -> bool {
        self.payment.as_ref().is_some_and(|payment| payment.state == PaymentState::Succeeded)
    }

    /// Returns true while a delayed payment is processing.
    pub fn is_processing(&self) -> bool {
        self.payment.as_ref().is_some_and(|payment| payment.state == PaymentState::Processing)
    }

    /// Returns true if the session should have expired.
    pub fn is_overdue(&self, now: i64) -> bool {
        self.status == Status::Open && now >= self.expires_at
    }

    /// Returns where the buyer goes after paying.
    pub fn return_address(&self) -> Option<String> {
        Some(self.success_url.as_ref()?.replace("{CHECKOUT_SESSION_ID}", &self.id))
    }

    /// Performs an action and returns the resulting event. An error changes nothing.
    pub fn apply(
        &mut self,
        action: Action,
        email: Option<&str>,
        now: i64,
    ) -> Result<Option<EventKind>, StripeError> {
        match action {
            Action::Pay => self.complete(email, PaymentState::Succeeded, now).map(Some),
            Action::PayLater => self.complete(email, PaymentState::Processing, now).map(Some),
            Action::Decline => self.check_open(now).map(|()| None),
            Action::Expire => self.expire().map(Some),
            Action::Settle(outcome) => self.settle(outcome).map(Some),
        }
    }

    fn settle(&mut self, outcome: Outcome) -> Result<EventKind, StripeError> {
        let processing = self.payment.as_mut().filter(|it| it.state == PaymentState::Processing);
        let payment = processing
            .ok_or_else(|| StripeError::invalid("No payment of this session is processing."))?;
        let (state, kind) = match outcome {
            Outcome::Succeeded => (PaymentState::Succeeded, EventKind::AsyncPaymentSucceeded),
            Outcome::Failed => (PaymentState::Failed, EventKind::AsyncPaymentFailed),
        };
        payment.state = state;
        Ok(kind)
    }

    fn expire(&mut self) -> Result<EventKind, StripeError> {
        if self.status != Status::Open {
            let message = "Only Checkout Sessions with a status in [\"open\"] can be expired.";
            return Err(StripeError::invalid(message));
        }
        self.status = Status::Expired;
        Ok(EventKind::SessionExpired)
    }

    fn complete(
        &mut self,
        email: Option<&str>,
        state: PaymentState,
        now: i64,
    ) -> Result<EventKind, StripeError> {
        self.check_open(now)?;
        self.status = Status::Complete;
        // The buyer cannot change an address that the caller specified.
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

    fn check_open(&self, now: i64) -> Result<(), StripeError> {
        match self.status {
            Status::Complete => Err(StripeError::invalid("This checkout is already complete.")),
            Status::Open if now < self.expires_at => Ok(()),
            Status::Open | Status::Expired => {
                Err(StripeError::invalid("This checkout has expired.")
                    .with_code("resource_expired"))
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An open session over 200 cents, created at 1000, that expires at 2000.
    pub fn session() -> Session {
        let item = Item { name: "20 credits".into(), unit_amount: 100, quantity: 2 };
        Session {
            id: "cs_test_1".into(),
            created: 1000,
            expires_at: 2000,
            status: Status::Open,
            items: vec![item],
            currency: "usd".into(),
            has_adaptive_pricing: false,
            success_url: Some("http://ui.test/return?session_id={CHECKOUT_SESSION_ID}".into()),
            cancel_url: Some("http://ui.test/pricing".into()),
            client_reference_id: Some("u1".into()),
            metadata: BTreeMap::from([("pack".into(), "1".into())]),
            intent_metadata: BTreeMap::new(),
            customer_email: None,
            paid_by: None,
            payment: None,
        }
    }

    #[test]
    fn a_session_is_paid_once() {
        let mut session = session();
        let paid = session.apply(Action::Pay, Some("a@b.c"), 1500);
        assert_eq!(paid, Ok(Some(EventKind::SessionCompleted)));
        assert!(session.is_paid());
        assert_eq!(session.paid_by.as_deref(), Some("a@b.c"));
        for action in [
            Action::Pay,
            Action::PayLater,
            Action::Decline,
            Action::Settle(Outcome::Failed),
            Action::Expire,
        ] {
            assert!(session.apply(action, None, 1501).is_err(), "{action:?}");
        }
        assert!(session.is_paid());
    }

    #[test]
    fn a_delayed_payment_ends_once() {
        for (outcome, kind) in [
            (Outcome::Succeeded, EventKind::AsyncPaymentSucceeded),
            (Outcome::Failed, EventKind::AsyncPaymentFailed),
        ] {
            let mut session = session();
            session.apply(Action::PayLater, None, 1500).unwrap();
            assert_eq!(session.status, Status::Complete);
            assert!(session.is_processing() && !session.is_paid());
            assert_eq!(session.apply(Action::Settle(outcome), None, 1600), Ok(Some(kind)));
            assert_eq!(session.is_paid(), outcome == Outcome::Succeeded);
            assert!(session.apply(Action::Settle(Outcome::Succeeded), None, 1700).is_err());
        }
    }

    #[test]
    fn an_expired_session_cannot_be_paid() {
        let mut session = session();
        assert_eq!(session.apply(Action::Expire, None, 1500), Ok(Some(EventKind::SessionExpired)));
        assert!(session.apply(Action::Pay, None, 1500).is_err());
        assert!(session.apply(Action::Expire, None, 1500).is_err());
    }

    #[test]
    fn an_overdue_session_cannot_be_paid() {
        let mut session = session();
        assert!(!session.is_overdue(1999) && session.is_overdue(2000));
        assert!(session.apply(Action::Pay, None, 2000).is_err());
        assert!(session.apply(Action::Pay, None, 1999).is_ok());
        assert!(!session.is_overdue(3000));
    }

    #[test]
    fn a_declined_card_leaves_the_session_open() {
        let mut session = session();
        assert_eq!(session.apply(Action::Decline, None, 1500), Ok(None));
        assert!(session.apply(Action::Pay, None, 1501).is_ok());
    }

    #[test]
    fn the_callers_email_takes_precedence() {
        let mut session = Session { customer_email: Some("own@b.c".into()), ..session() };
        session.apply(Action::Pay, Some("other@b.c"), 1500).unwrap();
        assert_eq!(session.paid_by.as_deref(), Some("own@b.c"));
    }

    #[test]
    fn the_return_address_contains_the_session() {
        let address = session().return_address().unwrap();
        assert_eq!(address, "http://ui.test/return?session_id=cs_test_1");
    }
}
