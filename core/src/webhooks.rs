//! Webhooks: URLs that receive the events of an account, and the deliveries to them.
//!
//! ```text
//!            event              2xx
//!  (none) ─────────▶ waiting ─────────▶ delivered
//!                     ▲   │ last attempt, or the webhook is off
//!          send again │   ▼
//!                     └─ failed
//! ```
//!
//! A delivery is a row, written in the transaction of its event: by [`announce`], and by `credits/debit.rs` for the end
//! of a job that is done. Any process can send it: [`claim`] leases it by the database's clock, [`record`] writes the
//! outcome, fenced by the lease. A process that dies in between leaves a lease that expires, so every event is sent at
//! least once.

pub(crate) mod announce;
mod deliver;
mod history;
mod register;
mod retention;
pub(crate) mod settings;

use serde::{Deserialize, Serialize};

pub use deliver::{
    Attempt, Delivery, JobFacts, Lane, MAX_ATTEMPTS, Outcome, Recorded, Room, SigningSecret, claim,
    record, retry_delay,
};
pub use history::{PastDelivery, SendError, deliveries, send_again, send_test};
pub(crate) use register::delete_all;
pub use register::{
    Change, CreateError, DisabledReason, MAX_WEBHOOKS, NewWebhook, OLD_SECRET_HOURS, Webhook,
    change, create, delete, get, list, rotate,
};
pub use retention::{DELIVERIES_KEPT, DELIVERY_DAYS, delete_old};
pub use settings::{Settings, copy};

/// A kind of event.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[sqlx(type_name = "text")]
pub enum EventType {
    /// A job is done, its result recorded and its price debited.
    #[serde(rename = "job.done")]
    #[sqlx(rename = "job.done")]
    JobDone,
    /// A job failed; it cost nothing.
    #[serde(rename = "job.failed")]
    #[sqlx(rename = "job.failed")]
    JobFailed,
    /// A job was canceled; it cost nothing.
    #[serde(rename = "job.canceled")]
    #[sqlx(rename = "job.canceled")]
    JobCanceled,
    /// The balance fell below the webhook's threshold.
    #[serde(rename = "credits.low")]
    #[sqlx(rename = "credits.low")]
    CreditsLow,
    /// The owner of the webhook requested a test.
    #[serde(rename = "webhook.test")]
    #[sqlx(rename = "webhook.test")]
    Test,
}

impl EventType {
    /// The events that a webhook can subscribe to.
    pub const SUBSCRIBABLE: [Self; 4] =
        [Self::JobDone, Self::JobFailed, Self::JobCanceled, Self::CreditsLow];

    /// Returns its name in the database and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JobDone => "job.done",
            Self::JobFailed => "job.failed",
            Self::JobCanceled => "job.canceled",
            Self::CreditsLow => "credits.low",
            Self::Test => "webhook.test",
        }
    }
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum DeliveryState {
    /// The delivery will be sent, now or later.
    Waiting,
    /// The receiver accepted the delivery.
    Delivered,
    /// The delivery is not retried automatically.
    Failed,
}

/// Why an attempt, or a whole delivery, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::Type)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum DeliveryProblem {
    /// The host resolves to a forbidden address.
    Address,
    /// The host's name could not be resolved.
    Dns,
    /// The connection failed or broke.
    Connection,
    /// The certificate was not accepted.
    Tls,
    /// No complete response arrived in time.
    Timeout,
    /// The response was a redirect, which is not followed.
    Redirect,
    /// The status was not 2xx.
    Status,
    /// The webhook was turned off in the meantime.
    Off,
}

impl DeliveryProblem {
    /// Returns its name in the database and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Dns => "dns",
            Self::Connection => "connection",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Redirect => "redirect",
            Self::Status => "status",
            Self::Off => "off",
        }
    }
}
