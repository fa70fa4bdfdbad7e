//! The provider's messages (webhooks): verifies their signature and parses what we act on. The database stores
//! them unchanged.

use chrono::{DateTime, Utc};
use retouch_core::Id;
use retouch_core::config::Secret;
use retouch_core::credits::PACKS;
use retouch_core::orders::{
    Message, Payment, PaymentEvent, PaymentStatus, Reversal, ReversalEvent,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use stripe_webhook::{Webhook, WebhookError};

/// Why a message was rejected.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The provider's signature is missing, invalid or too old.
    #[error("This message is not signed by the payment provider.")]
    NotSigned,
    /// The message is signed but malformed, or belongs to the other mode (test or live).
    #[error("This message is malformed: {0}.")]
    Malformed(String),
}

#[derive(Deserialize)]
struct Event {
    id: Text,
    #[serde(rename = "type")]
    kind: Text,
    livemode: bool,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Value,
}

#[derive(Deserialize)]
struct Session {
    id: Text,
    status: Option<String>,
    payment_status: String,
    amount_total: Option<i64>,
    currency: Option<String>,
    payment_intent: Option<Reference>,
    metadata: Option<HashMap<String, String>>,
    client_reference_id: Option<String>,
    customer_email: Option<String>,
    customer_details: Option<Customer>,
}

#[derive(Deserialize)]
struct Customer {
    email: Option<String>,
}

#[derive(Deserialize)]
struct Charge {
    payment_intent: Option<Reference>,
    amount: i64,
    amount_refunded: i64,
}

#[derive(Deserialize)]
struct Dispute {
    id: Text,
    payment_intent: Option<Reference>,
    amount: Option<i64>,
    currency: Option<String>,
    status: String,
}

/// A reference to another object: its id, or the object itself.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reference {
    Id(Text),
    Object { id: Text },
}

impl Reference {
    fn id(self) -> String {
        match self {
            Self::Id(id) | Self::Object { id } => id.0,
        }
    }
}

/// A text without NUL, which Postgres cannot store.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Text(String);

impl TryFrom<String> for Text {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if is_storable(&text) { Ok(Self(text)) } else { Err("the text contains NUL") }
    }
}

/// Returns true if Postgres can store the text.
pub(super) fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}

/// Returns the text of a message if one of `secrets` signed it and the signature is recent.
pub(super) fn verify<'a>(
    payload: &'a [u8],
    signature: &str,
    secrets: &[Secret],
    now: DateTime<Utc>,
) -> Result<&'a str, MessageError> {
    let payload = std::str::from_utf8(payload).map_err(|_| MessageError::NotSigned)?;
    let is_signed = secrets.iter().any(|secret| {
        let read = Webhook::construct_event_with_timestamp(
            payload,
            signature,
            secret.reveal(),
            now.timestamp(),
        );
        // The library verifies the signature first, so a parse error implies a valid signature.
        matches!(read, Ok(_) | Err(WebhookError::BadParse(_)))
    });
    if is_signed { Ok(payload) } else { Err(MessageError::NotSigned) }
}

/// Parses a message whose signature is valid.
pub(super) fn parse(payload: &str, is_live: bool) -> Result<Message, MessageError> {
    let Event { id: Text(id), kind: Text(kind), livemode, data } =
        serde_json::from_str(payload).map_err(|error| malformed(&error))?;
    if livemode != is_live {
        let mode = if livemode { "live" } else { "test" };
        return Err(MessageError::Malformed(format!("it belongs to {mode} mode")));
    }
    let event = payment_event(&kind, data.object)?;
    Ok(Message { id, kind, payload: payload.to_owned(), event })
}

fn payment_event(kind: &str, object: Value) -> Result<PaymentEvent, MessageError> {
    Ok(match kind {
        "checkout.session.completed" | "checkout.session.async_payment_succeeded" => {
            let session: Session = object_of(object)?;
            let status = payment_status(&session);
            PaymentEvent::Payment(payment(session, status))
        }
        "checkout.session.async_payment_failed" => {
            PaymentEvent::Payment(payment(object_of(object)?, PaymentStatus::Failed))
        }
        "checkout.session.expired" => {
            PaymentEvent::Payment(payment(object_of(object)?, PaymentStatus::Expired))
        }
        "charge.refunded" => {
            let Charge { payment_intent, amount, amount_refunded } = object_of(object)?;
            let of_cents = Some(amount);
            reversal(
                payment_intent,
                ReversalEvent::Refunded { total_cents: amount_refunded, of_cents },
            )
        }
        "charge.dispute.created" | "charge.dispute.updated" | "charge.dispute.closed" => {
            dispute(object_of(object)?, |dispute, amount_cents, status| match status {
                "needs_response" | "under_review" => {
                    Some(ReversalEvent::DisputeOpened { dispute, amount_cents })
                }
                "lost" => Some(ReversalEvent::DisputeClosed { dispute, amount_cents, won: false }),
                // An inquiry that ends without a chargeback has the status `warning_closed`.
                "won" | "warning_closed" => {
                    Some(ReversalEvent::DisputeClosed { dispute, amount_cents, won: true })
                }
                // `warning_needs_response`, `warning_under_review`: an inquiry, which withdraws no money.
                // `prevented`: a refund, or a withdrawal, which has a message of its own.
                _ => None,
            })
        }
        "charge.dispute.funds_withdrawn" => {
            dispute(object_of(object)?, |dispute, amount_cents, _| {
                Some(ReversalEvent::DisputeOpened { dispute, amount_cents })
            })
        }
        // After a lost dispute, a part of the money may come back that had been refunded before.
        "charge.dispute.funds_reinstated" => {
            dispute(object_of(object)?, |dispute, amount_cents, status| {
                let won = ReversalEvent::DisputeClosed { dispute, amount_cents, won: true };
                (status != "lost").then_some(won)
            })
        }
        _ => PaymentEvent::Other,
    })
}

fn dispute(
    dispute: Dispute,
    meaning: impl FnOnce(String, Option<i64>, &str) -> Option<ReversalEvent>,
) -> PaymentEvent {
    let Dispute { id: Text(id), payment_intent, amount, currency, status } = dispute;
    // The cardholder's bank may state it in another currency.
    let is_ours = |currency| PACKS.iter().any(|pack| pack.currency == currency);
    let amount = amount.filter(|_| currency.as_deref().is_some_and(is_ours));
    meaning(id, amount, &status)
        .map_or(PaymentEvent::Other, |event| reversal(payment_intent, event))
}

fn payment_status(session: &Session) -> PaymentStatus {
    match (session.status.as_deref(), session.payment_status.as_str()) {
        (Some("complete"), "paid") => PaymentStatus::Paid,
        (Some("complete"), _) => PaymentStatus::Unpaid,
        (Some("expired"), _) => PaymentStatus::Expired,
        _ => PaymentStatus::Open,
    }
}

fn payment(session: Session, status: PaymentStatus) -> Payment {
    let entered = session.customer_details.and_then(|details| details.email);
    Payment {
        order: id(session.metadata.unwrap_or_default().get("order")),
        buyer: id(session.client_reference_id.as_ref()),
        session: session.id.0,
        status,
        amount_cents: session.amount_total,
        currency: session.currency,
        payment_intent: session.payment_intent.map(Reference::id),
        email: entered.or(session.customer_email).filter(|email| is_storable(email)),
    }
}

/// A charge without a payment intent is not ours: other applications may use the same Stripe account.
fn reversal(payment_intent: Option<Reference>, event: ReversalEvent) -> PaymentEvent {
    match payment_intent {
        None => PaymentEvent::Other,
        Some(intent) => PaymentEvent::Reversal(Reversal { payment_intent: intent.id(), event }),
    }
}

/// Parses an id that we attached to a session.
pub(super) fn id<Of>(text: Option<&String>) -> Option<Id<Of>> {
    text.and_then(|text| text.parse().ok())
}

fn object_of<T: DeserializeOwned>(object: Value) -> Result<T, MessageError> {
    serde_json::from_value(object).map_err(|error| malformed(&error))
}

fn malformed(error: &serde_json::Error) -> MessageError {
    // Without the text of the error, which may quote personal data.
    MessageError::Malformed(format!("{:?} at line {}", error.classify(), error.line()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_dispute_in_another_currency_is_of_the_whole_payment() {
        for (currency, expected) in [(Some("usd"), Some(465)), (Some("eur"), None), (None, None)] {
            let dispute = json!({
                "id": "du_1", "payment_intent": "pi_1", "amount": 465, "currency": currency,
                "status": "needs_response",
            });
            let event = payment_event("charge.dispute.created", dispute).unwrap();
            let PaymentEvent::Reversal(Reversal {
                event: ReversalEvent::DisputeOpened { amount_cents, .. },
                ..
            }) = event
            else {
                panic!("{event:?}");
            };
            assert_eq!(amount_cents, expected);
        }
    }
}
