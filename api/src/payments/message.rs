//! The provider's messages: the few fields that we act on. Whatever else is in them is stored and not read.

use retouch_core::orders::{Message, News, Payment, Progress, Reversal, ReversalEvent};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;

use super::{MessageError, order_named};

#[derive(Deserialize)]
struct Event {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    livemode: bool,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Value,
}

#[derive(Deserialize)]
struct Session {
    id: String,
    status: Option<String>,
    payment_status: String,
    amount_total: Option<i64>,
    currency: Option<String>,
    payment_intent: Option<Reference>,
    metadata: Option<HashMap<String, String>>,
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
    amount_refunded: i64,
}

#[derive(Deserialize)]
struct Dispute {
    id: String,
    payment_intent: Option<Reference>,
    status: String,
}

/// Another object, named or in full.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reference {
    Name(String),
    Whole { id: String },
}

impl Reference {
    fn name(self) -> String {
        match self {
            Self::Name(id) | Self::Whole { id } => id,
        }
    }
}

/// Reads a message whose signature is good.
pub(super) fn read(payload: &str, is_live: bool) -> Result<Message, MessageError> {
    let event: Event = serde_json::from_str(payload).map_err(|error| not_understood(&error))?;
    if event.livemode != is_live {
        let mode = if event.livemode { "live" } else { "test" };
        return Err(MessageError::NotUnderstood(format!("it is of {mode} mode")));
    }
    let news = news(&event.kind, event.data.object)?;
    Ok(Message { id: event.id, kind: event.kind, payload: payload.to_owned(), news })
}

fn news(kind: &str, object: Value) -> Result<News, MessageError> {
    Ok(match kind {
        "checkout.session.completed" | "checkout.session.async_payment_succeeded" => {
            let session: Session = parse(object)?;
            let progress = progress(&session);
            News::Payment(payment(session, progress))
        }
        "checkout.session.async_payment_failed" => {
            News::Payment(payment(parse(object)?, Progress::Failed))
        }
        "checkout.session.expired" => News::Payment(payment(parse(object)?, Progress::Expired)),
        "charge.refunded" => {
            let Charge { payment_intent, amount_refunded } = parse(object)?;
            reversal(payment_intent, ReversalEvent::Refunded { total_cents: amount_refunded })
        }
        "charge.dispute.created" => {
            let Dispute { id, payment_intent, .. } = parse(object)?;
            reversal(payment_intent, ReversalEvent::DisputeOpened { dispute: id })
        }
        "charge.dispute.closed" => {
            let Dispute { id, payment_intent, status } = parse(object)?;
            // `warning_closed`: the bank asked and did not take the money in the end.
            let won = status != "lost";
            reversal(payment_intent, ReversalEvent::DisputeClosed { dispute: id, won })
        }
        _ => News::Other,
    })
}

fn progress(session: &Session) -> Progress {
    match (session.status.as_deref(), session.payment_status.as_str()) {
        (Some("complete"), "paid") => Progress::Paid,
        (Some("complete"), _) => Progress::Unpaid,
        (Some("expired"), _) => Progress::Expired,
        _ => Progress::Open,
    }
}

fn payment(session: Session, progress: Progress) -> Payment {
    let given = session.customer_details.and_then(|details| details.email);
    Payment {
        order: order_named(session.metadata.unwrap_or_default().get("order")),
        session: session.id,
        progress,
        amount_cents: session.amount_total,
        currency: session.currency,
        payment_intent: session.payment_intent.map(Reference::name),
        email: given.or(session.customer_email),
    }
}

/// A charge without a payment of ours is somebody else's on the same account.
fn reversal(payment_intent: Option<Reference>, event: ReversalEvent) -> News {
    match payment_intent {
        None => News::Other,
        Some(intent) => News::Reversal(Reversal { payment_intent: intent.name(), event }),
    }
}

fn parse<T: DeserializeOwned>(object: Value) -> Result<T, MessageError> {
    serde_json::from_value(object).map_err(|error| not_understood(&error))
}

fn not_understood(error: &serde_json::Error) -> MessageError {
    // Only where and what kind: the message itself may name people.
    MessageError::NotUnderstood(format!("{:?} at line {}", error.classify(), error.line()))
}
