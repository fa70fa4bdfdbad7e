//! What Stripe tells the API: events, each signed anew for every try to deliver it.

use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

/// What an event is about. These are the kinds a webhook of Retouch is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// The buyer is done; `payment_status` says whether the money is here.
    #[serde(rename = "checkout.session.completed")]
    SessionCompleted,
    /// The money of a slow method came.
    #[serde(rename = "checkout.session.async_payment_succeeded")]
    AsyncPaymentSucceeded,
    /// It did not.
    #[serde(rename = "checkout.session.async_payment_failed")]
    AsyncPaymentFailed,
    /// Nobody paid in time.
    #[serde(rename = "checkout.session.expired")]
    SessionExpired,
    /// Some or all of the money went back.
    #[serde(rename = "charge.refunded")]
    ChargeRefunded,
    /// The buyer's bank asks for the money back.
    #[serde(rename = "charge.dispute.created")]
    DisputeCreated,
    /// It was decided who keeps it.
    #[serde(rename = "charge.dispute.closed")]
    DisputeClosed,
}

impl EventKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionCompleted => "checkout.session.completed",
            Self::AsyncPaymentSucceeded => "checkout.session.async_payment_succeeded",
            Self::AsyncPaymentFailed => "checkout.session.async_payment_failed",
            Self::SessionExpired => "checkout.session.expired",
            Self::ChargeRefunded => "charge.refunded",
            Self::DisputeCreated => "charge.dispute.created",
            Self::DisputeClosed => "charge.dispute.closed",
        }
    }
}

/// Something that happened, before it is an event.
#[derive(Clone, Debug)]
pub struct News {
    /// What.
    pub kind: EventKind,
    /// To what, as it is now.
    pub object: Value,
}

/// An event that was sent or is to be sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// `evt_…`
    pub id: String,
    /// What it is about.
    pub kind: EventKind,
    /// When it happened, in seconds since 1970.
    pub created: i64,
    /// The body of the webhook, to the byte.
    pub body: String,
    /// What became of it.
    pub fate: Fate,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is being delivered, and will be after a restart.
    Waiting,
    /// Every webhook took it.
    Delivered,
    /// Nobody wanted it, or it was held back on purpose.
    Dropped,
}

/// The `Stripe-Signature` of `body`, made at `unix` seconds since 1970.
pub fn sign(secret: &str, body: &str, unix: i64) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(format!("{unix}.{body}").as_bytes());
    format!("t={unix},v1={}", hex::encode(mac.finalize().into_bytes()))
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

    #[test]
    fn a_signature_changes_with_the_secret_the_time_and_the_body() {
        let signature = |secret, body, unix| sign(secret, body, unix).split_off(13);
        let first = signature("whsec_a", "{}", 1_700_000_000);
        assert_ne!(first, signature("whsec_b", "{}", 1_700_000_000));
        assert_ne!(first, signature("whsec_a", "{ }", 1_700_000_000));
        assert_ne!(first, signature("whsec_a", "{}", 1_700_000_001));
    }

    #[test]
    fn a_kind_is_stored_by_its_name() {
        for kind in
            [EventKind::SessionCompleted, EventKind::DisputeClosed, EventKind::ChargeRefunded]
        {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
