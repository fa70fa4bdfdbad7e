//! Webhook events and their signatures.

use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

/// The kinds of events that Retouch subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// The buyer has finished; `payment_status` says whether the money has arrived.
    #[serde(rename = "checkout.session.completed")]
    SessionCompleted,
    #[serde(rename = "checkout.session.async_payment_succeeded")]
    AsyncPaymentSucceeded,
    #[serde(rename = "checkout.session.async_payment_failed")]
    AsyncPaymentFailed,
    #[serde(rename = "checkout.session.expired")]
    SessionExpired,
    /// A charge was refunded, in full or in part.
    #[serde(rename = "charge.refunded")]
    ChargeRefunded,
    /// The buyer's bank disputes a charge, or inquires about it.
    #[serde(rename = "charge.dispute.created")]
    DisputeCreated,
    #[serde(rename = "charge.dispute.updated")]
    DisputeUpdated,
    /// The dispute withdrew money from the merchant.
    #[serde(rename = "charge.dispute.funds_withdrawn")]
    FundsWithdrawn,
    /// The merchant got the money back.
    #[serde(rename = "charge.dispute.funds_reinstated")]
    FundsReinstated,
    #[serde(rename = "charge.dispute.closed")]
    DisputeClosed,
}

/// The content of a new event.
#[derive(Clone, Debug)]
pub struct EventData {
    pub kind: EventKind,
    /// The current state of the object.
    pub object: Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// `evt_…`
    pub id: String,
    pub kind: EventKind,
    /// Seconds since 1970.
    pub created: i64,
    /// The exact body of the webhook request.
    pub body: String,
    pub fate: Fate,
}

/// Whether an event was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Not yet. Delivery resumes after a restart.
    Waiting,
    /// The webhook accepted it.
    Delivered,
    /// There is no webhook, or it accepted none of the attempts.
    Dropped,
}

/// Returns the `Stripe-Signature` of `body` at `time`, in seconds since 1970.
pub fn sign(secret: &str, body: &str, time: i64) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(format!("{time}.{body}").as_bytes());
    format!("t={time},v1={}", hex::encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_hmac_of_time_and_body() {
        // printf '%s' '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test
        let expected =
            "t=1700000000,v1=c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925";
        assert_eq!(sign("whsec_test", r#"{"id":"evt_1"}"#, 1_700_000_000), expected);
    }
}
